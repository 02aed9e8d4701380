package profile

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/candid-profiler/candid/internal/javaname"
	"github.com/candid-profiler/candid/internal/walk"
)

// KindSet is a set of frame kinds.
type KindSet uint32

// Kinds returns the set of some kinds.
func Kinds(kinds ...walk.Kind) (s KindSet) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// Has reports whether k is in the set.
func (s KindSet) Has(k walk.Kind) bool { return s>>k&1 != 0 }

// Filter chooses samples. The zero Filter chooses all of the first event.
type Filter struct {
	Event  int            // index into Events
	Thread *regexp.Regexp // only threads whose name matches
	// ThreadKinds chooses threads by what they are for, with names of ThreadKinds and
	// UnknownThreadKind; nil for all. Threads of unknown kind count as java too if their process
	// runs Java: better one too many than to lose one of the program's own.
	ThreadKinds []string
	// Process chooses the threads of processes whose command matches, PIDs those of processes with one
	// of these numbers; nil for all.
	Process *regexp.Regexp
	PIDs    []int
	// OneThread is the index of the only thread to choose; nil for all.
	OneThread *uint32
	States    StateSet       // only threads in these states; empty: in any
	Labels    []LabelFilter  // only samples that all of them choose
	Focus     *regexp.Regexp // only stacks with a function whose name matches
	Ignore    *regexp.Regexp // no stacks with a function whose name matches
	// From and To are since the beginning of the recording; To 0 is its end. The part of a wait
	// that lies between them counts: see Sample.Part.
	From, To time.Duration
	// Hide removes frames of these kinds from all stacks: their own time counts for their callers.
	Hide KindSet
	// Raw shows frames with walk.Skid, whose time otherwise counts for their callers.
	Raw bool
	// Signatures keeps methods that differ only in their parameters apart.
	Signatures bool
	// Lines keeps the source lines of a method apart, if they are known.
	Lines bool
}

// Count is an amount of samples.
type Count struct {
	Samples uint64
	Weight  uint64 // in the event's unit
}

// Add adds o to c.
func (c *Count) Add(o Count) {
	c.Samples += o.Samples
	c.Weight += o.Weight
}

// Share is c as a part of all, by weight, or by samples if nothing has weight; 0 if there is
// nothing.
func (c Count) Share(all Count) float64 {
	switch {
	case all.Weight > 0:
		return float64(c.Weight) / float64(all.Weight)
	case all.Samples > 0:
		return float64(c.Samples) / float64(all.Samples)
	}
	return 0
}

// Selection is what a Filter chose of a profile. Everything computed from it counts only that.
type Selection struct {
	Profile *Profile
	Filter  Filter
	All     Count // of the event, before filtering
	Chosen  Count
	Quality Quality // of the chosen samples
	Threads []Count // by index into Profile.Threads
	Methods []Method

	methodOf []uint32 // by index into Funcs
	// A profile's frames differ in lines and addresses, which nothing here needs: faces are what
	// remains of them.
	faces  []face
	faceOf []uint32 // by index into Profile.Frames; hidden if the filter hides the frame
	ended  []ended  // by node

	threadQuality []Quality          // by index into Profile.Threads
	doing         [NumStates][]Count // by state, and in each by index into Syscalls; nil: no samples
	threadStates  []Count            // by index into Profile.Threads, and in each by state
}

// ended is the sum of what ended in a node of the profile.
type ended struct {
	node uint32
	Count
}

// hidden stands for the face of a frame that the filter hides.
const hidden = ^uint32(0)

// face is what a Selection knows of a frame.
type face struct {
	method  uint32 // index into Methods
	kind    walk.Kind
	guessed bool
	coarse  bool
}

// Method stands for all functions of the same name and module.
type Method struct {
	Func uint32 // the first of them, index into Funcs
	Line int32  // of Filter.Lines; 0: unknown, or all of them
}

// HasTimes reports whether the samples have times. Formats that merge equal stacks lose them.
func (p *Profile) HasTimes() bool {
	if p.timed {
		return true
	}
	for i := range p.Samples {
		if p.Samples[i].Time != 0 {
			return true
		}
	}
	return false
}

