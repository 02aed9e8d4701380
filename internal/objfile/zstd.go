package objfile

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// inflateZstd unpacks a zstd-compressed section of size bytes.
func inflateZstd(name string, b []byte, size, limit uint64, stop func() bool) ([]byte, error) {
	if size > limit {
		return nil, fmt.Errorf("section %s: %d bytes unpacked: %w", name, size, ErrTooLarge)
	}
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", name, err)
	}
	defer z.Close()
	return readUnpacked(name, &stoppable{z, stop}, size, len(b))
}
