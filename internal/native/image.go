package native

import (
	"io"
	"sort"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/pe"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/winunwind"
)

// peImage is an image of Windows, which Wine maps into processes of other systems.
type peImage struct {
	*pe.Image
	functions *pe.Functions // nil: none
	unwinder  winunwind.Unwinder
}

// openPE reads the headers of a PE image; nil if there is none.
func openPE(r io.ReaderAt) *peImage {
	image, err := pe.Open(r)
	if err != nil {
		return nil
	}
	m := &peImage{Image: image}
	m.unwinder.Reader = image
	if t, err := image.Functions(); err == nil {
		m.functions, m.unwinder.Find = t, t.Lookup
	}
	return m
}

// peRule returns the rule for the code at an address of a PE image, and how certain it is. at is pc,
// or lies in the call before it.
func (s *Stepper) peRule(c *walk.Cursor, m *Module, a area, at, pc uint64) (*ehframe.Rule, walk.Provenance) {
	image := m.File.image
	if image.functions != nil {
		if f, ok := image.functions.Lookup(uint32(at - m.Bias)); ok {
			r, err := image.unwinder.Rule(f, uint32(at-m.Bias), c.Leaf)
			if err != nil {
				return nil, walk.Heuristic
			}
			if c.Leaf && noFrame(r) {
				// Tables of assembler code may leave out what it pushes: Wine's RtlCaptureContext.
				if read := s.reader.rule(s.process.Memory(), at, pc, m.Bias+uint64(f.Begin), m.Bias+uint64(f.End)); read != nil && !s.reader.weak && !noFrame(read) {
					return read, m.proof(s.process.Memory(), at, false)
				}
			}
			return r, walk.Exact
		}
	}
	// A function without an entry is a leaf, except in assembler code, whose authors forget that.
	mem := s.process.Memory()
	r := s.reader.rule(mem, at, pc, a.start, a.end)
	if r == nil || noFrame(r) {
		// As the convention says, even if the code ends with a jump that may be a switch.
		return image.unwinder.Leaf(), m.proof(mem, at, false)
	}
	return r, m.proof(mem, at, s.reader.weak)
}

// noFrame reports whether a rule says that the return address is on top of the stack, and no register
// has been changed.
func noFrame(r *ehframe.Rule) bool {
	return r.CFAReg == cpu.RSP && r.CFAExpr == nil && r.CFAOff == 8 && r.RA.How == ehframe.AtCFA && r.RA.Off == -8 && len(r.Saves) == 0
}

// holds reports whether the memory around an address is the same as in the image's file.
func (m *peImage) holds(mem walk.Memory, bias, at, before, behind uint64) bool {
	sec := m.Section(uint32(at - bias))
	if sec == nil || !sec.Executable() || before+behind > 256 {
		return false
	}
	off := at - bias - uint64(sec.RVA)
	from, to := off-min(off, before), min(off+behind, uint64(min(sec.Size, sec.Raw)))
	if to <= from {
		return false
	}
	var now, file [256]byte
	n := to - from
	return mem.Bytes(bias+uint64(sec.RVA)+from, now[:n]) && m.ReadRVA(file[:n], sec.RVA+uint32(from)) && now == file
}

// imageAlign is the alignment of the start of PE images.
const imageAlign = 64 << 10

// withImages returns the mappings, in which those parts of anonymous memory that hold code of PE
// images are mappings of the images' files: a file whose sections do not begin on pages is read into
// memory by Wine, not mapped; only its headers are mapped. maps is not changed.
func (s *Stepper) withImages(maps []target.Mapping) []target.Mapping {
	var out []target.Mapping // nil as long as it would be the same
	var head target.Mapping
	end := uint64(0) // of the mappings that follow the head without a gap
	for i, m := range maps {
		switch {
		case m.FileBacked() && m.Offset == 0 && m.Start%imageAlign == 0 && m.Perm&target.PermExec == 0:
			head, end = m, m.End
		case m.Start != end:
			end = 0
		case end != 0:
			end = m.End
		}
		if end != 0 && m.Perm&target.PermExec != 0 && m.Anonymous() {
			if parts := s.sections(head, m); len(parts) > 0 {
				if out == nil {
					out = append(out, maps[:i]...)
				}
				out = append(out, parts...)
				continue
			}
		}
		if out != nil {
			out = append(out, m)
		}
	}
	if out == nil {
		return maps
	}
	return out
}

// sections returns the mappings of the image whose headers are mapped at head that m would be if the
// image were mapped; none if there is no image.
func (s *Stepper) sections(head, m target.Mapping) []target.Mapping {
	k := keyOf(head)
	file, known := s.heads[k]
	if !known {
		if f, err := s.process.OpenFile(head); err == nil {
			file, _ = s.files.of(f)
		}
		if s.heads == nil {
			s.heads = map[key]*File{}
		}
		s.heads[k] = file
	}
	if file == nil || file.image == nil {
		return nil
	}
	var out []target.Mapping
	for i := range file.image.Sections {
		sec := &file.image.Sections[i]
		from, to := max(m.Start, head.Start+uint64(sec.RVA)), min(m.End, head.Start+uint64(sec.RVA)+roundUp(uint64(sec.Size)))
		if from >= to || !sec.Executable() {
			continue
		}
		p := head
		p.Start, p.End, p.Perm = from, to, m.Perm
		p.Offset = uint64(sec.Offset) + from - head.Start - uint64(sec.RVA)
		out = append(out, p)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Start < out[j].Start })
	return out
}

func roundUp(n uint64) uint64 { return (n + page - 1) &^ (page - 1) }
