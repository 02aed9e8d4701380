package format

import (
	"errors"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/spill"
)

const (
	// spooledInMemory is how many bytes of data from a pipe are kept in memory.
	spooledInMemory = 16 << 20
	// maxSpooled is the maximum size of data that needs random access.
	maxSpooled = 16 << 30
	// pieceSize is how much memory is allocated at once for what stays in memory: a buffer that
	// doubles takes three times its content while it grows.
	pieceSize = 1 << 20
)

// spooled is everything that came through a pipe, or out of gzip's or zstd's format.
type spooled struct {
	size           int64
	pieces         [][]byte // what is in memory, each but the last one full
	file           spill.File
	onDisk, noDisk bool
	inMemory, most int64 // limits, in memory and in total
}

// spool reads all of r, which must not exceed most bytes. Data that exceeds the limit for memory
// goes to a file without a name; if there is no room for it, everything stays in memory, up to a
// limit.
func spool(r io.Reader, limit, most int64) (*spooled, error) {
	s := &spooled{inMemory: limit, most: most}
	// One byte beyond the limit shows that there is more.
	if _, err := io.CopyBuffer(s, io.LimitReader(r, most+1), make([]byte, 256<<10)); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// Write appends to what there is.
func (s *spooled) Write(p []byte) (int, error) {
	end := s.size + int64(len(p))
	if end > s.most {
		return 0, s.tooLarge()
	}
	if !s.onDisk && !s.noDisk && end > spooledInMemory {
		if err := s.toDisk(); err != nil {
			s.noDisk = true
		}
	}
	if s.onDisk {
		if _, err := s.file.WriteAt(p, s.size); err == nil {
			s.size = end
			return len(p), nil
		}
		if err := s.toMemory(); err != nil {
			return 0, err
		}
	}
	if end > s.inMemory {
		return 0, ErrTooLarge
	}
	s.keep(p)
	s.size = end
	return len(p), nil
}

func (s *spooled) tooLarge() error {
	if s.most == maxSpooled {
		return fmt.Errorf("it has more than %d GiB, which candid reads of files only that are not packed", maxSpooled>>30)
	}
	return ErrTooLarge
}

// keep appends to what is in memory.
func (s *spooled) keep(p []byte) {
	for len(p) > 0 {
		last := len(s.pieces) - 1
		if last < 0 || len(s.pieces[last]) == pieceSize {
			s.pieces = append(s.pieces, make([]byte, 0, pieceSize))
			last++
		}
		n := min(pieceSize-len(s.pieces[last]), len(p))
		s.pieces[last] = append(s.pieces[last], p[:n]...)
		p = p[n:]
	}
}

// toDisk moves what is in memory to the file.
func (s *spooled) toDisk() error {
	for i, piece := range s.pieces {
		if _, err := s.file.WriteAt(piece, int64(i)*pieceSize); err != nil {
			s.file.Close()
			return err
		}
	}
	s.onDisk, s.pieces = true, nil
	return nil
}

// toMemory moves the content of a file that cannot grow back to memory.
func (s *spooled) toMemory() error {
	if s.size > s.inMemory {
		return ErrTooLarge
	}
	piece := make([]byte, pieceSize)
	for at := int64(0); at < s.size; at += pieceSize {
		part := piece[:min(pieceSize, s.size-at)]
		if _, err := s.file.ReadAt(part, at); err != nil {
			return err
		}
		s.keep(part)
	}
	s.file.Close()
	s.onDisk, s.noDisk = false, true
	return nil
}

// ReadAt implements io.ReaderAt.
func (s *spooled) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("a place before the beginning")
	}
	if off >= s.size {
		return 0, io.EOF
	}
	if left := s.size - off; int64(len(p)) > left {
		p, err = p[:left], io.EOF
	}
	if s.onDisk {
		n, failed := s.file.ReadAt(p, off)
		if n < len(p) {
			err = failed
		}
		return n, err
	}
	for n < len(p) {
		at := off + int64(n)
		n += copy(p[n:], s.pieces[at/pieceSize][at%pieceSize:])
	}
	return n, err
}

// whole returns everything as one slice, and frees it here.
func (s *spooled) whole() ([]byte, error) {
	defer s.close()
	all := make([]byte, s.size)
	if n, err := s.ReadAt(all, 0); int64(n) < s.size {
		return nil, err
	}
	return all, nil
}

func (s *spooled) close() {
	s.pieces = nil
	s.file.Close()
}
