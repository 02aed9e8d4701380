package jfr

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// ErrNoRepository is the error if a directory contains no chunks of a JVM.
var ErrNoRepository = errors.New("it is a directory, and not one in which a JVM keeps what it records (jcmd PID JFR.configure tells where that is)")

// chunkName matches the names of chunks in a JVM's repository, which are the times when they were
// begun: jdk.jfr.internal.Repository.
var chunkName = regexp.MustCompile(`^\d{4}(_\d\d){5}(_\d{1,6})?\.jfr$`)

// maxRepository is how many chunks a repository may have: at the usual 12 MB each these are 48 GB.
const maxRepository = 4096

// Repository is the directory in which a JVM keeps what it records, a file for each chunk, read as
// if it were one file. For the chunk that is being written it has what the JVM has flushed,
// according to the header when it was opened. JDK 11 writes nothing into a chunk's header before
// the chunk has ended.
type Repository struct {
	parts []repositoryPart
	size  int64
}

type repositoryPart struct {
	f        *os.File
	head     [headerSize]byte
	at, size int64 // in the whole
}

// OpenRepository opens the chunks that exist now. The caller must close it.
func OpenRepository(dir string) (*Repository, error) {
	names, err := chunksIn(dir)
	if err != nil {
		return nil, err
	}
	r := &Repository{}
	for _, name := range names {
		if err := r.open(filepath.Join(dir, name)); err != nil {
			r.Close()
			return nil, err
		}
	}
	if len(r.parts) == 0 {
		return nil, fmt.Errorf("%w: none of its chunks says yet what is in it", ErrMalformed)
	}
	return r, nil
}

// chunksIn returns the names of the chunks in a directory, in the order of time.
func chunksIn(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	const most = 1 << 16 // bounds other entries
	entries, err := d.ReadDir(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && chunkName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	switch {
	case len(names) == 0:
		return nil, ErrNoRepository
	case len(names) > maxRepository:
		return nil, fmt.Errorf("it has %d chunks, more than %d", len(names), maxRepository)
	}
	slices.Sort(names)
	return names, nil
}

// open adds a chunk, unless it is gone or its header has nothing yet.
func (r *Repository) open(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the JVM keeps only as much as it was told to
	}
	if err != nil {
		return err
	}
	p := repositoryPart{f: f, at: r.size}
	if err := p.readHead(); err != nil {
		return f.Close() // it was only begun
	}
	p.size = int64(binary.BigEndian.Uint64(p.head[atSize:]))
	// The size is queried after the header was read: the file has what its header says by then, or
	// never will.
	if st, err := f.Stat(); err != nil || !Is(p.head[:]) || p.size < headerSize || p.size > st.Size() {
		return f.Close() // it was only begun, or is something else
	}
	r.parts = append(r.parts, p)
	r.size += p.size
	return nil
}

// readHead reads the header at a moment when the JVM is not changing it.
func (p *repositoryPart) readHead() error {
	const changing = 255 // jdk.jfr.internal.consumer.ChunkHeader
	for range 100 {
		if _, err := p.f.ReadAt(p.head[:], 0); err != nil {
			return err
		}
		before := p.head
		if _, err := p.f.ReadAt(p.head[:], 0); err != nil {
			return err
		}
		if p.head == before && p.head[atFlags] != changing {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("its header changes all the time")
}

// Size returns the length of all chunks together, in bytes.
func (r *Repository) Size() int64 { return r.size }

// ReadAt implements io.ReaderAt.
func (r *Repository) ReadAt(b []byte, off int64) (n int, err error) {
	i, found := slices.BinarySearchFunc(r.parts, off, func(p repositoryPart, off int64) int {
		switch {
		case p.at+p.size <= off:
			return -1
		case p.at > off:
			return 1
		}
		return 0
	})
	if !found {
		return 0, io.EOF
	}
	for ; i < len(r.parts) && n < len(b); i++ {
		p := &r.parts[i]
		within := off + int64(n) - p.at
		want := b[n:min(int64(len(b)), int64(n)+p.size-within)]
		if within < headerSize {
			n += copy(want, p.head[within:])
			if len(want) <= int(headerSize-within) {
				continue
			}
			want, within = want[headerSize-within:], headerSize
		}
		m, err := p.f.ReadAt(want, within)
		if n += m; m < len(want) {
			return n, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close closes all files.
func (r *Repository) Close() error {
	var errs []error
	for i := range r.parts {
		errs = append(errs, r.parts[i].f.Close())
	}
	return errors.Join(errs...)
}

// RepositoryState returns what shows whether a repository has changed: how many bytes its chunks
// have, and when the last one was written to.
func RepositoryState(dir string) (bytes int64, changed time.Time, err error) {
	names, err := chunksIn(dir)
	if err != nil {
		return 0, time.Time{}, err
	}
	for _, name := range names {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			continue // just deleted
		}
		bytes += st.Size()
		if st.ModTime().After(changed) {
			changed = st.ModTime()
		}
	}
	return bytes, changed, nil
}
