package symbol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/ulikunitz/xz/lzma"
)

const (
	maxMiniDebug = 64 << 20 // unpacked .gnu_debugdata; Fedora's largest is below 10 MiB
	maxXZWindow  = 64 << 20 // xz's own largest preset
)

// miniDebug opens .gnu_debugdata: an ELF file with the symbols that .dynsym lacks, compressed with
// xz.
func (f *File) miniDebug() *image {
	s := f.m.Section(".gnu_debugdata")
	if s == nil {
		return nil
	}
	m, err := openMiniDebug(f.m, s)
	if err != nil {
		f.notes = append(f.notes, fmt.Errorf("section .gnu_debugdata: %w", err))
		return nil
	}
	return m
}

func openMiniDebug(m *image, s *objfile.Section) (*image, error) {
	packed, err := m.Raw(s, maxMiniDebug)
	if err != nil {
		return nil, err
	}
	return unpackMiniDebug(packed)
}

func unpackMiniDebug(packed []byte) (*image, error) {
	window, data, err := xzBlock(packed)
	if err != nil {
		return nil, err
	}
	z, err := lzma.Reader2Config{DictCap: window}.NewReader2(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(z, maxMiniDebug+1))
	if err != nil {
		return nil, err
	}
	if n > maxMiniDebug {
		return nil, fmt.Errorf("unpacked: %w", ErrTooLarge)
	}
	return openImage(bytes.NewReader(out.Bytes()), n)
}

var errXZ = errors.New("not an xz stream that can be read here")

// xzBlock finds the data of an xz stream's first block, and the window size that they need. The
// container is read here because the library allocates the window that the file asks for, up to 4
// GiB. (The xz file format, 2.1 and 3.1. xz writes data of less than 24 MiB as one block.)
func xzBlock(b []byte) (window int, data []byte, err error) {
	const lzma2 = 0x21
	if len(b) < 24 || string(b[:6]) != "\xfd7zXZ\x00" || b[12] == 0 {
		return 0, nil, errXZ
	}
	head := b[12:]
	size := (int(head[0]) + 1) * 4
	flags := head[1]
	if size > len(head) {
		return 0, nil, errXZ
	}
	r := bytes.NewReader(head[2:size])
	for _, bit := range []byte{0x40, 0x80} { // compressed and uncompressed size, if present
		if flags&bit != 0 {
			if _, err := binary.ReadUvarint(r); err != nil {
				return 0, nil, errXZ
			}
		}
	}
	id, _ := binary.ReadUvarint(r)
	props, _ := binary.ReadUvarint(r)
	code, err := r.ReadByte()
	if flags&3 != 0 || id != lzma2 || props != 1 || err != nil {
		return 0, nil, fmt.Errorf("%w: filter %#x", errXZ, id)
	}
	n, err := lzma.DecodeDictCap(code)
	if err != nil {
		return 0, nil, err
	}
	if n > maxXZWindow {
		return 0, nil, fmt.Errorf("window of %d bytes: %w", n, ErrTooLarge)
	}
	return int(n), head[size:], nil
}
