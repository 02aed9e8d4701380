package symbol

import (
	"cmp"
	"slices"
	"time"
	"unsafe"
	"weak"

	"github.com/candid-profiler/candid/internal/fileid"
)

// Shared keeps the files that were read for one process for the next ones: a shell script runs the
// same few programs over and over, and all of them use the same library. It is used from one
// goroutine.
//
// A file that is evicted stays usable for those who have it; it is closed with the last of them, or
// by Shrink.
type Shared struct {
	files map[sharedKey]*nativeFile
	order []sharedKey // least recently requested first
	limit int         // bytes

	asked uint64                     // how often a name was requested
	held  []weak.Pointer[nativeFile] // all that are still in use
}

type sharedKey struct {
	content fileid.Content
	name    string // as in frames; a file may have several
}

const (
	// maxShared bounds the files that are kept.
	maxShared = 512
	// maxSharedBytes bounds the memory of their symbols, lines and names, including files that are
	// in use.
	maxSharedBytes = 256 << 20
)

// NewShared returns an empty Shared.
func NewShared() *Shared { return &Shared{files: map[sharedKey]*nativeFile{}, limit: maxSharedBytes} }

// Limit bounds the memory that the files take, in bytes.
func (s *Shared) Limit(bytes int) { s.limit = bytes }

func (s *Shared) find(p Place) *nativeFile {
	if s == nil || p.Content == (fileid.Content{}) {
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
	if s == nil || p.Content == (fileid.Content{}) {
		return
	}
	s.trim()
	if len(s.order) >= maxShared {
		s.drop(0)
	}
	k := sharedKey{content: p.Content, name: p.Name}
	nf.shared, nf.used = s, s.asked
	s.held = append(s.held, weak.Make(nf))
	if s.files[k] == nil {
		s.order = append(s.order, k)
	}
	s.files[k] = nf
}

func (s *Shared) drop(i int) {
	delete(s.files, s.order[i])
	s.order = slices.Delete(s.order, i, i+1)
}

// trim evicts files until the rest fits. The size of a file is known once it has been read. A file
// that takes half of the limit is evicted at once: it would drive out all others.
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

// Held returns about how many bytes of memory the files take, including those that are no longer
// kept for others.
func (s *Shared) Held() (sum int) {
	for _, nf := range s.users() {
		sum += nf.size()
	}
	return sum
}

// users returns all files that are in use, most recently used first.
func (s *Shared) users() (out []*nativeFile) {
	left := s.held[:0]
	for _, w := range s.held {
		if nf := w.Value(); nf != nil && !nf.released {
			out = append(out, nf)
			left = append(left, w)
		}
	}
	clear(s.held[len(left):])
	s.held = left
	slices.SortFunc(out, func(a, b *nativeFile) int { return cmp.Compare(b.used, a.used) })
	return out
}

// Rest frees what can be read again of files in which no new address was looked up for some time:
// first what look-ups have read of them, then debug information that was unpacked.
func (s *Shared) Rest(now time.Time) {
	for _, w := range s.held {
		nf := w.Value()
		if nf == nil || nf.released || !nf.here() || nf.f == nil {
			continue
		}
		if nf.lookedUp.IsZero() {
			nf.lookedUp = now
		}
		nf.f.rest(now.Sub(nf.lookedUp))
	}
}

// Shrink frees the memory of the least recently used files, so that the others take at most this
// many bytes, or little more: names that were looked up in files whose debug information had to be
// unpacked stay. Users of such a file read it again when another name in it is requested.
func (s *Shared) Shrink(bytes int) {
	sum := 0
	for _, nf := range s.users() {
		size := nf.size()
		if sum += size; sum <= bytes || size == 0 {
			continue
		}
		sum -= size
		if nf.f.doze() {
			// The rest of it is small, and names most of what it will be asked for.
			sum += nf.size()
			continue
		}
		for i, k := range s.order {
			if s.files[k] == nf {
				s.drop(i)
				break
			}
		}
		_ = nf.f.Close()
		nf.opened, nf.frames, nf.released = opened{}, nil, true
	}
}

// frameBytes is about how many bytes of memory the name of an address takes.
const frameBytes = 256

// size returns about how many bytes of memory a file takes; 0 while it is being read.
func (nf *nativeFile) size() int {
	if !nf.here() || nf.f == nil {
		return 0
	}
	return nf.f.memory() + len(nf.frames)*frameBytes
}

// memory returns about how many bytes of memory the file's tables take.
func (f *File) memory() int {
	t, pdb := &f.table, 0
	if f.pe != nil {
		t = &f.pe.table
		if f.pe.pdb != nil {
			pdb = f.pe.pdb.Memory()
		}
	}
	n := cap(t.syms) * int(unsafe.Sizeof(entry{}))
	for i := range t.strings {
		n += cap(t.strings[i].mem)
	}
	if d := f.lineData(); d != nil {
		n += d.Memory()
	}
	return n + pdb + len(f.named)*frameBytes
}
