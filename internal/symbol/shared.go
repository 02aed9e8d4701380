package symbol

import (
	"slices"
	"unsafe"
)

// Shared keeps the files that were read for one process for the next ones: a shell
// script runs the same few programs over and over, and all of them use the same
// library. It belongs to one goroutine.
//
// A file that falls out stays usable for those who have it; it is closed with the
// last of them.
type Shared struct {
	files map[sharedKey]*nativeFile
	order []sharedKey // the one that was asked for longest ago first
	limit int         // bytes
}

type sharedKey struct {
	content ContentID
	name    string // what frames say; a file may have several
}

const (
	// maxShared bounds the files that are kept.
	maxShared = 512
	// maxSharedBytes bounds what their symbols, lines and names take in memory,
	// those of files that are in use besides included.
	maxSharedBytes = 256 << 20
)

// NewShared makes an empty one.
func NewShared() *Shared { return &Shared{files: map[sharedKey]*nativeFile{}, limit: maxSharedBytes} }

// Limit bounds what the files take in memory, bytes.
func (s *Shared) Limit(bytes int) { s.limit = bytes }

func (s *Shared) find(p Place) *nativeFile {
	if s == nil || p.Content == (ContentID{}) {
		return nil
	}
	k := sharedKey{content: p.Content, name: p.Name}
	nf := s.files[k]
	if nf != nil {
		i := slices.Index(s.order, k)
		s.order = append(slices.Delete(s.order, i, i+1), k)
	}
	return nf
}

func (s *Shared) keep(p Place, nf *nativeFile) {
	if s == nil || p.Content == (ContentID{}) {
		return
	}
	s.trim()
	if len(s.order) >= maxShared {
		s.drop(0)
	}
	k := sharedKey{content: p.Content, name: p.Name}
	nf.shared = true
	if s.files[k] == nil {
		s.order = append(s.order, k)
	}
	s.files[k] = nf
}

func (s *Shared) drop(i int) {
	delete(s.files, s.order[i])
	s.order = slices.Delete(s.order, i, i+1)
}

// trim drops what there is no room for. How large a file is shows when it has been
// read. One that takes half of the room goes at once: it would drive out all others.
func (s *Shared) trim() {
	sum := 0
	for i := len(s.order) - 1; i >= 0; i-- {
		if size := s.files[s.order[i]].size(); size > s.limit/2 || sum+size > s.limit {
			s.drop(i)
		} else {
			sum += size
		}
	}
}

// frameBytes is about what the name of an address takes in memory.
const frameBytes = 256

// size is about how many bytes a file takes in memory; 0 while it is being read.
func (nf *nativeFile) size() int {
	if !nf.here() || nf.f == nil {
		return 0
	}
	return nf.f.memory() + len(nf.frames)*frameBytes
}

// memory is about how many bytes of memory the file's tables take.
func (f *File) memory() int {
	n := cap(f.table.syms) * int(unsafe.Sizeof(entry{}))
	for i := range f.table.strings {
		n += len(f.table.strings[i].mem)
	}
	if f.lines != nil {
		n += f.lines.Memory()
	}
	return n + len(f.named)*frameBytes
}
