package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zlib"
)

// oldPacked is how the names of sections begin that were compressed before ELF had a flag for that.
const oldPacked = ".zdebug_"

// ErrStopped is wrapped by the error of a section whose unpacking was ended.
var ErrStopped = errors.New("its unpacking was ended")

// DebugSection reads .debug_<name>, decompressed, at most limit bytes. It is nil without an error if the file
// has none. Unpacking ends with ErrStopped once stop, if it is not nil, returns true.
func (f *File) DebugSection(name string, limit uint64, stop func() bool) ([]byte, error) {
	s := f.debugSection(name)
	if s == nil {
		return nil, nil
	}
	return f.data(s, limit, stop)
}

func (f *File) debugSection(name string) *Section {
	if s := f.Section(".debug_" + name); s != nil {
		return s
	}
	return f.Section(oldPacked + name)
}

// StoredDebugSection returns a reader of .debug_<name> that holds nothing in memory. It is nil without an
// error if the file has none, or if it is compressed. The error wraps ErrTooLarge if it has more than limit
// bytes, and io.ErrUnexpectedEOF if the file ends before.
func (f *File) StoredDebugSection(name string, limit uint64) (*io.SectionReader, error) {
	s := f.debugSection(name)
	switch {
	case s == nil || s.Compressed():
		return nil, nil
	case s.Size > limit:
		return nil, fmt.Errorf("section %s of %d bytes: %w", s.Name, s.Size, ErrTooLarge)
	case s.Offset > uint64(f.size) || s.Size > uint64(f.size)-s.Offset:
		return nil, fmt.Errorf("section %s: %w", s.Name, io.ErrUnexpectedEOF)
	}
	return f.SectionReader(s), nil
}

// Compressed reports whether the section's content is compressed, in either way.
func (s *Section) Compressed() bool { return s.Packed() || strings.HasPrefix(s.Name, oldPacked) }

// Data reads a section's bytes, decompressed, at most limit of them.
func (f *File) Data(s *Section, limit uint64) ([]byte, error) { return f.data(s, limit, nil) }

func (f *File) data(s *Section, limit uint64, stop func() bool) ([]byte, error) {
	b, err := f.Raw(s, limit)
	switch {
	case err != nil:
		return nil, err
	case s.Packed():
		return f.inflate(s, b, limit, stop)
	case !strings.HasPrefix(s.Name, oldPacked):
		return b, nil
	case len(b) < 12 || string(b[:4]) != "ZLIB":
		return nil, fmt.Errorf("section %s: no ZLIB header", s.Name)
	}
	return inflateZlib(s.Name, b[12:], binary.BigEndian.Uint64(b[4:]), limit, stop)
}

// UnpackedSize returns how many bytes a section has once it is decompressed, by what its header claims.
func (f *File) UnpackedSize(s *Section) uint64 {
	old := strings.HasPrefix(s.Name, oldPacked)
	b := make([]byte, 24)
	if !s.Packed() && !old || s.Size < uint64(len(b)) || s.Offset > uint64(f.size) {
		return s.Size
	}
	if n, _ := f.r.ReadAt(b, int64(s.Offset)); n < len(b) {
		return s.Size
	}
	switch {
	case !s.Packed():
		return binary.BigEndian.Uint64(b[4:])
	case f.Wide():
		return f.Order.Uint64(b[8:])
	}
	return uint64(f.Order.Uint32(b[4:]))
}

// inflate undoes SHF_COMPRESSED (ELF gABI, "Section Compression").
func (f *File) inflate(s *Section, b []byte, limit uint64, stop func() bool) ([]byte, error) {
	var size uint64
	head := 12
	if f.Wide() {
		head = 24
	}
	if len(b) < head {
		return nil, fmt.Errorf("section %s: compression header cut off", s.Name)
	}
	if f.Wide() {
		size = f.Order.Uint64(b[8:])
	} else {
		size = uint64(f.Order.Uint32(b[4:]))
	}
	switch typ := elf.CompressionType(f.Order.Uint32(b)); typ {
	case elf.COMPRESS_ZLIB:
		return inflateZlib(s.Name, b[head:], size, limit, stop)
	case elf.COMPRESS_ZSTD:
		return inflateZstd(s.Name, b[head:], size, limit, stop)
	default:
		return nil, fmt.Errorf("section %s: unknown compression %d", s.Name, typ)
	}
}

func inflateZlib(name string, b []byte, size, limit uint64, stop func() bool) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("section %s: %d bytes unpacked: %w", name, size, ErrTooLarge)
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", name, err)
	}
	return readUnpacked(name, &stoppable{z, stop}, size, len(b))
}

// stoppable reads until stop returns true. A decoder's reads are of some 32 KB each.
type stoppable struct {
	in   io.Reader
	stop func() bool // nil: never
}

func (s *stoppable) Read(p []byte) (int, error) {
	if s.stop != nil && s.stop() {
		return 0, ErrStopped
	}
	return s.in.Read(p)
}

// mostRatio is more than zlib's largest ratio of unpacked to packed bytes.
const mostRatio = 1100

// readUnpacked reads exactly size bytes, which were packed in so many. The buffer grows with the data
// that arrives where size is more than they can hold, so that a false size in a small file costs
// nothing; a buffer that grows takes three times its content.
func readUnpacked(name string, r io.Reader, size uint64, packed int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(int(min(size, max(1<<20, mostRatio*uint64(packed)))) + bytes.MinRead)
	n, err := io.Copy(&out, io.LimitReader(r, int64(size)))
	if err != nil {
		return nil, fmt.Errorf("section %s: unpack: %w", name, err)
	}
	if uint64(n) != size {
		return nil, fmt.Errorf("section %s: %d bytes unpacked, header says %d", name, n, size)
	}
	return out.Bytes(), nil
}
