package hotspot

import (
	"sort"
	"strings"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

// unloaded is the name of a method whose code was freed, or whose class was unloaded, before it
// could be named.
const unloaded = "[unloaded method]"

// maxResolved is how many resolved sites are kept before all are dropped.
const maxResolved = 1 << 12

// site is everything that a frame's name depends on.
type site struct {
	ref    uint64
	kind   walk.Kind
	interp bool // ref is a method's, not a blob's
}

// resolver names frames.
type resolver struct {
	cache      map[site][]symbol.Frame
	inlines    map[site]bool // the code of the site has inlined methods
	chain      []scope
	codelets   []codelet
	scopeBytes int
	precise    bool // DebugNonSafepoints is on

	stubs       []stubStart // by address; nil: not read yet
	stubVars    []stubStart // the variables that hold where stubs begin
	stubsAll    bool        // the variables of all stubs are known
	stubsMissed uint32      // the batch in which a stub was last looked for in vain
}

// codelet is a piece of the interpreter.
type codelet struct {
	lo, hi uint64
	name   string
	// whole says that a method's complete frame is there, except for what a bytecode that leaves
	// the method has taken off already.
	whole bool
	// frameless says that this is the entry of a method that has no frame in the interpreter.
	frameless bool
}

var _ symbol.Resolver = (*VM)(nil)

func (vm *VM) openNames() {
	vm.names.cache = make(map[site][]symbol.Frame)
	vm.names.inlines = make(map[site]bool)
	vm.names.precise = vm.FlagSet("DebugNonSafepoints")
}

// Resolve appends the methods that a frame of this VM stands for. It must be called in the batch in
// which the frame was walked: later its code may be gone, and then only what was named before is
// known.
//
// The Ref of a compiled method is its blob's id<<32 | the index of the PcDesc + 1 (0: position
// unknown); of an interpreted frame, the method's id<<32 | bci + 1; of any other frame, the blob's
// id<<32.
func (vm *VM) Resolve(f walk.Frame, out []symbol.Frame) []symbol.Frame {
	p := site{ref: f.Ref, kind: f.Kind}
	switch f.Kind {
	case walk.KindInterpreted:
		p.interp = true
	case walk.KindNativeMethod:
		p.interp = f.PC >= vm.interpLo && f.PC < vm.interpHi
	}
	stub := f.Kind == walk.KindStub && f.PC >= vm.interpLo && f.PC < vm.interpHi
	start := len(out)
	b := vm.stubsAt(f)
	if b != nil {
		out = append(out, symbol.Frame{Function: vm.stubNameAt(b, f.PC), BCI: -1, Kind: walk.KindStub})
	} else if vm.archive.contains(f.PC) {
		out = append(out, symbol.Frame{Function: "class data archive", BCI: -1, Kind: walk.KindStub})
	} else if stub {
		out = append(out, symbol.Frame{Function: vm.codeletAt(f.PC), BCI: -1, Kind: walk.KindStub})
	} else {
		frames, ok := vm.names.cache[p]
		if !ok {
			frames = vm.name(p)
			if len(vm.names.cache) >= maxResolved {
				clear(vm.names.cache)
				clear(vm.names.inlines)
			}
			vm.names.cache[p] = frames
		}
		out = append(out, frames...)
	}
	flags := f.Flags
	if flags&walk.ReturnAddress == 0 && !vm.names.precise && vm.names.inlines[p] {
		flags |= walk.Coarse
	}
	for i := start; i < len(out); i++ {
		out[i].Flags |= flags
		out[i].Addr = f.PC
	}
	return out
}

// stubsAt returns the blob with many stubs that the frame is in, nil if it is in none.
func (vm *VM) stubsAt(f walk.Frame) *blob {
	if f.Kind != walk.KindStub {
		return nil
	}
	if b := vm.blobAt(uint32(f.Ref >> 32)); b != nil && b.kind == blobStubRoutines {
		return b
	}
	return nil
}

// name returns the frames that a site stands for.
func (vm *VM) name(p site) []symbol.Frame {
	id, low := uint32(p.ref>>32), int32(uint32(p.ref))
	if p.interp {
		m := vm.methodAt(id)
		if m == nil {
			return unknownFrame(unloaded, p.kind)
		}
		return []symbol.Frame{vm.methodFrame(m, low-1, p.kind)}
	}
	b := vm.blobAt(id)
	if b == nil {
		return unknownFrame("[unknown code]", p.kind)
	}
	if b.nm == nil {
		return []symbol.Frame{{Function: stubName(b), BCI: -1, Kind: p.kind, NoName: b.name == ""}}
	}
	if p.kind == walk.KindStub {
		return []symbol.Frame{{Function: "static call stub", BCI: -1, Kind: p.kind}}
	}
	// The memory in which a freed nmethod records inlined methods may have been reused by now.
	if low > 0 && !b.dead {
		if out := vm.nameScopes(p, b, int(low-1)); out != nil {
			return out
		}
	}
	m := vm.methodOf(b)
	switch {
	case m == nil && (b.freed || b.nm.method == 0):
		// The VM clears an nmethod's Method, or frees the nmethod, when the class is unloaded.
		return unknownFrame(unloaded, p.kind)
	case m == nil:
		return unknownFrame("[compiled method]", p.kind)
	}
	return []symbol.Frame{vm.methodFrame(m, -1, p.kind)}
}

// nameScopes names what a PcDesc stands for, nil if it cannot be decoded.
//
// A live nmethod keeps the classes loaded to which it refers. So all that was read for the names is
// right if the nmethod was found unchanged after that, in this call or before.
func (vm *VM) nameScopes(p site, b *blob, pc int) []symbol.Frame {
	chain, ok := vm.chain(vm.names.chain[:0], b, pc)
	vm.names.chain = chain[:0]
	if !ok {
		return nil
	}
	if b.nm.scopes != nil && b.nm.scopes.inlines {
		vm.names.inlines[p] = true
	}
	vm.methods.naming = true
	defer func() { vm.methods.naming = false }()
	vm.expectScopes(chain, b)
	read := b.nm.read // what is used was read up to then
	out := make([]symbol.Frame, 0, len(chain))
	for i := range chain {
		s := &chain[i]
		kind := walk.KindInlined
		if i == len(chain)-1 {
			kind = p.kind
		}
		m := vm.proved(b, s)
		if m == nil {
			if s.method == b.nm.method {
				m = vm.methodOf(b)
			} else if id, ok := vm.method(s.method); ok {
				m = vm.methodAt(id)
			}
			if m == nil {
				read = vm.Mem.Reads
				out = append(out, unknownFrame("[inlined method]", kind)...)
				continue
			}
			s.id, read = m.id, max(read, m.seen)
		}
		// A scope may say that its method has not begun (-1): its first line is used then.
		out = append(out, vm.methodFrame(m, max(s.bci, 0), kind))
		read = max(read, m.linesSeen)
	}
	if read > b.seen && !vm.unchanged(b) {
		return unknownFrame(unloaded, p.kind)
	}
	vm.prove(b, chain)
	return out
}

// methodOf returns the method that b was compiled from, nil if it is not known.
func (vm *VM) methodOf(b *blob) *method {
	m := vm.methodAt(b.nm.methodID)
	if m == nil && !b.dead {
		// It was dropped because nobody asked for it for a long time.
		b.nm.methodID, _ = vm.method(b.nm.method)
		m = vm.methodAt(b.nm.methodID)
	}
	return m
}

// methodFrame returns the frame of a method at a bytecode, -1 if that is not known.
func (vm *VM) methodFrame(m *method, bci int32, kind walk.Kind) symbol.Frame {
	f := symbol.Frame{
		Function: m.function, Raw: m.raw, Signature: m.signature,
		File: m.source, BCI: bci, Kind: kind,
	}
	if m.native || bci < 0 || uint32(bci) >= max(m.codeSize, 1) {
		f.BCI = -1
	} else {
		f.Line = vm.line(m, bci)
	}
	return f
}

func unknownFrame(name string, kind walk.Kind) []symbol.Frame {
	return []symbol.Frame{{Function: name, BCI: -1, Kind: kind, NoName: true}}
}

// stubName returns the name of a blob that is not a method.
func stubName(b *blob) string {
	if b.name == "" {
		return "[unnamed stub]"
	}
	return b.name
}

// codeletAt returns the name of the piece of the interpreter that pc lies in.
func (vm *VM) codeletAt(pc uint64) string {
	if c := vm.codelet(pc); c != nil {
		return "Interpreter (" + c.name + ")"
	}
	return "Interpreter"
}

// codelets returns the pieces of the interpreter, in the order of their addresses.
func (vm *VM) codelets() []codelet {
	if vm.names.codelets == nil {
		vm.names.codelets = vm.readCodelets()
		s := &vm.stepping
		s.framelessLo, s.framelessHi = 0, 0
		for i := range vm.names.codelets {
			if c := &vm.names.codelets[i]; c.frameless {
				if s.framelessHi == 0 {
					s.framelessLo = c.lo
				}
				s.framelessHi = c.hi
			}
		}
	}
	return vm.names.codelets
}

// codelet finds the piece of the interpreter that pc lies in, or nil.
func (vm *VM) codelet(pc uint64) *codelet {
	all := vm.codelets()
	i := sort.Search(len(all), func(i int) bool { return all[i].hi > pc })
	if i < len(all) && all[i].lo <= pc {
		return &all[i]
	}
	return nil
}

// inWholeFrame reports whether pc lies in code of the interpreter that runs while the method's
// complete frame is there.
func (vm *VM) inWholeFrame(pc uint64) bool {
	c := vm.codelet(pc)
	return c != nil && c.whole
}

// holdsFrames reports, from the description of a piece of the interpreter, whether that is so
// there. It is in the code of bytecodes, which are named by one word while all other pieces have
// longer descriptions, and where a method resumes after a call, a safepoint or a deoptimization
// (share/interpreter/templateInterpreterGenerator.cpp, generate_all).
func holdsFrames(description string) bool {
	if !strings.Contains(description, " ") {
		return true
	}
	for _, s := range []string{"return entry points", "safepoint entry points", "deoptimization entry points"} {
		if strings.HasSuffix(description, s) && !strings.HasPrefix(description, "early") {
			return true
		}
	}
	return false
}

// readCodelets lists the pieces of the interpreter, which are [begin, end) of its queue, each with
// its size first.
func (vm *VM) readCodelets() []codelet {
	t := vm.Tables
	out := []codelet{}
	queue, ok := vm.Mem.Static(t.Field("AbstractInterpreter::_code"))
	begin, ok1 := vm.Mem.Member(queue, t.Field("StubQueue::_queue_begin"))
	end, ok2 := vm.Mem.Member(queue, t.Field("StubQueue::_queue_end"))
	size, name := t.Field("InterpreterCodelet::_size"), t.Field("InterpreterCodelet::_description")
	if !ok || !ok1 || !ok2 || end < begin || vm.interpLo+end > vm.interpHi || !size.OK || !name.OK {
		return out
	}
	if end-begin > maxCode {
		return out
	}
	code := make([]byte, end-begin)
	if !vm.Mem.Read(code, vm.interpLo+begin) {
		return out
	}
	var text []uint64
	for at := uint64(0); at+max(size.End(), name.End()) <= uint64(len(code)) && len(out) < 4096; {
		n := size.Load(code[at:])
		if n < 8 || n > uint64(len(code))-at {
			break
		}
		out = append(out, codelet{lo: vm.interpLo + begin + at, hi: vm.interpLo + begin + at + n})
		text = append(text, name.Load(code[at:]))
		at += n
	}
	named := out[:0]
	for i, s := range vm.Mem.CStrings(text, vmstructs.MaxString) {
		if c := out[i]; s != "" {
			c.name, c.whole, c.frameless = s, holdsFrames(s), strings.Contains(s, ownEntry)
			named = append(named, c)
		}
	}
	return named
}
