package format

import (
	"bytes"
	"fmt"
	"io"

	"github.com/candid-profiler/candid/internal/spill"
)

const (
	// spooledInMemory is how much of what comes through a pipe is kept in memory.
	spooledInMemory = 16 << 20
	// maxSpooled is how much is taken, at most, of what has to be read here and there.
	maxSpooled = 16 << 30
)

// spooled is all that came through a pipe, or out of gzip's form.
type spooled struct {
	io.ReaderAt
	size int64
	file spill.File
}

// spool takes all of r. What is more than there should be in memory goes to a file without a
// name; where none can be made it stays in memory, up to a limit.
func spool(r io.Reader, limit int64) (*spooled, error) {
	s := &spooled{}
	first, err := io.ReadAll(io.LimitReader(r, min(spooledInMemory, limit)))
	if err != nil {
		return nil, err
	}
	s.ReaderAt, s.size = bytes.NewReader(first), int64(len(first))
	if s.size < min(spooledInMemory, limit) {
		return s, nil
	}
	if _, err := s.file.WriteAt(first, 0); err != nil {
		s.close()
		rest, err := io.ReadAll(&limited{r, limit - s.size})
		s.ReaderAt, s.size = bytes.NewReader(append(first, rest...)), s.size+int64(len(rest))
		return s, err
	}
	n, err := io.Copy(io.NewOffsetWriter(&s.file, s.size), io.LimitReader(r, maxSpooled-s.size))
	if s.size += n; err == nil && s.size == maxSpooled {
		err = fmt.Errorf("it has more than %d GiB, which candid reads of files only that are not packed", maxSpooled>>30)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	s.ReaderAt = &s.file
	return s, nil
}

func (s *spooled) close() { s.file.Close() }
