package target

import (
	"errors"
	"io/fs"

	"github.com/candid-profiler/candid/internal/cpu"
)

// Saved is what was saved of a process, perhaps on another machine and another operating system.
type Saved struct {
	PID      int
	Comm     string    // name of its first thread
	Exe      string    // path of its program
	Arch     cpu.Arch  // of its code; 0: this machine's
	Mappings []Mapping // all of them, by address
	Memory   Reader    // nil: none of its memory was saved
	// Open opens the file behind a mapping, or what was saved of it. It must be set.
	Open func(Mapping) (File, error)
	// OpenPath opens a file by its path in the process's root; nil: none was saved.
	OpenPath func(path string) (File, error)
	TIDs     []uint32 // of its threads, by ascending number
}

// Process returns a process that consists of what was saved. Nothing is looked up on this machine.
// The Saved must not be changed afterwards.
func (s *Saved) Process() *Process {
	p := Ended(s.PID, s.Comm, &Space{Whole: true, Program: s.Exe, list: s.Mappings})
	p.saved = s
	if s.Memory != nil {
		p.mem = newMemory(savedMemory{s.Memory})
	}
	return p
}

// OpenPath is OpenInRoot for files of which only pieces are read.
func (p *Process) OpenPath(path string) (File, error) {
	switch {
	case p.saved == nil:
		f, err := p.OpenInRoot(path)
		if err != nil {
			return nil, err
		}
		return f, nil
	case p.saved.OpenPath != nil:
		return p.saved.OpenPath(path)
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

// TIDs returns the ids of the process's threads, by ascending number.
func (p *Process) TIDs() ([]uint32, error) {
	if p.saved != nil {
		if p.saved.TIDs == nil {
			return nil, errors.New("its threads were not saved")
		}
		return p.saved.TIDs, nil
	}
	threads, err := p.Threads()
	out := make([]uint32, len(threads))
	for i, t := range threads {
		out[i] = uint32(t.TID)
	}
	return out, err
}

// IsSaved reports whether the process is not one of this machine.
func (p *Process) IsSaved() bool { return p.saved != nil }

// savedMemory is memory that was saved.
type savedMemory struct{ Reader }

func (m savedMemory) readV(reqs []Read) {
	for i := range reqs {
		r := &reqs[i]
		r.OK = len(r.Buf) == 0 || m.ReadAt(r.Buf, r.Addr) == nil
	}
}
func (savedMemory) gone() bool     { return false }
func (savedMemory) released() bool { return false }
func (savedMemory) close()         {}
