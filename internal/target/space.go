package target

import (
	"slices"
	"sort"
)

// Space is what is known of a process's executable mappings from the kernel's records of them,
// without reading the process: it can be used when the process is gone. A Space is used from one
// goroutine; the zero value is an address space of which nothing is known yet.
type Space struct {
	// Whole says that the address space was seen from its beginning, so that no mapping is missing.
	// Mappings that were removed may still be listed.
	Whole bool
	// Program is the path of the file that was mapped first: the program. "" if that was not seen.
	Program string

	list   []Mapping // by address, not overlapping
	shared bool      // another Space has list too
	held   int       // how many of list are counted by Spaces
	origin *Origin   // mappings from before the first record, nil: none
}

// maxSpace bounds the mappings of one Space.
const maxSpace = 1 << 14

// Origin is the mappings of a process from before the first record of it. They are read on first
// use.
type Origin struct {
	pid  int
	done bool
	list []Mapping
	comm string
}

// Known returns the Space of a process that existed before the first record of it.
func Known(pid int) *Space { return &Space{origin: &Origin{pid: pid}} }

// Lose says that the process pid, whose Space this is, is about to execute another program, or has
// ended: its mappings from before the first record cannot be read any more. Processes that were
// forked from it share its Origin, and do not lose it.
func (s *Space) Lose(pid int) {
	if s != nil && s.origin != nil && s.origin.pid == pid {
		s.origin.done = true
	}
}

// load reads the mappings.
func (o *Origin) load() []Mapping {
	if o == nil {
		return nil
	}
	if !o.done {
		o.done = true
		if p, err := Open(o.pid); err == nil {
			if maps, err := p.Mappings(); err == nil {
				o.list, o.comm = executable(maps), p.comm
			}
			p.Close()
		}
	}
	return o.list
}

func executable(maps []Mapping) []Mapping {
	var out []Mapping
	for _, m := range maps {
		if m.Perm&PermExec != 0 && len(out) < maxSpace {
			out = append(out, m)
		}
	}
	return out
}

// Fork returns the Space of a process that was forked from this one's.
func (s *Space) Fork() *Space {
	s.shared = true
	c := *s
	c.held = 0
	return &c
}

// Map adds a mapping, which replaces what was there.
func (s *Space) Map(m Mapping) {
	if m.End <= m.Start {
		return
	}
	if s.Whole && s.Program == "" && m.FileBacked() {
		s.Program = m.Path
	}
	if s.shared {
		s.list, s.shared = slices.Clone(s.list), false
	}
	s.list = PutOver(s.list, m)
	if len(s.list) > maxSpace {
		s.list = slices.Delete(s.list, 0, len(s.list)-maxSpace)
	}
}

// Mappings returns the executable mappings by address. The slice stays the Space's.
func (s *Space) Mappings() []Mapping {
	first := s.origin.load()
	if len(first) == 0 {
		return s.list
	}
	out := slices.Clone(first)
	for _, m := range s.list {
		out = PutOver(out, m)
	}
	return out
}

// Name returns a name for a process with this Space if there is nothing better: its program's file,
// or the name of the process that it was forked from; "" if neither is known.
func (s *Space) Name() string {
	if s.Program != "" {
		return BaseName(s.Program)
	}
	if s.origin != nil {
		return s.origin.comm
	}
	return ""
}

// PutOver puts a mapping into a list by address, over whatever lies there: mappings that are partly
// covered are cut. It changes the list in place if possible.
func PutOver(list []Mapping, m Mapping) []Mapping {
	from := sort.Search(len(list), func(i int) bool { return list[i].End > m.Start })
	to := from
	put := make([]Mapping, 0, 3)
	if from < len(list) && list[from].Start < m.Start {
		left := list[from]
		left.End = m.Start
		put = append(put, left)
	}
	put = append(put, m)
	for ; to < len(list) && list[to].Start < m.End; to++ {
		if list[to].End > m.End {
			right := list[to]
			right.Offset += m.End - right.Start
			right.Start = m.End
			put = append(put, right)
		}
	}
	return slices.Replace(list, from, to, put...)
}
