package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
)

// debugSection reads .debug_<name>, decompressed, at most limit bytes. It is
// nil without an error if the file has none.
func (m *image) debugSection(name string, limit uint64) ([]byte, error) {
	if s := m.find(".debug_" + name); s != nil {
		b, err := m.raw(s, limit)
		if err != nil || s.flags&elf.SHF_COMPRESSED == 0 {
			return b, err
		}
		return m.inflate(s, b, limit)
	}
	if s := m.find(".zdebug_" + name); s != nil {
		b, err := m.raw(s, limit)
		if err != nil {
			return nil, err
		}
		if len(b) < 12 || string(b[:4]) != "ZLIB" {
			return nil, fmt.Errorf("section %s: no ZLIB header", s.name)
		}
		return inflateZlib(s.name, b[12:], binary.BigEndian.Uint64(b[4:]), limit)
	}
	return nil, nil
}

// unpackedSize returns how many bytes a compressed section claims to unpack to.
func (m *image) unpackedSize(s *section) uint64 {
	b := make([]byte, 24)
	if s.size < uint64(len(b)) {
		return s.size
	}
	if _, err := m.r.ReadAt(b, int64(s.off)); err != nil {
		return s.size
	}
	switch {
	case s.flags&elf.SHF_COMPRESSED == 0: // .zdebug_
		return binary.BigEndian.Uint64(b[4:])
	case m.is64:
		return m.order.Uint64(b[8:])
	}
	return uint64(m.order.Uint32(b[4:]))
}

// inflate undoes SHF_COMPRESSED (ELF gABI, "Section Compression").
func (m *image) inflate(s *section, b []byte, limit uint64) ([]byte, error) {
	var size uint64
	head := 12
	if m.is64 {
		head = 24
	}
	if len(b) < head {
		return nil, fmt.Errorf("section %s: compression header cut off", s.name)
	}
	if m.is64 {
		size = m.order.Uint64(b[8:])
	} else {
		size = uint64(m.order.Uint32(b[4:]))
	}
	switch typ := elf.CompressionType(m.order.Uint32(b)); typ {
	case elf.COMPRESS_ZLIB:
		return inflateZlib(s.name, b[head:], size, limit)
	case elf.COMPRESS_ZSTD:
		return inflateZstd(s.name, b[head:], size, limit)
	default:
		return nil, fmt.Errorf("section %s: unknown compression %d", s.name, typ)
	}
}

func inflateZlib(name string, b []byte, size, limit uint64) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("section %s: %d bytes unpacked: %w", name, size, ErrTooLarge)
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", name, err)
	}
	return readUnpacked(name, z, size, len(b))
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