// Select applies a filter. It takes time and memory in proportion to the profile's nodes and
// samples, and builds no strings.
func (p *Profile) Select(f Filter) *Selection {
	s := &Selection{
		Profile: p, Filter: f,
		Threads:       make([]Count, len(p.Threads)),
		threadQuality: make([]Quality, len(p.Threads)),
	}
	s.mergeMethods()
	s.mergeFrames()
	at := make([]uint32, len(p.Nodes)) // by node: index into ended, plus 1
	calls := max(len(p.Syscalls), 1)
	s.ended = make([]ended, 0, min(p.sums.n, len(p.Nodes)))
	s.threadStates = make([]Count, NumStates*len(p.Threads))
	s.choose(func(sm *Sample, c Count) {
		doing := &s.doing[sm.State]
		if *doing == nil {
			*doing = make([]Count, calls)
		}
		(*doing)[sm.Syscall].Add(c)
		s.threadStates[int(sm.Thread)*NumStates+int(sm.State)].Add(c)
		if at[sm.Node] == 0 {
			s.ended = append(s.ended, ended{node: sm.Node})
			at[sm.Node] = uint32(len(s.ended))
		}
		s.ended[at[sm.Node]-1].Count.Add(c)
	})
	slices.SortFunc(s.ended, func(a, b ended) int { return cmp.Compare(a.node, b.node) })
	return s
}

// choose adds up what is known without stacks, and visits the samples that the filter chose.
func (s *Selection) choose(visit func(sm *Sample, c Count)) {
	m := s.Profile.matcher(s.Filter)
	s.Profile.Each(func(sm *Sample, n uint64) {
		if int(sm.Event) != s.Filter.Event {
			return
		}
		s.All.Add(Count{n, sm.Weight})
		weight, ok := m.part(sm)
		if !ok {
			return
		}
		c := Count{n, weight}
		s.Chosen.Add(c)
		s.Quality.AddTimes(sm.End, sm.Flags, n)
		s.threadQuality[sm.Thread].AddTimes(sm.End, sm.Flags, n)
		s.Threads[sm.Thread].Add(c)
		visit(sm, c)
	})
}

// Each visits the samples that the filter chose, with how much of their weight counts; samples of
// which the profile has only the sum are visited as one.
func (s *Selection) Each(visit func(sm *Sample, c Count)) {
	m := s.Profile.matcher(s.Filter)
	s.Profile.Each(func(sm *Sample, n uint64) {
		if int(sm.Event) != s.Filter.Event {
			return
		}
		if weight, ok := m.part(sm); ok {
			visit(sm, Count{n, weight})
		}
	})
}

// Passing counts what a filter chooses of its event, without the rest of Select.
func (p *Profile) Passing(f Filter) (all, chosen Count) {
	m := p.matcher(f)
	p.Each(func(sm *Sample, n uint64) {
		if int(sm.Event) == f.Event {
			all.Add(Count{n, sm.Weight})
			if weight, ok := m.part(sm); ok {
				chosen.Add(Count{n, weight})
			}
		}
	})
	return all, chosen
}

// matcher is a Filter prepared for one profile.
type matcher struct {
	p             *Profile
	threads       []bool // by index into Threads
	states        StateSet
	labels        []bool // by index into Syscalls, or nil
	focus, ignore []bool // by index into Nodes, or nil
	from, to      uint64
}

func (p *Profile) matcher(f Filter) matcher {
	return matcher{
		p:       p,
		threads: p.ThreadsOf(f),
		states:  f.States,
		labels:  p.labeledAs(f.Labels),
		focus:   p.nodesWith(f.Focus),
		ignore:  p.nodesWith(f.Ignore),
		from:    uint64(max(f.From, 0)),
		to:      uint64(max(f.To, 0)),
	}
}

// ThreadsOf reports for every thread whether the filter chooses it.
func (p *Profile) ThreadsOf(f Filter) []bool {
	takes := make([]bool, len(p.Threads))
	kind, process := p.kindFilter(f.ThreadKinds), p.processFilter(f)
	for i := range takes {
		takes[i] = (f.Thread == nil || f.Thread.MatchString(p.Threads[i].Name)) && kind(&p.Threads[i]) && process(p.Threads[i].PID) &&
			(f.OneThread == nil || *f.OneThread == uint32(i))
	}
	return takes
}

