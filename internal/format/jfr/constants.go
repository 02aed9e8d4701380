package jfr

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// Source provides what samples refer to by number; a profile.Builder is one. A value that it
// returned once does not change, except threads and processes.
type Source interface {
	At(node uint32) profile.Node
	Frames() []profile.Frame
	Funcs() []profile.Func
	Threads() []profile.Thread
	Processes() []profile.Process
	Syscalls() []string
	Labels() [][]profile.Label
	// Observations returns those that it still has, and how many there were before them.
	Observations() (list []profile.Observation, gone int)
}

// pool collects constants of one type until they are written.
type pool struct {
	typ int
	n   int
	b   []byte
}

// entry begins a constant.
func (p *pool) entry(id uint64) {
	p.n++
	p.b = appendLong(p.b, id)
}

func (p *pool) long(v uint64) { p.b = appendLong(p.b, v) }
func (p *pool) int(v int32)   { p.b = appendInt(p.b, v) }

func (p *pool) flag(v bool) {
	if v {
		p.b = append(p.b, 1)
	} else {
		p.b = append(p.b, 0)
	}
}

// constants are the tables of one chunk: what is in the file already, and what is new since the
// last checkpoint. No number is ever reused, not even later in the file, because readers keep
// constants from one chunk to the next.
type constants struct {
	src Source

	symbols, classes, packages, methods pool
	functions, frames, nodes, kinds     pool
	nodesOf                             pool
	traces, threads, syscalls           pool
	fixed                               bool // the constants that never change are in the file
	haveNoStack                         bool

	symbolOf, classOf, packageOf map[string]uint32
	nextSymbol, nextClass        uint32
	nextPackage                  uint32

	haveFunc, haveFrame []bool  // by index in the source
	nodeOf              numbers // by node of the source: its number in the file
	traceOf             ids     // the same for whole stacks
	nextNode, nextTrace uint32
	traceByHash         hashes // numbers of traces
	sorted              bool   // stacks for other readers are sorted, see likeOrder
	traceAt             []int  // where in traces.b each of them begins, if they are sorted
	traceLike           [][]byte
	traceSpare          []byte
	kindOf              map[kind]uint32
	nextKind            uint32
	haveCall            []bool
	threadOf            []uint32
	nextThread          uint32

	stacks    []byte   // the nodes of stacks that are not in a pool yet
	stackFrom uint64   // the number of the first of those
	stackLast uint32   // the node of the last one
	nodeFirst []uint32 // by stack, from traceByHash.first on: the node of its first sample

	run     []byte   // nodes that are not in a pool yet
	path    []uint32 // scratch
	runFrom uint32
}

// kind holds the properties of a sample that differ between few samples.
type kind struct {
	event, call uint16
	state       profile.State
	end         walk.End
	flags       profile.SampleFlags
}

func newConstants(src Source) *constants {
	c := &constants{src: src, kindOf: map[kind]uint32{}}
	c.symbols.typ, c.classes.typ, c.packages.typ, c.methods.typ = typeSymbol, typeClass, typePackage, typeMethod
	c.functions.typ, c.frames.typ, c.nodes.typ, c.kinds.typ = typeFunction, typeFrame, typeNodes, typeKind
	c.nodesOf.typ = typeStacks
	c.traces.typ, c.threads.typ, c.syscalls.typ = typeStackTrace, typeThread, typeSyscall
	c.renew()
	return c
}

// renew forgets what is in the file: each chunk contains all constants that it needs.
func (c *constants) renew() {
	c.symbolOf, c.classOf, c.packageOf = map[string]uint32{}, map[string]uint32{}, map[string]uint32{}
	c.traceByHash = hashes{first: c.nextTrace + 1}
	c.nodeFirst = c.nodeFirst[:0]
	clear(c.haveFunc)
	clear(c.haveFrame)
	c.nodeOf, c.traceOf = numbers{}, ids{}
	clear(c.haveCall)
	clear(c.threadOf)
	clear(c.kindOf)
	c.fixed, c.haveNoStack = false, false
}

