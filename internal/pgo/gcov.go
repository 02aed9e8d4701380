package pgo

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Numbers from gcc: gcov-io.h (GCOV_DATA_MAGIC, GCOV_TAG_AFDO_…) and auto-profile.cc, version 2.
const (
	gcovMagic      = 0x67636461
	gcovVersion    = 2
	gcovNames      = 0xaa000000
	gcovFunctions  = 0xac000000
	gcovModules    = 0xae000000
	gcovIndirect   = 7 // HIST_TYPE_INDIR_CALL_TOPN; gcc 12 does not look at it
	maxGCovNesting = 64
)

// WriteGCov writes the profile that gcc reads with -fauto-profile. gcc 12 does not tell blocks of a
// line apart there, so places of the same line are one.
func (t *Tree) WriteGCov(w io.Writer) error {
	g := &gcov{w: bufio.NewWriter(w), index: map[string]uint32{}}
	functions := t.sorted()
	for _, f := range functions {
		g.collect(f, 0)
	}
	slices.Sort(g.names)
	words := 1
	for i, name := range g.names {
		g.index[name] = uint32(i)
		words += 1 + (len(name)+1+3)/4
	}
	g.u32(gcovMagic, gcovVersion, 0)
	g.u32(gcovNames, uint32(words), uint32(len(g.names)))
	for _, name := range g.names {
		g.text(name)
	}
	g.u32(gcovFunctions, 0, uint32(len(functions)))
	for _, f := range functions {
		g.u64(count(f.head))
		g.function(f, 0)
	}
	g.u32(gcovModules, 1, 0)
	if g.err == nil {
		g.err = g.w.Flush()
	}
	if g.err != nil {
		return fmt.Errorf("write gcov: %w", g.err)
	}
	return nil
}

type gcov struct {
	w     *bufio.Writer
	err   error
	names []string
	index map[string]uint32
}

func (g *gcov) u32(values ...uint32) {
	for _, v := range values {
		if g.err == nil {
			_, g.err = g.w.Write(binary.LittleEndian.AppendUint32(nil, v))
		}
	}
}

// u64 writes a counter, the lower half first.
func (g *gcov) u64(v uint64) { g.u32(uint32(v), uint32(v>>32)) }

// text writes a string with its length in bytes, the zero at its end included. (autofdo 0.19 writes
// it in words, which gcc 12 reads wrongly.)
func (g *gcov) text(s string) {
	g.u32(uint32(len(s) + 1))
	if g.err == nil {
		_, g.err = g.w.WriteString(s + "\x00")
	}
}

func (g *gcov) name(s string) {
	if _, ok := g.index[s]; !ok {
		g.index[s] = 0
		g.names = append(g.names, s)
	}
}

// collect collects the names in a function.
func (g *gcov) collect(f *function, depth int) {
	g.name(f.name)
	for _, b := range f.body {
		for name := range b.targets {
			g.name(name)
		}
	}
	if depth >= maxGCovNesting {
		return
	}
	for _, m := range f.inlined {
		for _, in := range m {
			g.collect(in, depth+1)
		}
	}
}

// function writes a function without how often it was called.
func (g *gcov) function(f *function, depth int) {
	lines := map[location]*body{}
	for l, b := range f.body {
		l.discriminator = 0
		of := lines[l]
		if of == nil {
			of = &body{targets: map[string]float64{}}
			lines[l] = of
		}
		of.count = max(of.count, b.count)
		for name, n := range b.targets {
			of.targets[name] += n
		}
	}
	type site struct {
		at location
		of *function
	}
	var sites []site
	if depth < maxGCovNesting {
		merged := map[location]map[string]*function{}
		for l, m := range f.inlined {
			l.discriminator = 0
			for name, in := range m {
				if merged[l] == nil {
					merged[l] = map[string]*function{}
				}
				if old := merged[l][name]; old != nil {
					in = join(old, in)
				}
				merged[l][name] = in
			}
		}
		for _, l := range sortedKeys(merged) {
			for _, name := range slices.Sorted(maps.Keys(merged[l])) {
				sites = append(sites, site{l, merged[l][name]})
			}
		}
	}
	g.u32(g.index[f.name], uint32(len(lines)), uint32(len(sites)))
	for _, l := range sortedKeys(lines) {
		b := lines[l]
		targets := b.sortedTargets()
		g.u32(l.line<<16, uint32(len(targets)))
		g.u64(count(b.count))
		for _, c := range targets {
			g.u32(gcovIndirect)
			g.u64(uint64(g.index[c.name]))
			g.u64(c.count)
		}
	}
	for _, s := range sites {
		g.u32(s.at.line << 16)
		g.function(s.of, depth+1)
	}
}

// join returns the profile of two copies of a function.
func join(a, b *function) *function {
	out := newFunction(a.name)
	out.head = a.head + b.head
	for _, f := range []*function{a, b} {
		for l, from := range f.body {
			to := out.at(l)
			to.count = max(to.count, from.count)
			for name, n := range from.targets {
				if to.targets == nil {
					to.targets = map[string]float64{}
				}
				to.targets[name] += n
			}
		}
		for l, m := range f.inlined {
			for name, in := range m {
				if old := out.inlined[l][name]; old != nil {
					in = join(old, in)
				}
				if out.inlined[l] == nil {
					out.inlined[l] = map[string]*function{}
				}
				out.inlined[l][name] = in
			}
		}
	}
	return out
}
