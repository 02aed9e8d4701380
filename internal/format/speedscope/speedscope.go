// Package speedscope writes profiles in speedscope's format, for each thread and event the samples
// in the order in which they were taken, and reads what others write for it. Data that speedscope
// has no place for is in keys that it ignores.
// https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts
package speedscope

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

const schema = "https://www.speedscope.app/file-format-schema.json"

// Write writes p sample by sample. The output depends only on p.
func Write(w io.Writer, p *profile.Profile) error {
	out := &writer{p: p, w: bufio.NewWriterSize(w, 64<<10), calls: firstCalls(p.Syscalls)}
	out.write()
	if err := out.w.Flush(); err != nil {
		return fmt.Errorf("write speedscope: %w", err)
	}
	return nil
}

// writer leaves errors to its bufio.Writer, which keeps the first for Flush.
type writer struct {
	p     *profile.Profile
	w     *bufio.Writer
	ends  [walk.NumEnds]int // index of the frame that stands for a stack's missing outer part
	stack []uint32
	calls []uint16 // by Sample.Syscall: the first index of a system call of that name
}

func (w *writer) text(s string) {
	b, err := json.Marshal(strings.ToValidUTF8(s, "\uFFFD"))
	if err == nil {
		w.w.Write(b)
	}
}

func (w *writer) raw(s string) { w.w.WriteString(s) }
func (w *writer) number(n uint64) {
	w.w.Write(strconv.AppendUint(w.w.AvailableBuffer(), n, 10))
}

func (w *writer) write() {
	p := w.p
	w.raw(`{"$schema":"` + schema + `","exporter":`)
	w.text("candid " + p.Meta.Version)
	w.raw(`,"name":`)
	w.text(p.Meta.Command)
	w.raw(`,"activeProfileIndex":0,"shared":{"frames":[`)
	w.frames()
	w.raw(`]},"profiles":[`)
	w.profiles()
	w.raw(`],"candid":{"events":[`)
	for i, e := range p.Events {
		if i > 0 {
			w.raw(",")
		}
		w.raw(`{"name":`)
		w.text(e.Name)
		w.raw(`,"unit":`)
		w.text(e.Unit)
		w.raw(`,"period":`)
		w.number(e.Period)
		if e.Kind != profile.EventKindOf(e.Name) {
			w.raw(`,"kind":`)
			w.text(e.Kind.String())
		}
		w.raw("}")
	}
	w.raw(`],"duration":`)
	w.number(uint64(max(p.Meta.Duration, 0)))
	if !p.Meta.Start.IsZero() {
		w.raw(`,"start":`)
		w.text(strconv.FormatInt(p.Meta.Start.UnixNano(), 10))
	}
	w.raw(`,"lost":`)
	w.number(p.Losses.Lost)
	w.raw(`,"notes":[`)
	for i, note := range p.Meta.Notes {
		if i > 0 {
			w.raw(",")
		}
		w.text(note)
	}
	w.raw("]}}\n")
}

// frames writes all frames by their index, followed by one for each way in which a stack can be cut
// short.
func (w *writer) frames() {
	for i, f := range w.p.Frames {
		if i > 0 {
			w.raw(",\n")
		}
		fn := &w.p.Funcs[f.Func]
		w.raw(`{"name":`)
		w.text(fn.Name)
		if file := cmp.Or(fn.File, fn.Module); file != "" {
			w.raw(`,"file":`)
			w.text(file)
		}
		if f.Line > 0 {
			w.raw(`,"line":`)
			w.number(uint64(f.Line))
		}
		if fn.Module != "" {
			w.raw(`,"module":`)
			w.text(fn.Module)
		}
		if f.Kind != walk.KindUnknown {
			w.raw(`,"kind":`)
			w.text(profile.KindName(f.Kind))
		}
		switch f.Prov {
		case walk.Derived:
			w.raw(`,"provenance":"derived"`)
		case walk.Heuristic:
			w.raw(`,"provenance":"heuristic"`)
		}
		if f.Flags&walk.Skid != 0 {
			w.raw(`,"skid":1`)
		}
		w.raw("}")
	}
	for e := walk.EndTruncated; e < walk.NumEnds; e++ {
		if len(w.p.Frames) > 0 || e > walk.EndTruncated {
			w.raw(",\n")
		}
		w.ends[e] = len(w.p.Frames) + int(e-walk.EndTruncated)
		w.raw(`{"name":`)
		w.text(e.Frame())
		w.raw("}")
	}
}

func (w *writer) profiles() {
	tracks := profile.ByTrack(w.p)
	// The page opens with the busiest thread.
	slices.SortFunc(tracks, func(a, b profile.TrackSamples) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Thread, b.Thread))
	})
	for i := range tracks {
		if i > 0 {
			w.raw(",\n")
		}
		w.track(&tracks[i])
	}
}

// units are those of speedscope, keyed by the units of events.
var units = map[string]string{"nanoseconds": "nanoseconds", "bytes": "bytes"}

