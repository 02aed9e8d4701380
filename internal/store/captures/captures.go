// Package captures names and lists the recordings of single services in detail that lie beside the history
// in a store.
package captures

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/format/jfr"
)

// Dir is the folder below a store's directory in which captures are.
const Dir = "captures"

const (
	suffix   = ".jfr.zst"
	timeForm = "20060102T150405.000Z"
	// mostEscaped bounds the part of a file's name that is the service's. Longer ones are cut to cutEscaped bytes,
	// and told apart by a hash.
	mostEscaped, cutEscaped = 150, 120
)

// Capture is one capture.
type Capture struct {
	File    string    // its name in the folder
	Service string    // ends in … if it is too long for a file's name
	From    time.Time // when it was begun
	To      time.Time // when the file was last written to
	Size    int64     // bytes
	Written bool      // it is being written
}

// Name returns the name of the file for a capture of a service that begins at a time.
func Name(service string, at time.Time) string {
	return at.UTC().Format(timeForm) + "-" + escape(service) + suffix
}

// escape writes what is no letter, digit, '-', '.' or '_' as %XX.
func escape(service string) string {
	var b strings.Builder
	cut := 0
	for i := range len(service) {
		if b.Len() <= cutEscaped {
			cut = b.Len()
		}
		switch c := service[i]; {
		case c == '-', c == '.', c == '_', c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() <= mostEscaped {
		return b.String()
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(service))
	return fmt.Sprintf("%s~%016x", b.String()[:cut], h.Sum64())
}

// parse takes a file's name apart; false if it is none of a capture.
func parse(file string) (service string, at time.Time, ok bool) {
	name, ok := strings.CutSuffix(file, suffix)
	if !ok || len(name) <= len(timeForm) || name[len(timeForm)] != '-' {
		return "", at, false
	}
	at, err := time.Parse(timeForm, name[:len(timeForm)])
	if err != nil {
		return "", at, false
	}
	escaped, _, cut := strings.Cut(name[len(timeForm)+1:], "~")
	out := make([]byte, 0, len(escaped))
	for i := 0; i < len(escaped); i++ {
		c := escaped[i]
		if c == '%' {
			if i+2 >= len(escaped) {
				return "", at, false
			}
			v, err := strconv.ParseUint(escaped[i+1:i+3], 16, 8)
			if err != nil {
				return "", at, false
			}
			c, i = byte(v), i+2
		}
		out = append(out, c)
	}
	service = strings.ToValidUTF8(string(out), "\uFFFD")
	if cut {
		service += "…"
	}
	return service, at, true
}

// Of reports whether it is a capture of a service.
func (c *Capture) Of(service string) bool { return c.File == Name(service, c.From) }

// most bounds how many captures are listed: the latest.
const most = 4096

// List returns the captures of a store that were made, at least in part, between two times, the oldest first. A
// store without captures has none.
func List(store string, from, to time.Time) ([]Capture, error) {
	entries, err := os.ReadDir(filepath.Join(store, Dir)) // in the order of time: names begin with it
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the captures: %w", err)
	}
	var out []Capture
	for _, e := range slices.Backward(entries) {
		service, at, ok := parse(e.Name())
		if !ok || !e.Type().IsRegular() || !at.Before(to) {
			continue
		}
		info, err := e.Info()
		if err != nil || info.ModTime().Before(from) {
			continue // it may have been deleted meanwhile
		}
		out = append(out, Capture{File: e.Name(), Service: service, From: at, To: info.ModTime(), Size: info.Size()})
		if len(out) == most {
			break
		}
	}
	slices.Reverse(out)
	for i := range out {
		// What was written to long ago is not being written: files need not be opened to know.
		out[i].Written = time.Since(out[i].To) < time.Hour && jfr.WrittenNow(filepath.Join(store, Dir, out[i].File))
	}
	return out, nil
}

// ErrNone is wrapped by the error of Path if there is no such capture.
var ErrNone = errors.New("there is no such capture")

// Path returns the path of a capture that is complete, by the name of its file.
func Path(store, file string) (string, error) {
	if _, _, ok := parse(file); !ok || filepath.Base(file) != file {
		return "", ErrNone
	}
	path := filepath.Join(store, Dir, file)
	info, err := os.Lstat(path)
	switch {
	case err != nil, !info.Mode().IsRegular():
		return "", fmt.Errorf("%w: %s", ErrNone, path)
	case jfr.WrittenNow(path):
		return "", fmt.Errorf("%s is still being made: look at it when it is complete, or now with candid view", path)
	}
	return path, nil
}
