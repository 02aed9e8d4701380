package pgo

import (
	"bufio"
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"slices"

	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/safeopen"
)

// WriteOrder writes the functions in the order in which a linker should put them, a name on each
// line: those that call each other side by side, hot ones first. lld reads it with
// --symbol-ordering-file, gold with --section-ordering-file (of sections, see sections), and mold
// with --symbol-ordering-file. The compiler has to put functions into sections of their own
// (-ffunction-sections).
func WriteOrder(w io.Writer, b *Binary, m *Module, sections bool) (functions int, err error) {
	out := bufio.NewWriter(w)
	for _, start := range order(b, m) {
		name := b.function(start).Name
		if sections {
			// The name that gcc and clang give to the section of a function.
			name = ".text." + name
		}
		fmt.Fprintln(out, name)
		functions++
	}
	return functions, out.Flush()
}

// cluster is a run of functions that are to lie side by side.
type cluster struct {
	functions []uint64
	size      uint64
	weight    float64
}

func (c *cluster) density() float64 { return c.weight / float64(max(c.size, 1)) }

// Bounds of a cluster: what fits into a page, and how much a merge may thin the hotter part out
// (Ottoni and Maher, Optimizing Function Placement for Large-Scale Data-Center Applications, 2017).
const (
	maxCluster = 4096
	maxThinner = 8
)

// order returns the starts of the functions with samples or calls: each is put behind its most
// frequent caller (call-chain clustering), and the densest cluster comes first.
func order(b *Binary, m *Module) []uint64 {
	weight := map[uint64]float64{}
	for addr, w := range m.Leaves {
		if f := b.function(addr); f != nil {
			weight[f.Start] += w
		}
	}
	type pair struct{ caller, callee uint64 }
	calls := map[pair]float64{}
	for c, w := range m.Calls {
		if c.Callee.Module != "" {
			continue
		}
		caller, callee := b.function(c.Return-1), b.function(c.Callee.Addr)
		if caller == nil || callee == nil {
			continue
		}
		if caller != callee {
			calls[pair{caller.Start, callee.Start}] += w
		}
		weight[caller.Start] += 0
		weight[callee.Start] += 0
	}
	best := map[uint64]pair{} // by callee: its most frequent caller
	for p, w := range calls {
		old, ok := best[p.callee]
		if !ok || w > calls[old] || w == calls[old] && p.caller < old.caller {
			best[p.callee] = p
		}
	}
	starts := make([]uint64, 0, len(weight))
	of := map[uint64]*cluster{}
	for start, w := range weight {
		f := b.function(start)
		starts = append(starts, start)
		of[start] = &cluster{[]uint64{start}, f.End - f.Start, w}
	}
	slices.SortFunc(starts, func(a, b uint64) int { return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a, b)) })
	for _, start := range starts {
		p, ok := best[start]
		if !ok {
			continue
		}
		to, from := of[p.caller], of[start]
		if to == from || to.size+from.size > maxCluster && len(from.functions)+len(to.functions) > 2 {
			continue
		}
		if merged := (to.weight + from.weight) / float64(max(to.size+from.size, 1)); merged*maxThinner < to.density() {
			continue
		}
		to.functions = append(to.functions, from.functions...)
		to.size += from.size
		to.weight += from.weight
		for _, s := range from.functions {
			of[s] = to
		}
	}
	var clusters []*cluster
	seen := map[*cluster]bool{}
	for _, start := range starts {
		if c := of[start]; !seen[c] {
			seen[c] = true
			clusters = append(clusters, c)
		}
	}
	slices.SortStableFunc(clusters, func(a, b *cluster) int { return cmp.Compare(b.density(), a.density()) })
	var out []uint64
	for _, c := range clusters {
		out = append(out, c.functions...)
	}
	return out
}

// WriteBOLT writes the samples for perf2bolt, in the format of data that is aggregated by function
// without branches (bolt/docs/profiles.md; the kind of name is 1 for global and 2 for local
// symbols).
func WriteBOLT(w io.Writer, b *Binary, m *Module) (samples float64, err error) {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "no_lbr cpu-clock:")
	names, err := boltNames(b.Path)
	if err != nil {
		return 0, err
	}
	addrs := make([]uint64, 0, len(m.Leaves))
	for addr := range m.Leaves {
		addrs = append(addrs, addr)
	}
	slices.Sort(addrs)
	for _, addr := range addrs {
		f := b.function(addr)
		if f == nil {
			continue
		}
		kind, name := 1, f.Name
		if local, ok := names[f.Start]; ok {
			kind, name = 2, local
		}
		fmt.Fprintf(out, "%d %s %x %d\n", kind, name, addr-f.Start, count(m.Leaves[addr]))
		samples += m.Leaves[addr]
	}
	return samples, out.Flush()
}

// boltNames returns BOLT's names of the functions that only local symbols name, by address: with the
// source file that the symbol table has before them, and a number if there are several.
func boltNames(path string) (map[uint64]string, error) {
	r, err := safeopen.File(path)
	if err != nil {
		return nil, fmt.Errorf("read the program's symbols: %w", err)
	}
	defer r.Close()
	f, err := objfile.Open(r)
	if err != nil {
		return nil, fmt.Errorf("read the program's symbols: %w", err)
	}
	names, numbers, global := map[uint64]string{}, map[string]int{}, map[uint64]bool{}
	file := ""
	err = f.Symbols(elf.SHT_SYMTAB, func(s objfile.Symbol, text []byte) bool {
		switch {
		case s.Type() == elf.STT_FILE:
			file = string(text)
		case s.Type() != elf.STT_FUNC:
		case s.Bind() != elf.STB_LOCAL:
			global[s.Value] = true
		default:
			name := string(text)
			if file != "" {
				name += "/" + file
			}
			numbers[name]++
			if _, ok := names[s.Value]; !ok {
				names[s.Value] = fmt.Sprintf("%s/%d", name, numbers[name])
			}
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("read the program's symbols: %w", err)
	}
	for addr := range global {
		delete(names, addr)
	}
	return names, nil
}
