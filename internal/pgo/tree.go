package pgo

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/dwarfline"
)

// location is a position in a function's source, relative to the line on which it is declared.
type location struct{ line, discriminator uint32 }

func (l location) compare(o location) int {
	return cmp.Or(cmp.Compare(l.line, o.line), cmp.Compare(l.discriminator, o.discriminator))
}

// function is the profile of a function, or of one that was inlined into another.
type function struct {
	name string
	head float64 // how often it was called
	body map[location]*body
	// inlined are the profiles of the functions that were inlined at each place.
	inlined map[location]map[string]*function
}

// body is how often a place ran, and what was called there.
type body struct {
	count   float64
	targets map[string]float64
}

func newFunction(name string) *function {
	return &function{name: name, body: map[location]*body{}, inlined: map[location]map[string]*function{}}
}

func (f *function) at(l location) *body {
	b := f.body[l]
	if b == nil {
		b = &body{}
		f.body[l] = b
	}
	return b
}

func (f *function) inlinee(l location, name string) *function {
	m := f.inlined[l]
	if m == nil {
		m = map[string]*function{}
		f.inlined[l] = m
	}
	if m[name] == nil {
		m[name] = newFunction(name)
	}
	return m[name]
}

// Tree is the profile of a file's functions by source, which LLVM and gcc read: how often each place
// ran, in arbitrary units.
type Tree struct {
	functions map[string]*function
	Report    Report
}

// Report says what a profile was made of.
type Report struct {
	Samples   uint64  // in the file
	Weight    float64 // of these
	NoLine    float64 // weight of those whose place has no line
	NoSymbol  float64 // weight of those in no known function
	Functions int
	Targets   int     // places at which callees of computed calls were found
	Missing   int     // functions whose declaration has no line
	Edges     float64 // branches taken that block counts are from; 0: they are from samples
}

// BuildTree makes the profile of the samples of m in b.
//
// A sample says where time was spent, not how often a place ran: the count of a block is the samples
// in it divided by its instructions, and that of a place the largest of its blocks'. What a computed
// call calls is taken from the stacks that go through it.
//
// llvm says that the file was made by LLVM, which packs several numbers into a discriminator.
func BuildTree(b *Binary, m *Module, llvm bool) *Tree {
	t := &treeBuilder{b: b, m: m, tree: &Tree{functions: map[string]*function{}}, scale: scale, llvm: llvm}
	t.tree.Report.Samples, t.tree.Report.Weight = m.Count, m.Weight
	if t.edges = edgesOf(b, m); t.edges != nil {
		t.tree.Report.Edges = m.Taken
	}
	t.group()
	for _, start := range t.order {
		t.function(start)
	}
	t.heads()
	t.tree.Report.Functions = len(t.tree.functions)
	return t.tree
}

// scale is how many counts one sample for each instruction of a block becomes: counts are whole
// numbers, and most blocks have less than one sample for each instruction.
const scale = 1000

type treeBuilder struct {
	b     *Binary
	m     *Module
	tree  *Tree
	scale float64
	llvm  bool

	order   []uint64             // functions with samples or calls, by address
	leaves  map[uint64][]uint64  // samples' addresses by function
	callees map[uint64][]callSum // by return address
	head    map[string]float64   // how often functions were called, by name
	entries map[string]float64   // how often functions' first blocks ran
	entered map[string]float64   // how often functions were called, as edges say
	edges   *edgeSums            // nil if there are none
	perTime float64              // runs of an instruction for each sample at it, as edges say
}

// callSum is a callee at a place with the weight of the stacks that show it.
type callSum struct {
	name   string
	weight float64
}