func (w *writer) track(l *profile.TrackSamples) {
	t, e := w.p.Threads[l.Thread], w.p.Events[l.Event]
	name := fmt.Sprintf("%s (tid %d)", t.Name, t.TID)
	if len(w.p.Events) > 1 {
		name += " " + e.Name
	}
	w.raw(`{"type":"sampled","name":`)
	w.text(name)
	w.raw(`,"unit":`)
	w.text(cmp.Or(units[e.Unit], "none"))
	w.raw(`,"startValue":0,"endValue":`)
	w.number(l.Weight)
	column := func(each func(s *profile.Sample)) {
		l.Each(func(i int, s *profile.Sample) {
			if i > 0 {
				w.raw(",")
			}
			each(s)
		})
	}
	w.raw(`,"samples":[`)
	column(w.sample)
	w.raw(`],"weights":[`)
	column(func(s *profile.Sample) { w.number(s.Weight) })
	w.raw(fmt.Sprintf(`],"candid":{"event":%d,"number":%d,"pid":%d,"tid":%d,"thread":`, l.Event, l.Thread, t.PID, t.TID))
	w.text(t.Name)
	w.raw(`,"osName":`)
	w.text(t.OSName)
	w.raw(`,"kind":`)
	w.text(t.Kind)
	w.raw(`,"times":[`)
	last := uint64(0)
	column(func(s *profile.Sample) {
		w.number(s.Time - last)
		last = s.Time
	})
	w.raw("]")
	w.states(l, column)
	w.skids(l)
	w.raw("}}")
}

// did is what a thread was seen doing.
type did struct {
	state   profile.State
	syscall uint16
}

// firstCalls returns for each name the first index at which it is: Syscalls has it once for each
// combination with labels, which the format has no place for.
func firstCalls(names []string) []uint16 {
	first := map[string]uint16{}
	out := make([]uint16, len(names))
	for i, name := range names {
		at, ok := first[name]
		if !ok {
			at = uint16(i)
			first[name] = at
		}
		out[i] = at
	}
	return out
}

// did returns what a sample's thread was seen doing.
func (w *writer) did(s *profile.Sample) did {
	k := did{state: s.State}
	if int(s.Syscall) < len(w.calls) {
		k.syscall = w.calls[s.Syscall]
	}
	return k
}

// states writes what the thread did, if that is known: a list of the distinct pairs of state and
// system call, and for each sample its index in that list.
func (w *writer) states(l *profile.TrackSamples, column func(each func(s *profile.Sample))) {
	var list []did
	at := make(map[did]int)
	known := false
	l.Each(func(_ int, s *profile.Sample) {
		k := w.did(s)
		if _, ok := at[k]; !ok {
			at[k] = len(list)
			list = append(list, k)
			known = known || k != did{}
		}
	})
	if !known {
		return
	}
	w.raw(`,"states":[`)
	for i, k := range list {
		if i > 0 {
			w.raw(",")
		}
		w.raw("[")
		w.text(k.state.String())
		w.raw(",")
		call := ""
		if k.syscall > 0 {
			call = w.p.Syscalls[k.syscall]
		}
		w.text(call)
		w.raw("]")
	}
	w.raw(`],"state":[`)
	column(func(s *profile.Sample) { w.number(uint64(at[w.did(s)])) })
	w.raw("]")
}

// skids writes the frames in which samples came late (walk.Skid), which are not part of the stacks
// that speedscope shows: for each such sample its index among all, then the frames, the outermost
// first.
func (w *writer) skids(l *profile.TrackSamples) {
	first := true
	l.Each(func(i int, s *profile.Sample) {
		before := w.p.BeforeSkid(s.Node)
		if before == s.Node {
			return
		}
		w.stack = w.stack[:0]
		for n := s.Node; n != before; n = w.p.Nodes[n].Parent {
			w.stack = append(w.stack, w.p.Nodes[n].Frame)
		}
		if first {
			w.raw(`,"skid":[[`)
		} else {
			w.raw(",[")
		}
		first = false
		w.number(uint64(i))
		for _, f := range slices.Backward(w.stack) {
			w.raw(",")
			w.number(uint64(f))
		}
		w.raw("]")
	})
	if !first {
		w.raw("]")
	}
}

// sample writes a stack as frame indices, the outermost first.
func (w *writer) sample(s *profile.Sample) {
	w.stack = w.stack[:0]
	for n := w.p.BeforeSkid(s.Node); n != profile.RootNode; n = w.p.Nodes[n].Parent {
		w.stack = append(w.stack, w.p.Nodes[n].Frame)
	}
	if s.End != walk.EndComplete {
		w.stack = append(w.stack, uint32(w.ends[s.End]))
	}
	w.raw("[")
	for i, f := range slices.Backward(w.stack) {
		w.number(uint64(f))
		if i > 0 {
			w.raw(",")
		}
	}
	w.raw("]")
}
