package objfile

import (
	"bytes"
	"compress/zlib"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Unpacking a section ends when it is told to, and not only when the section is unpacked.
func TestUnpackingIsStopped(t *testing.T) {
	const size = 16 << 20
	plain := make([]byte, size)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	if _, err := w.Write(plain); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		inflate func(name string, b []byte, size, limit uint64, stop func() bool) ([]byte, error)
		packed  []byte
	}{"zlib": {inflateZlib, z.Bytes()}, "zstd": {inflateZstd, e.EncodeAll(plain, nil)}} {
		asked := 0
		if _, err := c.inflate("s", c.packed, size, size, func() bool { asked++; return asked > 3 }); !errors.Is(err, ErrStopped) || asked != 4 {
			t.Errorf("%s: %v after %d times", name, err, asked)
		}
		for _, stop := range []func() bool{nil, func() bool { return false }} {
			if b, err := c.inflate("s", c.packed, size, size, stop); err != nil || !bytes.Equal(b, plain) {
				t.Errorf("%s: %d bytes, %v", name, len(b), err)
			}
		}
	}
}