// group sorts samples and calls by functions.
func (t *treeBuilder) group() {
	t.leaves, t.callees = map[uint64][]uint64{}, map[uint64][]callSum{}
	t.entered = map[string]float64{}
	t.head, t.entries = map[string]float64{}, map[string]float64{}
	seen := map[uint64]bool{}
	add := func(start uint64) {
		if !seen[start] {
			seen[start] = true
			t.order = append(t.order, start)
		}
	}
	for addr, w := range t.m.Leaves {
		f := t.b.function(addr)
		if f == nil {
			t.tree.Report.NoSymbol += w
			continue
		}
		t.leaves[f.Start] = append(t.leaves[f.Start], addr)
		add(f.Start)
	}
	for c, w := range t.m.Calls {
		f := t.b.function(c.Return - 1)
		if f == nil {
			continue
		}
		name := c.Callee.Name
		if c.Callee.Module == "" {
			callee := t.b.function(c.Callee.Addr)
			if callee == nil {
				continue
			}
			name = t.nameAt(callee.Start, callee.Name)
		}
		list := t.callees[c.Return]
		if i := slices.IndexFunc(list, func(s callSum) bool { return s.name == name }); i >= 0 {
			list[i].weight += w
		} else {
			t.callees[c.Return] = append(list, callSum{name, w})
		}
		add(f.Start)
	}
	if t.edges != nil {
		covered := 0.0
		for start, runs := range t.edges.runs {
			add(start)
			if len(t.leaves[start]) == 0 {
				continue
			}
			for _, r := range runs {
				covered += r.count * float64(max((r.to-r.from)/bytesOfInst, 1))
			}
		}
		t.perTime = covered / max(t.m.Weight, 1)
	}
	slices.Sort(t.order)
}

// nameAt returns the name of the function at an address as compilers know it: a part that was split
// off (.cold, .part.0) belongs to the function it was split from.
func (t *treeBuilder) nameAt(start uint64, symbol string) string {
	t.b.places = t.b.file.Lines(start, t.b.places[:0])
	if n := len(t.b.places); n > 0 && t.b.places[n-1].Function != "" {
		return linkageName(t.b.places[n-1].Function, symbol)
	}
	return symbol
}

// function adds one function's samples.
func (t *treeBuilder) function(start uint64) {
	f := t.b.function(start)
	code := t.b.code(f)
	blocks := blocksOf(code)
	samples := map[uint64]float64{}
	for _, addr := range t.leaves[start] {
		samples[addr] += t.m.Leaves[addr]
	}
	for i := range blocks {
		bl := &blocks[i]
		for j := bl.first; j < bl.last; j++ {
			in := &code[j]
			for k := range uint64(in.size) {
				bl.samples += samples[in.addr+k]
			}
		}
		bl.weight = bl.samples / float64(bl.last-bl.first)
	}
	if t.edges != nil {
		t.fromEdges(start, code, blocks)
	}
	t.raise(code, blocks)
	for i := range blocks {
		bl := &blocks[i]
		if i == 0 {
			t.entries[t.nameAt(start, f.Name)] += bl.weight
		}
		if bl.weight == 0 {
			continue
		}
		for j := bl.first; j < bl.last; j++ {
			t.instruction(f.Name, &code[j], bl, samples)
		}
	}
}

// raise gives blocks without samples of their own the weight of the calls that stacks show in them:
// a callee that takes all of the time leaves none to its caller.
func (t *treeBuilder) raise(code []inst, blocks []block) {
	for i := range blocks {
		bl := &blocks[i]
		if bl.weight > 0 {
			continue
		}
		for j := bl.first; j < bl.last; j++ {
			for _, c := range t.callees[code[j].addr+uint64(code[j].size)] {
				// At least as often as a fraction of a sample: that it ran is certain.
				bl.weight = max(bl.weight, least(c.weight))
			}
		}
	}
}

// least is how often a call happened at least, if only the time spent in it is known.
func least(weight float64) float64 { return min(1, weight) / 16 }