// at makes list long enough for index i.
func at[T any](list []T, i uint32) []T {
	if n := int(i) + 1 - len(list); n > 0 {
		list = append(list, make([]T, n)...)
	}
	return list
}

// symbol returns the number of a text, 0 for none.
func (c *constants) symbol(s string) uint64 {
	if s == "" {
		return 0
	}
	return c.named(s)
}

// named returns the number of a text, also of an empty one: in fields that other readers use, they
// do not accept 0.
func (c *constants) named(s string) uint64 {
	id, ok := c.symbolOf[s]
	if !ok {
		c.nextSymbol++
		id = c.nextSymbol
		c.symbolOf[s] = id
		c.symbols.entry(uint64(id))
		c.symbols.b = appendSymbol(c.symbols.b, s)
	}
	return uint64(id)
}

// class returns the number of a class by its name with slashes.
func (c *constants) class(name string) uint64 {
	id, ok := c.classOf[name]
	if !ok {
		c.nextClass++
		id = c.nextClass
		c.classOf[name] = id
		pkg := uint64(0)
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			pkg = c.pkg(name[:i])
		}
		symbol := c.named(name)
		c.classes.entry(uint64(id))
		c.classes.long(0) // class loader
		c.classes.long(symbol)
		c.classes.long(pkg)
		c.classes.int(0) // modifiers
	}
	return uint64(id)
}

func (c *constants) pkg(name string) uint64 {
	id, ok := c.packageOf[name]
	if !ok {
		c.nextPackage++
		id = c.nextPackage
		c.packageOf[name] = id
		symbol := c.symbol(name)
		c.packages.entry(uint64(id))
		c.packages.long(symbol)
	}
	return uint64(id)
}

// split returns a function as a class, with slashes, and a method. The class of native code is its
// module.
func split(f *profile.Func) (class, method string) {
	if f.Module != "" {
		return strings.Trim(f.Module, "[]"), f.Name
	}
	name := f.Name
	if i := strings.IndexAny(name, "( "); i >= 0 {
		name = name[:i]
	}
	i := strings.LastIndexByte(name, '.')
	if i <= 0 || i+1 == len(f.Name) {
		return "", f.Name
	}
	return strings.ReplaceAll(f.Name[:i], ".", "/"), f.Name[i+1:]
}

// joined returns the name that a class and a method stand for.
func joined(class, method string) string {
	if class == "" {
		return method
	}
	return strings.ReplaceAll(class, "/", ".") + "." + method
}

// nativeDescriptor is the descriptor where no parameters exist; other profilers write it there,
// too.
const nativeDescriptor = "()L;"

// function returns the number of a function, as a method and as a function.
func (c *constants) function(i uint32) uint64 {
	id := uint64(i) + 1
	c.haveFunc = at(c.haveFunc, i)
	if c.haveFunc[i] {
		return id
	}
	c.haveFunc[i] = true
	f := &c.src.Funcs()[i]
	class, method := split(f)
	descriptor := f.Signature
	if !strings.HasPrefix(descriptor, "(") {
		descriptor = nativeDescriptor
		if f.Module == "" && class != "" {
			descriptor = "()" // a method whose parameters are not known
		}
	}
	classID, methodName, desc := c.class(class), c.named(method), c.named(descriptor)
	c.methods.entry(id)
	c.methods.long(classID)
	c.methods.long(methodName)
	c.methods.long(desc)
	c.methods.int(0) // modifiers
	c.methods.flag(false)

	name := uint64(0)
	if f.Module != "" || f.Name == "" || joined(class, method) != f.Name {
		name = c.symbol(f.Name)
	}
	raw, signature, module, file := c.symbol(f.Raw), c.symbol(f.Signature), c.symbol(f.Module), c.symbol(f.File)
	c.functions.entry(id)
	c.functions.long(name)
	c.functions.long(raw)
	c.functions.long(signature)
	c.functions.long(module)
	c.functions.long(file)
	c.functions.flag(f.NoName)
	c.functions.int(f.Start)
	return id
}

