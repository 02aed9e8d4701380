package perfdata

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/safeopen"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
)

// files finds the files that were mapped.
type files struct {
	ids     map[string]string // build ids by path
	numbers map[file]uint64
	list    []file
	same    bool      // the recording was made on this machine
	written time.Time // when the recording was finished; zero: not known
	missing map[string]string

	meter     *memlimit.Meter
	permitted int64 // bytes that meter was asked to permit
}

// file is what a recording contains about a file.
type file struct {
	path, id   string
	dev, inode uint64
}

func (fs *files) init() {
	fs.ids, fs.numbers, fs.missing = map[string]string{}, map[file]uint64{}, map[string]string{}
}

// ofRecordings is the device number of files in recordings, which no system uses: their own numbers
// may be of another machine, or unknown.
const ofRecordings = 1 << 40

// number sets the device and inode of a mapping to numbers that stand for the file that the
// recording names.
func (fs *files) number(m *target.Mapping, dev, inode uint64, id string) {
	if path, gone := strings.CutSuffix(m.Path, " (deleted)"); gone {
		m.Path, m.Deleted = path, true
	}
	if !strings.HasPrefix(m.Path, "/") || strings.HasPrefix(m.Path, "//") { // //anon
		if strings.HasPrefix(m.Path, "//") {
			m.Path = ""
		}
		return
	}
	f := file{m.Path, id, dev, inode}
	n, ok := fs.numbers[f]
	if !ok {
		if len(fs.list) >= maxFiles {
			return
		}
		fs.list = append(fs.list, f)
		n = uint64(len(fs.list))
		fs.numbers[f] = n
	}
	m.Dev, m.Inode = ofRecordings, n
}

// open opens the file of a mapping, if it is the one that was mapped then.
func (fs *files) open(m target.Mapping) (target.File, error) {
	if m.Dev != ofRecordings || m.Inode == 0 || m.Inode > uint64(len(fs.list)) {
		return nil, fmt.Errorf("open %s: %w", m.Path, os.ErrNotExist)
	}
	want := fs.list[m.Inode-1]
	if want.id == "" {
		want.id = fs.ids[want.path]
	}
	paths := []string{want.path}
	if home, err := os.UserHomeDir(); err == nil && len(want.id) > 2 {
		// perf keeps copies of the files it has seen.
		paths = append(paths, filepath.Join(home, ".debug", ".build-id", want.id[:2], want.id[2:], "elf"))
	}
	var first error
	for _, path := range paths {
		f, err := fs.try(path, want)
		if err == nil {
			return f, nil
		}
		if first == nil {
			first = err
		}
	}
	if len(fs.missing) < 64 {
		fs.missing[want.path] = first.Error()
	}
	return nil, first
}

func (fs *files) try(path string, want file) (*os.File, error) {
	clean := filepath.Clean(path)
	for _, dir := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(clean, dir) {
			return nil, fmt.Errorf("%s is no file with code: %w", path, target.ErrStale)
		}
	}
	f, err := safeopen.File(clean)
	if errors.Is(err, safeopen.ErrKind) {
		return nil, fmt.Errorf("%s is no file with code: %w: %w", path, err, target.ErrStale)
	}
	if err != nil {
		return nil, err
	}
	if err := fs.check(f, want); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	fs.permit(f)
	return f, nil
}

// Naming by files of this machine may take this much more memory: tables of symbols and of unwind rules are
// as large as the files, which have nothing to do with the size of the recording.
const (
	mostPerFile  = 64 << 20
	mostForFiles = 512 << 20
)

func (fs *files) permit(f *os.File) {
	if st, err := f.Stat(); err == nil && fs.permitted < mostForFiles {
		n := min(2*st.Size(), mostPerFile)
		fs.permitted += n
		fs.meter.Permit(n)
	}
}

// check returns an error unless f is the file that was mapped.
func (fs *files) check(f *os.File, want file) error {
	is, err := fileid.Of(f)
	if err != nil {
		return err
	}
	if is.Size == 0 {
		return fmt.Errorf("it is empty: %w", target.ErrStale)
	}
	if want.id != "" {
		id, err := symbol.BuildID(f, is.Size)
		if err != nil || id != want.id {
			return fmt.Errorf("it is not the file that was recorded: %w", target.ErrStale)
		}
		return nil
	}
	switch {
	case !fs.same:
		return fmt.Errorf("the recording is of another machine and has no build id of it: %w", target.ErrStale)
	case fs.written.IsZero() || time.Unix(0, is.Changed).After(fs.written):
		return fmt.Errorf("it was changed after the recording: %w", target.ErrStale)
	}
	return nil
}
