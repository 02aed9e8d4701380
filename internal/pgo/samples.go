package pgo

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// Samples is what recordings say of the code of files, by the modules' names.
type Samples struct {
	Modules map[string]*Module
	Total   float64 // weight of all samples in user code
	Count   uint64  // samples of all
}

// Module is what recordings say of one file. Addresses are those of the file.
type Module struct {
	Name string
	// Leaves are the weights of the instructions that samples were at.
	Leaves map[uint64]float64
	// Calls are the weights of calls that were on stacks.
	Calls map[Call]float64
	// Edges are the branches that were seen, with their counts, and Taken the sum of those in the
	// module's code.
	Edges  map[Edge]float64
	Taken  float64
	Weight float64 // of all leaves
	Count  uint64  // samples that are leaves
	Paths  map[string]struct{}
	IDs    map[string]struct{} // build ids; "" stands for a file that has none
	Named  map[uint64]string   // functions' names as recorded, by address, to compare with
}

// Call is a call on a stack.
type Call struct {
	Return uint64 // the address at which the caller goes on
	Callee Callee
}

// Callee is what was called: an address inside the function, if it is in the same module, else its
// name.
type Callee struct {
	Addr   uint64
	Name   string // in the program
	Module string
}

const maxNamed = 1 << 12 // names that are compared

// NewSamples returns Samples that hold nothing.
func NewSamples() *Samples { return &Samples{Modules: map[string]*Module{}} }

func (s *Samples) module(name string) *Module {
	m := s.Modules[name]
	if m == nil {
		m = &Module{Name: name, Leaves: map[uint64]float64{}, Calls: map[Call]float64{}, Edges: map[Edge]float64{}, Paths: map[string]struct{}{}, IDs: map[string]struct{}{}, Named: map[uint64]string{}}
		s.Modules[name] = m
	}
	return m
}

// inFile reports whether a frame is machine code that came from a file, and not inlined there.
func inFile(p *profile.Profile, f *profile.Frame) bool {
	return f.Kind == walk.KindNative && f.Addr != 0 && p.Funcs[f.Func].Module != ""
}

// Add adds a recording's samples of one event, each with its weight in units of the event's period
// times scale. It returns how many there were.
func (s *Samples) Add(p *profile.Profile, event int, scale float64) uint64 {
	a := adder{s: s, p: p}
	for _, o := range p.Observations {
		if o.Kind == profile.NativeModule && len(o.Values) >= 3 {
			m := s.module(o.Values[0].Text)
			m.Paths[o.Values[1].Text] = struct{}{}
			m.IDs[o.Values[2].Text] = struct{}{}
		}
		if o.Kind == profile.NativeBranch {
			s.addEdge(o.Values, scale)
		}
	}
	period := max(float64(p.Events[event].Period), 1)
	weights := map[uint32]float64{}
	counts := map[uint32]uint64{}
	all := uint64(0)
	profile.Summed(p).Each(func(g *profile.Sample, n uint64) {
		if int(g.Event) != event {
			return
		}
		node := p.BeforeSkid(g.Node)
		weights[node] += float64(g.Weight) / period * scale
		counts[node] += n
		all += n
	})
	for node, w := range weights {
		a.stack(node, w, counts[node])
	}
	s.Count += all
	return all
}

type adder struct {
	s *Samples
	p *profile.Profile
}

// stack adds one stack.
func (a *adder) stack(node uint32, weight float64, count uint64) {
	p := a.p
	var callee *profile.Frame
	first := true
	for n := node; n != profile.RootNode; n = p.Nodes[n].Parent {
		f := &p.Frames[p.Nodes[n].Frame]
		switch {
		case f.Kind == walk.KindInlined:
			continue // the frame that it is in comes next
		case f.Kind == walk.KindKernel:
			first = false // the time is the kernel's
			continue
		case !inFile(p, f):
			callee, first = nil, false
			continue
		}
		fn := &p.Funcs[f.Func]
		m := a.s.module(fn.Module)
		if len(m.Named) < maxNamed && !fn.NoName {
			m.Named[f.Addr] = rawName(fn)
		}
		switch returns := f.Flags&walk.ReturnAddress != 0; {
		case !returns && first:
			m.Leaves[f.Addr] += weight
			m.Weight += weight
			m.Count += count
			a.s.Total += weight
		case returns && callee != nil && f.Prov != walk.Heuristic && callee.Prov != walk.Heuristic:
			c := Call{Return: f.Addr}
			if of := &p.Funcs[callee.Func]; of.Module == fn.Module {
				c.Callee.Addr = callee.Addr
				if callee.Flags&walk.ReturnAddress != 0 {
					c.Callee.Addr--
				}
			} else {
				c.Callee.Name, c.Callee.Module = rawName(of), of.Module
			}
			m.Calls[c] += weight
		}
		callee, first = f, false
	}
}

func rawName(f *profile.Func) string {
	if f.Raw != "" {
		return f.Raw
	}
	return f.Name
}

// Largest returns the module with the most weight among those that are programs or libraries; nil
// if there is none.
func (s *Samples) Largest() *Module {
	var best *Module
	for _, m := range s.Modules {
		if strings.HasPrefix(m.Name, "[") {
			continue
		}
		if m.Weight > 0 && (best == nil || m.Weight > best.Weight || m.Weight == best.Weight && m.Name < best.Name) {
			best = m
		}
	}
	return best
}

// For returns what is known of a file: the module of its name, or the one that has its build id; nil
// if there is none.
func (s *Samples) For(b *Binary) *Module {
	if m := s.Modules[b.Name]; m != nil && m.Weight > 0 {
		return m
	}
	for _, name := range slices.Sorted(maps.Keys(s.Modules)) {
		m := s.Modules[name]
		if _, ok := m.IDs[b.BuildID]; ok && b.BuildID != "" && m.Weight > 0 {
			return m
		}
	}
	return nil
}

// Names lists the modules with the most samples, for people.
func (s *Samples) Names(most int) string {
	var all []*Module
	for _, m := range s.Modules {
		if m.Weight > 0 {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *Module) int { return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name)) })
	var names []string
	for _, m := range all[:min(most, len(all))] {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// FileOf returns the path of the file in which a function of that name has the most samples, "" if
// there is none.
func (s *Samples) FileOf(function string) string {
	var best *Module
	most := 0.0
	for _, m := range s.Modules {
		sum := 0.0
		for addr, name := range m.Named {
			if bare, _, _ := strings.Cut(symbol.Demangle(name), "("); name == function || bare == function {
				sum += m.Leaves[addr]
			}
		}
		if sum > most || sum == most && best != nil && sum > 0 && m.Name < best.Name {
			best, most = m, sum
		}
	}
	if best == nil || len(best.Paths) == 0 {
		return ""
	}
	return best.Files()[0]
}

// Files returns the paths at which a module was.
func (m *Module) Files() []string { return slices.Sorted(maps.Keys(m.Paths)) }