func (c *constants) frame(i uint32) uint64 {
	id := uint64(i) + 1
	c.haveFrame = at(c.haveFrame, i)
	if c.haveFrame[i] {
		return id
	}
	c.haveFrame[i] = true
	f := &c.src.Frames()[i]
	function := c.function(f.Func)
	c.frames.entry(id)
	c.frames.long(function)
	c.frames.int(f.Line)
	c.frames.int(f.BCI + 1)
	c.frames.long(uint64(f.Kind) + 1)
	c.frames.long(uint64(f.Prov) + 1)
	c.frames.int(int32(f.Flags))
	c.frames.long(f.Addr)
	return id
}

// take returns the pools with new constants, with the stacks for other readers separate, and begins
// new ones. Their bytes are valid until the next constant.
func (c *constants) take() (rest, traces []pool) {
	c.endRun()
	if len(c.stacks) > 0 {
		c.nodesOf.entry(c.stackFrom)
		c.nodesOf.b = appendBytes(c.nodesOf.b, c.stacks)
		c.stacks = c.stacks[:0]
	}
	if !c.fixed {
		c.fixed = true
		rest = append(rest, fixedPools()...)
	}
	for _, p := range []*pool{&c.threads, &c.symbols, &c.packages, &c.classes, &c.methods, &c.functions, &c.frames, &c.nodes, &c.nodesOf, &c.syscalls, &c.kinds} {
		if p.n > 0 {
			rest = append(rest, *p)
			p.n, p.b = 0, again(p.b)
		}
	}
	if c.traces.n > 0 {
		if c.sorted {
			c.likeOrder()
		}
		traces = append(traces, c.traces)
		c.traces.n, c.traces.b = 0, again(c.traces.b)
	}
	return rest, traces
}

// likeOrder sorts the stacks for other readers by their outermost frames, with which their bytes
// end: then most of each is the same as in the one before it, which compresses well.
func (c *constants) likeOrder() {
	b := c.traces.b
	c.traceAt = append(c.traceAt, len(b))
	c.traceLike = c.traceLike[:0]
	for i, from := range c.traceAt[:c.traces.n] {
		c.traceLike = append(c.traceLike, b[from:c.traceAt[i+1]])
	}
	slices.SortFunc(c.traceLike, fromTheEnd)
	c.traceSpare = c.traceSpare[:0]
	for _, trace := range c.traceLike {
		c.traceSpare = append(c.traceSpare, trace...)
	}
	c.traces.b, c.traceSpare = c.traceSpare, again(b)
	c.traceAt = c.traceAt[:0]
}

// fromTheEnd compares bytes starting with the last one.
func fromTheEnd(a, b []byte) int {
	for len(a) >= 8 && len(b) >= 8 {
		x, y := binary.LittleEndian.Uint64(a[len(a)-8:]), binary.LittleEndian.Uint64(b[len(b)-8:])
		if x != y {
			return cmp.Compare(x, y)
		}
		a, b = a[:len(a)-8], b[:len(b)-8]
	}
	for i, j := len(a)-1, len(b)-1; i >= 0 && j >= 0; i, j = i-1, j-1 {
		if a[i] != b[j] {
			return cmp.Compare(a[i], b[j])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// keepRoom is how many bytes of a buffer are kept for reuse. Steps that take more are rare.
const keepRoom = 256 << 10

// again empties b for reuse.
func again(b []byte) []byte {
	if cap(b) > keepRoom {
		return nil
	}
	return b[:0]
}

// size returns how many bytes of constants are to be written.
func (c *constants) size() int {
	n := len(c.run) + len(c.stacks)
	for _, p := range []*pool{&c.threads, &c.symbols, &c.packages, &c.classes, &c.methods, &c.functions, &c.frames, &c.nodes, &c.nodesOf, &c.syscalls, &c.kinds, &c.traces} {
		n += len(p.b)
	}
	return n
}
