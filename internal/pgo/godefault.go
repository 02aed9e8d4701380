package pgo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	pprof "github.com/google/pprof/profile"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// GoReport says what a profile for Go was made of.
type GoReport struct {
	Samples uint64 // in Go code
	All     uint64
	NoStart uint64 // whose innermost function has no line of its declaration
}

// WriteGo writes the profile that go build -pgo reads: a pprof profile of the stacks of Go code with
// the lines of functions' declarations, like runtime/pprof's. That knows no kernel frames, and leaves
// out the wrappers that the compiler generates for methods: what calls the wrapper calls the method.
// Frames are named again from the program's file if there is one.
func WriteGo(w io.Writer, recordings []Recording, b *Binary) (GoReport, error) {
	g := goWriter{
		binary: b,
		out: &pprof.Profile{
			// The compiler takes the first type that it knows.
			SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, PeriodType: &pprof.ValueType{Type: "cpu", Unit: "nanoseconds"},
		},
		functions: map[pprof.Function]*pprof.Function{}, locations: map[position]*pprof.Location{},
	}
	for i := range recordings {
		g.add(&recordings[i])
	}
	if err := g.out.Write(w); err != nil {
		return g.report, fmt.Errorf("write the profile for Go: %w", err)
	}
	return g.report, nil
}

// Recording is a recording, the event of it that is used, and the weight of one of its samples in
// relation to those of others.
type Recording struct {
	Profile *profile.Profile
	Event   int
	Scale   float64
}

type goWriter struct {
	out       *pprof.Profile
	binary    *Binary
	report    GoReport
	path      []uint32 // frames of the stack being added, innermost first
	functions map[pprof.Function]*pprof.Function
	locations map[position]*pprof.Location
}

// position is a line of a function. Each is a location of its own, inlined or not: that is how the
// compiler counts calls.
type position struct {
	of   *pprof.Function
	line int32
}

// unit is the weight of a sample of scale 1: weights are whole numbers.
const unit = 1000

func (g *goWriter) add(r *Recording) {
	p := r.Profile
	named := map[uint32][]*pprof.Location{} // by the recording's frames
	period := max(float64(p.Events[r.Event].Period), 1)
	profile.Summed(p).Each(func(s *profile.Sample, n uint64) {
		if int(s.Event) != r.Event {
			return
		}
		g.report.All += n
		stack := g.stack(p, p.BeforeSkid(s.Node), named)
		if len(stack) == 0 {
			return
		}
		g.report.Samples += n
		if stack[0].Line[0].Function.StartLine == 0 {
			g.report.NoStart += n
		}
		g.out.Sample = append(g.out.Sample, &pprof.Sample{Location: stack, Value: []int64{int64(float64(s.Weight)/period*r.Scale*unit + 0.5)}})
	})
}

// stack returns a stack's frames outside the kernel, innermost first.
func (g *goWriter) stack(p *profile.Profile, of uint32, named map[uint32][]*pprof.Location) []*pprof.Location {
	g.path = g.path[:0]
	for n := of; n != profile.RootNode; n = p.Nodes[n].Parent {
		g.path = append(g.path, p.Nodes[n].Frame)
	}
	var out []*pprof.Location
	again := false // the physical frame was named again, with what is inlined there
	for i := len(g.path) - 1; i >= 0; i-- {
		f := &p.Frames[g.path[i]]
		if f.Kind == walk.KindKernel {
			break
		}
		if f.Kind != walk.KindInlined {
			again = g.again(p, f)
		} else if again {
			continue
		}
		frames, ok := named[g.path[i]]
		if !ok {
			frames = g.name(p, f)
			named[g.path[i]] = frames
		}
		out = append(out, frames...)
	}
	slices.Reverse(out)
	return out
}

// again reports whether a frame is named from the file.
func (g *goWriter) again(p *profile.Profile, f *profile.Frame) bool {
	return g.binary != nil && f.Addr != 0 && f.Kind != walk.KindInlined && p.Funcs[f.Func].Module == g.binary.Name
}

// name returns the frames that stand for one of the recording, outermost first.
func (g *goWriter) name(p *profile.Profile, f *profile.Frame) []*pprof.Location {
	fn := &p.Funcs[f.Func]
	asRecorded := func() []*pprof.Location {
		if wrapper(fn.File) {
			return nil
		}
		return []*pprof.Location{g.frame(rawName(fn), fn.File, fn.Start, f.Line)}
	}
	if !g.again(p, f) {
		return asRecorded()
	}
	addr := f.Addr
	if f.Flags&walk.ReturnAddress != 0 {
		addr--
	}
	places := g.binary.file.Lines(addr, g.binary.places[:0])
	g.binary.places = places
	if len(places) == 0 {
		return asRecorded()
	}
	var out []*pprof.Location
	for i := len(places) - 1; i >= 0; i-- {
		pl := &places[i]
		name := pl.Function
		if i == len(places)-1 {
			name = rawName(fn)
		}
		if name != "" && !wrapper(pl.File) {
			out = append(out, g.frame(name, pl.File, pl.Start, pl.Line))
		}
	}
	return out
}

func (g *goWriter) frame(name, file string, start, line int32) *pprof.Location {
	key := pprof.Function{Name: name, SystemName: name, Filename: file, StartLine: int64(start)}
	fn := g.functions[key]
	if fn == nil {
		fn = &key
		g.functions[key] = fn
		fn.ID = uint64(len(g.functions))
		g.out.Function = append(g.out.Function, fn)
	}
	at := position{fn, line}
	l := g.locations[at]
	if l == nil {
		l = &pprof.Location{ID: uint64(len(g.locations) + 1), Line: []pprof.Line{{Function: fn, Line: int64(line)}}}
		g.locations[at] = l
		g.out.Location = append(g.out.Location, l)
	}
	return l
}

// wrapper reports whether the compiler has made a function up, by the file it claims.
func wrapper(file string) bool { return strings.HasSuffix(file, "<autogenerated>") }
