package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// scan visits the blocks of a file from an offset on, and returns where the last one that is whole
// ends. damaged is called for each range of bytes that are no block; at the end of the file they may
// be a block that is being written. visit returns an error for a block that is whole but invalid,
// which is damaged too.
func scan(f *os.File, kind byte, offset int64, visit func(h header, at int64, body []byte) error, damaged func(from, to int64, h *header, why error)) (end int64, err error) {
	fi, err := f.Stat()
	if err != nil {
		return offset, err
	}
	size := fi.Size()
	in := &window{f: f, at: offset, size: size}
	end = offset
	for in.at < size {
		at := in.at
		head, err := in.peek(headerSize)
		if err != nil {
			return end, err
		}
		h, ok := parseHeader(head)
		if ok && h.kind == kind && h.version > version {
			return end, fmt.Errorf("%s: %w", f.Name(), ErrNewer)
		}
		if !ok || h.kind != kind {
			to, err := in.resync(kind)
			if err != nil {
				return end, err
			}
			damaged(at, to, nil, errors.New("no block begins there"))
			continue
		}
		all, err := in.peek(headerSize + int(h.length))
		if err != nil {
			return end, err
		}
		if len(all) < headerSize+int(h.length) {
			damaged(at, size, &h, errors.New("its end is missing"))
			return end, nil
		}
		in.skip(len(all))
		if err := visit(h, at, all[headerSize:]); err != nil {
			if errors.Is(err, errStop) {
				return end, nil
			}
			damaged(at, in.at, &h, err)
			// The length of a damaged block is right: its header has a checksum of its own.
		}
		end = in.at
	}
	return end, nil
}

// errStop is returned by a visit that wants no more blocks.
var errStop = errors.New("stop")

// window reads a file from its beginning to its end.
type window struct {
	f    *os.File
	at   int64
	size int64 // of the file when reading began: what is appended later belongs to the next time
	buf  []byte
	rest []byte // of buf
}

const readAhead = 1 << 20

// peek returns the next n bytes, or as many as there are.
func (w *window) peek(n int) ([]byte, error) {
	if len(w.rest) >= n {
		return w.rest[:n], nil
	}
	have := len(w.rest)
	left := w.size - w.at - int64(have)
	more := int(min(int64(max(readAhead, n-have)), left))
	if more > 0 {
		if cap(w.buf) < have+more {
			buf := make([]byte, have+more)
			copy(buf, w.rest)
			w.buf = buf
		} else {
			w.buf = w.buf[:have+more]
			copy(w.buf, w.rest)
		}
		got, err := w.f.ReadAt(w.buf[have:have+more], w.at+int64(have))
		if err != nil && err != io.EOF {
			return nil, err
		}
		if got < more {
			w.size = w.at + int64(have+got) // the file was cut meanwhile
		}
		w.rest = w.buf[:have+got]
	}
	return w.rest[:min(n, len(w.rest))], nil
}

func (w *window) skip(n int) {
	w.rest = w.rest[min(n, len(w.rest)):]
	w.at += int64(n)
}

// resync skips to the next header of a kind, or to the end of the file, and returns where that is.
func (w *window) resync(kind byte) (int64, error) {
	w.skip(1)
	for w.at < w.size {
		b, err := w.peek(readAhead)
		if err != nil {
			return w.at, err
		}
		i := bytes.Index(b, []byte(magic))
		switch {
		case len(b) == 0:
			return w.at, nil
		case i < 0:
			w.skip(max(len(b)-len(magic)+1, 1))
			continue
		case i > 0:
			w.skip(i)
		}
		if b, err = w.peek(headerSize); err != nil {
			return w.at, err
		}
		if h, ok := parseHeader(b); ok && h.kind == kind {
			return w.at, nil
		}
		w.skip(1)
	}
	return w.at, nil
}
