package symbol

// Shared keeps the files that were read for one process for the next ones: a shell
// script runs the same few programs over and over, and all of them use the same
// library. It belongs to one goroutine.
//
// A file that falls out stays usable for those who have it; it is closed with the
// last of them.
type Shared struct {
	files map[sharedKey]*nativeFile
	order []sharedKey // the oldest first
}

type sharedKey struct {
	content ContentID
	name    string // what frames say; a file may have several
}

// maxShared bounds the files that are kept.
const maxShared = 512

// NewShared makes an empty one.
func NewShared() *Shared { return &Shared{files: map[sharedKey]*nativeFile{}} }

func (s *Shared) find(p Place) *nativeFile {
	if s == nil || p.Content == (ContentID{}) {
		return nil
	}
	return s.files[sharedKey{content: p.Content, name: p.Name}]
}

func (s *Shared) keep(p Place, nf *nativeFile) {
	if s == nil || p.Content == (ContentID{}) {
		return
	}
	if len(s.order) >= maxShared {
		delete(s.files, s.order[0])
		s.order = s.order[1:]
	}
	k := sharedKey{content: p.Content, name: p.Name}
	nf.shared = true
	s.files[k] = nf
	s.order = append(s.order, k)
}