// instruction adds an instruction of a block.
func (t *treeBuilder) instruction(symbol string, in *inst, bl *block, samples map[uint64]float64) {
	t.b.places = t.b.file.Lines(in.addr, t.b.places[:0])
	places := t.b.places
	own := 0.0
	for k := range uint64(in.size) {
		own += samples[in.addr+k]
	}
	if len(places) == 0 || places[0].Line <= 0 {
		t.tree.Report.NoLine += own
	}
	callees := t.calleesAt(in)
	if in.kind != call && in.kind != callsAny {
		callees = nil
	}
	sum := 0.0
	for _, c := range callees {
		sum += c.weight
	}
	for _, c := range callees {
		t.head[c.name] += bl.weight * c.weight / sum
	}
	if len(places) == 0 || places[0].Line <= 0 {
		return
	}
	fn := t.tree.root(linkageName(places[len(places)-1].Function, symbol))
	if fn == nil {
		return
	}
	for i := len(places) - 1; ; i-- {
		l, copies, ok := t.locate(&places[i])
		if !ok {
			t.tree.Report.Missing++
			return
		}
		if i > 0 {
			fn = fn.inlinee(l, places[i-1].Function)
			continue
		}
		place := fn.at(l)
		place.count = max(place.count, bl.weight*t.scale*copies)
		if len(callees) > 0 {
			if in.kind == callsAny && place.targets == nil {
				t.tree.Report.Targets++
			}
			if place.targets == nil {
				place.targets = map[string]float64{}
			}
			for _, c := range callees {
				place.targets[c.name] += bl.weight * c.weight / sum * t.scale
			}
		}
		return
	}
}

// locate returns a place's location relative to its function, and how many copies of its code the
// compiler has made there, each of which runs once where the source runs so many times.
func (t *treeBuilder) locate(p *dwarfline.Place) (l location, copies float64, ok bool) {
	if p.Start <= 0 || p.Line <= 0 || p.Function == "" {
		return location{}, 0, false
	}
	// Compilers take the lower 16 bits too: lines above the declaration come from other files.
	l, copies = location{uint32(p.Line-p.Start) & 0xffff, p.Discriminator}, 1
	if t.llvm {
		l.discriminator = component(p.Discriminator)
		if n := component(nextComponent(p.Discriminator)); n > 1 {
			copies = float64(n)
		}
	}
	return l, copies, true
}

// root returns a function that was compiled by itself.
func (t *Tree) root(name string) *function {
	if name == "" {
		return nil
	}
	f := t.functions[name]
	if f == nil {
		f = newFunction(name)
		t.functions[name] = f
	}
	return f
}

// suffixes are what compilers and linkers append to the names of parts and copies of functions.
var suffixes = []string{".llvm.", ".part.", ".cold", ".isra.", ".constprop.", ".lto_priv.", ".specialized.", ".localalias"}

// linkageName returns the name of a function as the compiler knows it, from its name in DWARF, which
// is without parameters if the function is local to its unit, and from its symbol, which may have a
// suffix.
func linkageName(dwarf, symbol string) string {
	for _, s := range suffixes {
		symbol, _, _ = strings.Cut(symbol, s)
	}
	if dwarf == "" || !mangled(dwarf) && (mangled(symbol) || strings.Contains(dwarf, "::")) {
		return symbol
	}
	return dwarf
}

func mangled(name string) bool { return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") }

// count rounds a count up: what ran is never said not to have run.
func count(v float64) uint64 {
	if v <= 0 {
		return 0
	}
	return uint64(math.Ceil(min(v, 1<<52)))
}

// total returns the sum of all counts of a function, with those inlined into it.
func (f *function) total() (sum uint64) {
	for _, b := range f.body {
		sum += count(b.count)
	}
	for _, m := range f.inlined {
		for _, in := range m {
			sum += in.total()
		}
	}
	return sum
}

// sorted returns functions with the largest total first.
func (t *Tree) sorted() []*function {
	out := make([]*function, 0, len(t.functions))
	totals := map[*function]uint64{}
	for _, f := range t.functions {
		if totals[f] = f.total(); totals[f] > 0 {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *function) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a.name, b.name))
	})
	return out
}

// places returns the locations of a function's body in order.
func sortedKeys[V any](m map[location]V) []location {
	out := make([]location, 0, len(m))
	for l := range m {
		out = append(out, l)
	}
	slices.SortFunc(out, location.compare)
	return out
}