// part reports whether a sample is chosen, and how much of its weight is.
func (m *matcher) part(s *Sample) (weight uint64, ok bool) {
	if !m.threads[s.Thread] || !m.states.Has(s.State) || m.focus != nil && !m.focus[s.Node] || m.ignore != nil && m.ignore[s.Node] {
		return 0, false
	}
	if m.labels != nil && !m.labels[s.Syscall] {
		return 0, false
	}
	if m.from == 0 && m.to == 0 {
		return s.Weight, true
	}
	return s.Part(m.p.Spans(s), m.from, m.to)
}

// nodesWith reports for every node whether a function whose name matches is on its stack; nil for
// no expression.
func (p *Profile) nodesWith(re *regexp.Regexp) []bool {
	if re == nil {
		return nil
	}
	funcs := make([]bool, len(p.Funcs))
	for i := range funcs {
		funcs[i] = re.MatchString(p.Funcs[i].Name)
	}
	nodes := make([]bool, len(p.Nodes))
	for i := 1; i < len(nodes); i++ {
		n := p.Nodes[i]
		nodes[i] = nodes[n.Parent] || funcs[p.Frames[n.Frame].Func]
	}
	return nodes
}

func (s *Selection) mergeMethods() {
	type key struct{ name, module, signature string }
	seen := map[key]uint32{}
	s.methodOf = make([]uint32, len(s.Profile.Funcs))
	for i := range s.Profile.Funcs {
		f := &s.Profile.Funcs[i]
		k := key{name: f.Name, module: f.Module}
		if s.Filter.Signatures {
			k.signature = f.Signature
		}
		m, ok := seen[k]
		if !ok {
			m = uint32(len(s.Methods))
			s.Methods = append(s.Methods, Method{Func: uint32(i)})
			seen[k] = m
		}
		s.methodOf[i] = m
	}
}

// mergeFrames computes the faces of the profile's frames.
func (s *Selection) mergeFrames() {
	p := s.Profile
	seen := map[face]uint32{}
	type place struct {
		method uint32
		line   int32
	}
	places := map[place]uint32{}
	s.faceOf = make([]uint32, len(p.Frames))
	for i, f := range p.Frames {
		if s.Filter.Hide.Has(f.Kind) || !s.Filter.Raw && f.Flags&walk.Skid != 0 {
			s.faceOf[i] = hidden
			continue
		}
		method := s.methodOf[f.Func]
		if s.Filter.Lines && f.Line > 0 {
			at, ok := places[place{method, f.Line}]
			if !ok {
				at = uint32(len(s.Methods))
				s.Methods = append(s.Methods, Method{s.Methods[method].Func, f.Line})
				places[place{method, f.Line}] = at
			}
			method = at
		}
		k := face{method, f.Kind, f.Prov == walk.Heuristic, f.Flags&walk.Coarse != 0}
		at, ok := seen[k]
		if !ok {
			at = uint32(len(s.faces))
			s.faces = append(s.faces, k)
			seen[k] = at
		}
		s.faceOf[i] = at
	}
}

// stacks are the stacks of a Selection as a trie of faces, with the samples that end in each node.
type stacks struct {
	*Trie
	faces  []face
	leaves []Count
}

// stacks merges the profile's stacks. They are not kept: for a large program they are as large as
// the profile.
func (s *Selection) stacks() stacks {
	p := s.Profile
	t := stacks{Trie: NewTrie(), faces: s.faces}
	of := make([]uint32, len(p.Nodes))
	for i := 1; i < len(p.Nodes); i++ {
		n := p.Nodes[i]
		of[i] = of[n.Parent]
		if f := s.faceOf[n.Frame]; f != hidden {
			of[i] = t.Child(of[n.Parent], f)
		}
	}
	t.Seal()
	t.leaves = make([]Count, t.Len())
	for _, e := range s.ended {
		t.leaves[of[e.node]].Add(e.Count)
	}
	return t
}

func (t *stacks) face(node uint32) *face { return &t.faces[t.At(node).Frame] }

// Name returns a method's name for people, with what the filter keeps apart.
func (s *Selection) Name(m uint32) string {
	f := s.Func(m)
	name := f.Name
	if s.Filter.Signatures {
		name += javaname.Parameters(f.Signature)
	}
	if line := s.Methods[m].Line; line > 0 {
		name += ":" + strconv.Itoa(int(line))
	}
	return name
}

func (s *Selection) Func(m uint32) *Func { return &s.Profile.Funcs[s.Methods[m].Func] }
