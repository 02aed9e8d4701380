package format

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/candid-profiler/candid/internal/format/collapsed"
	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/format/otlp"
	"github.com/candid-profiler/candid/internal/format/perfdata"
	"github.com/candid-profiler/candid/internal/format/perfscript"
	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/format/speedscope"
	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
)

// MaxUnpacked is how many bytes are read at most, after decompression, of a file that must be in
// memory as a whole: gzip and zstd can make a gigabyte of a megabyte.
const MaxUnpacked = 512 << 20

// maxText is the same for text, which is read line by line: the memory it takes is bounded by its
// content, not by its length.
const maxText = 1 << 40

// ErrTooLarge is the error if a file holds more than MaxUnpacked bytes.
var ErrTooLarge = fmt.Errorf("it unpacks to more than %d MiB, which no profile of candid's does", MaxUnpacked>>20)

// ErrNotRead is wrapped by the errors for files that are not a profile that candid reads.
var ErrNotRead = errors.New("not a profile that candid reads")

// Read reads a profile from a file, whatever its name: its content determines the format. "-" is
// standard input. The result has passed Check.
func Read(path string) (*profile.Profile, error) {
	p, _, err := Reading{}.Read(path)
	return p, err
}

// Reading is how a file is read.
type Reading struct {
	// Filter is still to be applied to the result: if the format permits, samples that it certainly
	// does not choose (profile.Builder.LeaveOut) are left out already.
	Filter profile.Filter
	// Keep is how samples are kept, if the format permits.
	Keep profile.Keep
	// Overflow takes the samples that exceed what memory may hold; nil: they stay in memory.
	Overflow profile.Overflow

	meter *memlimit.Meter // watches the memory that the file takes
}

// Read is the function Read, and also returns how many samples it left out.
func (how Reading) Read(path string) (p *profile.Profile, left uint64, err error) {
	how.meter = memlimit.Start()
	defer how.meter.Stop()
	b := how.builder(how.Keep)
	b.LeaveOut(how.Filter)
	if path == "-" {
		if p, err = how.decode(os.Stdin, b, MaxUnpacked); err != nil {
			return nil, 0, fmt.Errorf("read standard input: %w", err)
		}
		p.Clean()
		return p, b.LeftOut(), nil
	}
	f, err := os.Open(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	p, err = how.decodeFile(f, b)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	p.Clean()
	return p, b.LeftOut(), nil
}

// builder returns a Builder that keeps samples in this way.
func (how Reading) builder(keep profile.Keep) *profile.Builder {
	b := profile.NewBuilder()
	b.Keep(keep)
	b.Limit(how.meter)
	if how.Overflow != nil {
		b.Overflow(how.Overflow)
	}
	return b
}

// other returns a Builder for formats whose samples get their times and states after all were read:
// no sample is left out, and samples that a range of time may cut are not summed up.
func (how Reading) other() *profile.Builder {
	keep := how.Keep
	if keep >= profile.KeepSums && (how.Filter.From > 0 || how.Filter.To > 0) {
		keep = profile.KeepTracks
	}
	return how.builder(keep)
}

// decodeFile reads a file, piece by piece if that is possible, JFR into b.
func (how Reading) decodeFile(f *os.File, b *profile.Builder) (*profile.Profile, error) {
	st, err := f.Stat()
	var head [max(64, jfr.Sniffed)]byte
	if err == nil && st.IsDir() {
		return how.decodeRepository(f.Name(), b)
	}
	if err == nil && st.Mode().IsRegular() {
		written := jfr.WrittenNow(f.Name())
		// Its writer may finish it from then on.
		if st, err = f.Stat(); err != nil {
			return nil, err
		}
		n, _ := f.ReadAt(head[:], 0)
		switch {
		case jfr.Is(head[:n]):
			how.meter.Size(st.Size())
			return unfinished(written)(jfr.ReadInto(b, how.meter.ReaderAt(f), st.Size()))
		case jfr.IsPacked(head[:n]):
			packed, err := jfr.OpenPacked(f)
			if err != nil {
				return nil, err
			}
			how.meter.Size(packed.Size())
			return unfinished(written)(jfr.ReadInto(b, packed, packed.Size()))
		case perfdata.Is(head[:n]):
			return perfdata.ReadInto(how.other(), how.meter.ReaderAt(f), st.Size(), st.ModTime())
		}
	}
	return how.decode(f, b, MaxUnpacked)
}

// unfinished adds to a recording that was not finished the note that says so.
func unfinished(written bool) func(*profile.Profile, error) (*profile.Profile, error) {
	return func(p *profile.Profile, err error) (*profile.Profile, error) {
		if err != nil || !p.Meta.Unfinished {
			return p, err
		}
		note := "this recording was not finished: it holds the first %v"
		if written {
			note = "this recording is still being written: these are its first %v"
		}
		p.Meta.Notes = append([]string{fmt.Sprintf(note, p.Meta.Duration.Round(100*time.Millisecond))}, p.Meta.Notes...)
		return p, nil
	}
}

// decodeRepository reads the directory in which a JVM keeps what it records.
func (how Reading) decodeRepository(dir string, b *profile.Builder) (*profile.Profile, error) {
	r, err := jfr.OpenRepository(dir)
	if errors.Is(err, jfr.ErrNoRepository) {
		return nil, fmt.Errorf("%w: %w", ErrNotRead, err)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	how.meter.Size(r.Size())
	return jfr.ReadInto(b, how.meter.ReaderAt(r), r.Size())
}

// Decode reads a profile whose content determines the format.
func Decode(r io.Reader) (*profile.Profile, error) {
	return decode(r, MaxUnpacked)
}

func decode(r io.Reader, limit int64) (*profile.Profile, error) {
	how := Reading{meter: memlimit.Start()}
	defer how.meter.Stop()
	p, err := how.decode(r, how.builder(profile.KeepSamples), limit)
	if err == nil {
		p.Clean()
	}
	return p, err
}

// decode reads from r, JFR into b; at most limit bytes if everything must be in memory.
func (how Reading) decode(r io.Reader, b *profile.Builder, limit int64) (*profile.Profile, error) {
	packed := &counted{in: r}
	in := bufio.NewReaderSize(packed, sniffed)
	switch head, _ := in.Peek(4); {
	case len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b:
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, cutOff(err)
		}
		in = bufio.NewReaderSize(z, sniffed)
	case isZstd(head):
		window := windowOf(in)
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, cutOff(err)
		}
		defer z.Close()
		how.meter.Window(window)
		in = bufio.NewReaderSize(unpacked{z}, sniffed)
	}
	in = bufio.NewReaderSize(how.meter.Reader(in), sniffed)
	head, err := in.Peek(sniffed)
	if err != nil && err != io.EOF {
		return nil, cutOff(err)
	}
	if len(head) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrNotRead)
	}
	if what := foreign(head); what != "" {
		return nil, fmt.Errorf("%w: it is %s; candid reads %s", ErrNotRead, what, readable())
	}
	if perfdata.Piped(head) {
		return perfdata.ReadStream(how.other(), &limited{in, maxText}, time.Now()) // it is being recorded
	}
	if isText(head) {
		read := collapsed.ReadInto
		switch {
		case perfscript.Is(head):
			read = perfscript.ReadInto
		case speedscope.Is(head):
			read = speedscope.ReadInto
		}
		p, err := read(how.other(), &limited{in, maxText})
		if errors.Is(err, collapsed.ErrSyntax) { // all other text is taken for collapsed stacks
			err = fmt.Errorf("%w; candid reads %s", err, readable())
		}
		return p, cutOff(err)
	}
	if recording := jfr.Is(head); recording || perfdata.Is(head) {
		all, err := spool(&proportionate{in: in, packed: packed, free: freelyUnpacked}, limit, maxSpooled)
		if err != nil {
			return nil, cutOff(err)
		}
		defer all.close()
		how.meter.Size(all.size)
		if recording { // head is overwritten by now
			return unfinished(false)(jfr.ReadInto(b, all, all.size))
		}
		return perfdata.ReadInto(how.other(), all, all.size, time.Time{})
	}
	all, err := spool(in, limit, limit)
	if err != nil {
		return nil, cutOff(err)
	}
	data, err := all.whole()
	if err != nil {
		return nil, err
	}
	p, err := pprof.ParseInto(how.other(), data)
	if errors.Is(err, pprof.ErrWire) { // everything that is not text is taken for pprof
		err = fmt.Errorf("%w: no format that candid knows begins so, or it is a pprof file that is cut off; candid reads %s", ErrNotRead, readable())
	}
	return p, err
}

