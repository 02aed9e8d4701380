package golang

import "io"

// Inlining describes which functions the compiler inlined where: the tables by which the runtime
// itself prints stack traces, which every program carries since Go 1.20, even when stripped
// (runtime: symtabinl.go, inlinedCall).
type Inlining struct {
	t    *Pclntab
	mem  io.ReaderAt // by address of the file
	base uint64      // runtime.moduledata.gofunc: what offsets of function data are relative to
}

// startLineLayout is the position of the flags in a function's record in those versions of the
// format in which the line of its declaration comes before them.
const startLineLayout = 37

// From the runtime: internal/abi, symtab.go.
const (
	pcdataInlTreeIndex = 2
	funcdataInlTree    = 3
	inlinedCallSize    = 16
	noFuncdata         = ^uint32(0)
)

// Bounds.
const (
	maxPCData     = 64      // lists of values of a function; there are four
	maxInlined    = 1 << 20 // functions inlined in one
	maxNested     = 128     // in each other
	maxModuleSize = 80      // words of runtime.moduledata that are looked at
	checkedTrees  = 32      // functions that have to fit
	maxChecked    = 1 << 16 // functions among which those are looked for
)

// FindInlining finds the tables. mem reads the file by address, and module is where
// runtime.moduledata may be, the structure that points at everything: any address at which there is
// a pointer to the table of functions. Its layout differs between versions, so each of its words is
// tried: with the right one, functions that have inlined others refer to descriptions that fit.
// word reads a pointer, as it will be after the program was loaded. It returns nil if nothing fits.
func (t *Pclntab) FindInlining(mem io.ReaderAt, module uint64, word func(addr uint64) (uint64, bool)) *Inlining {
	if t.layout.flag != startLineLayout {
		return nil
	}
	var some []int
	index, records := &window{r: t.r}, &window{r: t.r}
	for i := 0; i < min(t.n, maxChecked) && len(some) < checkedTrees; i++ {
		f, ok := t.fields(index, records, i)
		if !ok {
			continue
		}
		if off, ok := t.funcdata(&f, funcdataInlTree); ok && off != noFuncdata {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		return nil
	}
	tried := map[uint64]bool{}
	for i := range uint64(maxModuleSize) {
		base, ok := word(module + i*uint64(t.ptr))
		if !ok || base == 0 || tried[base] {
			continue
		}
		tried[base] = true
		in := &Inlining{t: t, mem: mem, base: base}
		if in.fits(some) {
			return in
		}
	}
	return nil
}

// fits reports whether the first entries of the tables of some functions look right.
func (in *Inlining) fits(some []int) bool {
	for _, i := range some {
		f, ok1 := in.t.fields(in.t.r, in.t.r, i)
		start, ok2 := in.t.start(in.t.r, i)
		end, ok3 := in.t.start(in.t.r, i+1)
		off, ok4 := in.t.funcdata(&f, funcdataInlTree)
		if !ok1 || !ok2 || !ok3 || !ok4 {
			return false
		}
		c, ok := in.call(off, 0)
		if !ok || uint64(c.parent) >= end-start {
			return false
		}
		// Names follow each other, each with a zero byte at its end.
		var b [2]byte
		at := in.t.names + int64(c.name)
		if c.name == 0 || at >= in.t.size {
			return false
		}
		if n, _ := in.t.r.ReadAt(b[:], at-1); n < 2 || b[0] != 0 || b[1] < ' ' {
			return false
		}
	}
	return true
}

// funcdata returns an offset of a function's data.
func (t *Pclntab) funcdata(f *fields, i int) (uint32, bool) {
	if i >= int(f.nfuncdata) || f.npcdata > maxPCData {
		return 0, false
	}
	v, ok := t.number(t.r, f.funcdata+4*int64(i), 4)
	return uint32(v), ok
}

// inlinedCall is one entry of a function's table.
type inlinedCall struct{ name, parent, start uint32 }

func (in *Inlining) call(tree uint32, i int32) (inlinedCall, bool) {
	var b [inlinedCallSize]byte
	if i < 0 || i >= maxInlined {
		return inlinedCall{}, false
	}
	if n, _ := in.mem.ReadAt(b[:], int64(in.base+uint64(tree)+uint64(i)*inlinedCallSize)); n < len(b) {
		return inlinedCall{}, false
	}
	u32 := func(at int) uint32 { return in.t.order.Uint32(b[at:]) }
	return inlinedCall{u32(4), u32(8), u32(12)}, true
}

// Position is a position in a function's source.
type Position struct {
	Function string
	File     string
	Line     int32
	Start    int32 // line of the function's declaration
}

// Lookup appends the positions of the instruction at an offset from the start of the code to out:
// inlined functions, innermost first, then the function that was compiled. It appends nothing if
// the table does not describe the instruction. Names are cut to most bytes.
func (in *Inlining) Lookup(off uint64, most int, out []Position) []Position {
	t := in.t
	i, ok := t.function(off)
	if !ok {
		return out
	}
	start, ok1 := t.start(t.r, i)
	f, ok2 := t.fields(t.r, t.r, i)
	if !ok1 || !ok2 {
		return out
	}
	at, n := off-start, len(out)
	tree, ok := t.funcdata(&f, funcdataInlTree)
	var table uint64
	if ok = ok && tree != noFuncdata && f.npcdata > pcdataInlTreeIndex; ok {
		table, ok = t.number(t.r, f.pcdata+4*pcdataInlTreeIndex, 4)
	}
	for range maxNested {
		file, line, known := t.position(&f, at)
		if !known {
			return out[:n]
		}
		p := Position{File: file, Line: line}
		index := int32(-1)
		if ok {
			if v, found := t.value(uint32(table), at); found {
				index = v
			}
		}
		if index < 0 {
			p.Function, p.Start = t.string(t.r, t.names+int64(f.name), most), int32(f.start)
			return append(out, p)
		}
		c, found := in.call(tree, index)
		if !found {
			return out[:n]
		}
		p.Function, p.Start = t.string(t.r, t.names+int64(c.name), most), int32(c.start)
		out = append(out, p)
		at = uint64(c.parent)
	}
	return out[:n]
}
