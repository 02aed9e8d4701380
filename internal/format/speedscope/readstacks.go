package speedscope

import (
	"cmp"
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// finish sets the frames of the stacks.
func (r *reader) finish() (*profile.Profile, error) {
	node, end, guessed, err := r.stacks()
	if err != nil {
		return nil, err
	}
	r.raw = nil // it may be as large as what was made of it
	p := r.b.Finish()
	p.Change(func(s *profile.Sample) {
		if guessed[s.Node] {
			s.Flags = profile.Guessed
		}
		s.Node, s.End = node[s.Node], end[s.Node]
	})
	p.Events = r.extra.events
	for i := len(p.Events); i < len(r.units); i++ {
		names := map[string]string{"nanoseconds": "time", "bytes": "bytes", "count": "samples", "": "samples"}
		period := r.count(r.totals[i] / float64(max(r.counts[i], 1)))
		p.Events = append(p.Events, profile.NamedEvent(names[r.units[i]], cmp.Or(r.units[i], "count"), period))
	}
	if len(p.Events) == 0 {
		p.Events = []profile.Event{profile.UnnamedSamples()}
	}
	m := &p.Meta
	if r.extra.start != 0 {
		m.Start = time.Unix(0, r.extra.start).UTC()
	}
	m.Duration, m.Notes, p.Losses.Lost = time.Duration(r.extra.duration), r.extra.notes, r.extra.lost
	if !r.ours {
		m.Notes = append(m.Notes, "speedscope's files do not keep what was lost, nor which stacks are complete")
	}
	return p, nil
}

// stacks makes the profile's nodes from those of the file, and returns how stacks end and which
// have a guessed frame.
func (r *reader) stacks() (node []uint32, end []walk.End, guessed []bool, err error) {
	frames := make([]uint32, len(r.frames))
	ends := make([]walk.End, len(r.frames))
	gate := r.b.Meter().Gate()
	for i, f := range r.frames {
		if err := gate.Pass(); err != nil {
			return nil, nil, nil, err
		}
		if ends[i] = walk.EndByFrame(f.name); r.ours && ends[i] != walk.EndComplete {
			continue
		}
		ends[i] = walk.EndComplete
		fn := profile.Func{Name: cmp.Or(f.name, "[unknown]"), Module: f.module, File: f.file, NoName: f.name == "" || f.name == "[unknown]"}
		if f.file == f.module {
			fn.File = ""
		}
		pf := profile.Frame{Line: f.line, BCI: -1}
		pf.Kind, _ = profile.KindByName(f.kind)
		pf.Prov = provenances[f.prov]
		if f.skid && r.ours {
			pf.Flags = walk.Skid
		}
		pf.Func = r.b.Func(fn)
		frames[i] = r.b.Frame(pf)
	}
	r.raw.Seal()
	n := r.raw.Len()
	if err := r.b.Meter().Room(n * 6); err != nil {
		return nil, nil, nil, err
	}
	node, end, guessed = make([]uint32, n), make([]walk.End, n), make([]bool, n)
	for i := 1; i < n; i++ {
		if err := gate.Pass(); err != nil {
			return nil, nil, nil, err
		}
		of := r.raw.At(uint32(i))
		switch {
		case int(of.Frame) >= len(frames):
			return nil, nil, nil, fmt.Errorf("%w: frame %d of %d", ErrMalformed, of.Frame, len(frames))
		case of.Parent == profile.RootNode && ends[of.Frame] != walk.EndComplete:
			node[i], end[i] = profile.RootNode, ends[of.Frame]
		default:
			node[i], end[i] = r.b.Node(node[of.Parent], frames[of.Frame]), end[of.Parent]
			guessed[i] = guessed[of.Parent] || r.b.Frames()[frames[of.Frame]].Prov == walk.Heuristic
		}
	}
	return node, end, guessed, nil
}

// provenances are keyed by their names in files.
var provenances = map[string]walk.Provenance{"derived": walk.Derived, "heuristic": walk.Heuristic}