// maxWindow is the maximum window of zstd data: the zstd program accepts the same without a further
// option.
const maxWindow = 128 << 20

// windowOf returns the size of the window that the beginning of zstd data asks for.
func windowOf(in *bufio.Reader) int64 {
	b, _ := in.Peek(zstd.HeaderMaxSize)
	var h zstd.Header
	if h.Decode(b) != nil || h.Skippable {
		return 0
	}
	return int64(min(h.WindowSize, maxWindow))
}

// isZstd reports whether a file with this beginning is compressed by zstd.
func isZstd(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	magic := binary.LittleEndian.Uint32(head)
	return magic == 0xfd2fb528 || magic&^0xf == 0x184d2a50 // a frame, or a skippable one
}

// unpacked returns errors of zstd data in words that name the format.
type unpacked struct{ z *zstd.Decoder }

func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.z.Read(p)
	switch {
	case err == nil || err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		err = fmt.Errorf("it is packed by zstd with a window of more than %d MiB: unpack it with zstd -d --long=31 first", maxWindow>>20)
	default:
		err = fmt.Errorf("unpack it as zstd's: %w", err)
	}
	return n, err
}

// limited reads at most left bytes, and fails if there are more.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if int64(n) > l.left {
		return 0, ErrTooLarge
	}
	l.left -= int64(n)
	return n, err
}

// cutOff returns an error that says in plain words that the end of a packed file is missing.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is cut off: its end is missing (%w)", err)
	}
	return err
}

// sniffed is how many bytes of a file are examined to determine its format.
const sniffed = 4096

// foreign returns what a file is if it is of a known format that cannot be read, otherwise "".
func foreign(head []byte) string {
	trimmed := bytes.TrimLeft(head, " \t\r\n\ufeff")
	switch {
	case bytes.HasPrefix(bytes.ToLower(trimmed), []byte("<!doctype")) || bytes.HasPrefix(bytes.ToLower(trimmed), []byte("<html")):
		return "a page of HTML"
	case bytes.HasPrefix(trimmed, []byte("{")) && !speedscope.Is(head):
		return "JSON, but not speedscope's"
	case otlp.Is(head):
		return "a profile of OpenTelemetry's"
	}
	return ""
}

// isText reports whether a file begins like text. A profile in protocol buffer format begins with
// small numbers, which are control characters.
func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		switch {
		case r == utf8.RuneError && n == 1:
			return !utf8.FullRune(head) // cut by the end of what is examined
		case r < ' ' && r != '\t' && r != '\n' && r != '\r':
			return false
		}
		head = head[n:]
	}
	return true
}
