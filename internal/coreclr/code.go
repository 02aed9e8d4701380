package coreclr

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/clrdebug"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/winunwind"
)

// Bounds of what is read of generated code.
const (
	maxUnwinds  = 1 << 12 // functions of one method: its body and its funclets
	maxMethod   = 1 << 26 // bytes of one method
	maxCodes    = 1 << 20 // pieces of code of one process
	pcCacheBits = 14
)

// code is a piece of managed code: the body of a method, or a stub.
type code struct {
	id     uint32 // index into codeTable.all
	start  uint64
	end    uint64
	base   uint64    // what parts are relative to
	method uint64    // MethodDesc; 0 for a stub, or if it is not known
	debug  uint64    // its debug information, 0 for none
	stub   uint8     // kind of stub
	image  *ready    // of code that was compiled ahead of time
	kind   walk.Kind // KindUnknown: not asked yet

	freed  bool   // it may be freed
	header uint64 // the word before start, which tells this method from a later one there
	batch  uint32 // in which that was compared
	dead   bool   // something else is there now

	parts []part // by address
	named named

	bounds  []clrdebug.Boundary // which code is of which instruction
	bounded bool                // they were read

	inlines  *clrdebug.Inlines // what is known of methods that were inlined; nil: nothing, or not read yet
	rich     bool              // it was read
	inlinees []named           // by node; nil: none was named yet
}

// part is a function of a method, with unwind information of its own.
type part struct {
	winunwind.Function
	body *step // of a frame whose prologue is complete; nil: not read yet
	// funclet says that it is the handler of an exception, or what runs at the end of a try block, and
	// not a piece of the method's body.
	funclet bool
}

// codeTable is what is known of pieces of code and of single addresses.
type codeTable struct {
	all     []*code // by id; 0 is not used
	byStart map[uint64]*code
	pcs     []pcEntry
	leaves  map[uint64]*ehframe.Rule // rules of addresses at which threads stopped
}

// pcEntry is what is known of an address.
type pcEntry struct {
	pc   uint64 // looked up: for return addresses, one less
	code *code
	step *step // to the caller, if the frame is complete
	part int32
}

func (t *codeTable) open() {
	t.all = []*code{nil}
	t.byStart = map[uint64]*code{}
	t.pcs = make([]pcEntry, 1<<pcCacheBits)
	t.leaves = map[uint64]*ehframe.Rule{}
}

// forget drops what is known of addresses, but not what pieces of code are called: frames that were
// walked may still be named.
func (t *codeTable) forget() {
	clear(t.pcs)
	clear(t.byStart)
	clear(t.leaves)
}

// at returns what is known of an address in managed code; nil if it is in none, or in a stub.
func (vm *VM) at(pc uint64) *pcEntry {
	e := &vm.code.pcs[pc*0x9e3779b97f4a7c15>>(64-pcCacheBits)]
	if e.pc == pc && e.code != nil && (!e.code.freed || vm.stands(e.code)) {
		return e
	}
	s := vm.sectionOf(pc)
	if s == nil {
		return nil
	}
	var c *code
	switch s.kind {
	case methods:
		c = vm.generated(s, pc)
	case image:
		c = vm.precompiled(s, pc)
	}
	if c == nil || pc < c.start {
		return nil
	}
	*e = pcEntry{pc: pc, code: c, part: -1}
	for i := range c.parts {
		if p := &c.parts[i]; p.Contains(uint32(pc - c.base)) {
			e.part, e.step = int32(i), vm.body(c, p)
			break
		}
	}
	return e
}

// generated returns the method that was generated at an address of a heap, nil if there is none.
func (vm *VM) generated(s *section, pc uint64) *code {
	start, ok := vm.methodStart(s, pc)
	if !ok || start < s.lo+8 {
		return nil
	}
	if c := vm.code.byStart[start]; c != nil && (!c.freed || vm.stands(c)) {
		if pc >= c.end {
			return nil // between methods
		}
		return c
	}
	header, ok := vm.mem.Word(start - 8)
	if !ok {
		return nil
	}
	c := &code{start: start, base: s.base, header: header, freed: s.freed, batch: vm.batch}
	if header <= vm.lay.lastStub {
		c.stub, c.end = uint8(header), s.hi
		return vm.add(c)
	}
	l := &vm.lay.header
	var b [4]byte
	method, ok1 := vm.mem.Word(header + l.method)
	debug, ok2 := vm.mem.Word(header + l.debug)
	ok3 := vm.mem.Bytes(header+l.unwinds, b[:])
	n := binary.LittleEndian.Uint32(b[:])
	if !ok1 || !ok2 || !ok3 || n == 0 || n > maxUnwinds {
		return nil
	}
	c.method, c.debug, c.parts = method, debug, make([]part, n)
	for i := range c.parts {
		var f [winunwind.FunctionSize]byte
		if !vm.mem.Bytes(header+l.unwind+uint64(i)*winunwind.FunctionSize, f[:]) {
			return nil
		}
		c.parts[i] = part{Function: winunwind.ParseFunction(f[:]), funclet: i > 0}
		c.end = max(c.end, c.base+uint64(c.parts[i].End))
	}
	if c.base+uint64(c.parts[0].Begin) != start || c.end <= start || c.end-start > maxMethod || c.end > s.hi {
		return nil // it is being made
	}
	if pc >= c.end {
		return nil
	}
	return vm.add(c)
}

// add remembers a piece of code.
func (vm *VM) add(c *code) *code {
	t := &vm.code
	if len(t.all) >= maxCodes {
		t.open()
	}
	c.id = uint32(len(t.all))
	t.all = append(t.all, c)
	t.byStart[c.start] = c
	return c
}

// stands reports whether code that may be freed is still what it was.
func (vm *VM) stands(c *code) bool {
	if c.batch == vm.batch || c.dead {
		return !c.dead
	}
	c.batch = vm.batch
	header, ok1 := vm.mem.Word(c.start - 8)
	ok2, method := true, c.method
	if c.stub == 0 {
		method, ok2 = vm.mem.Word(c.header + vm.lay.header.method)
	}
	if (!ok1 || !ok2) && vm.ended() {
		return true
	}
	if c.dead = !ok1 || !ok2 || header != c.header || method != c.method; c.dead && vm.code.byStart[c.start] == c {
		delete(vm.code.byStart, c.start)
	}
	return !c.dead
}

// unwinder returns the reader of the unwind information of a piece of code.
func (vm *VM) unwinder(c *code) *winunwind.Unwinder {
	mem := vm.mem
	if c.image != nil {
		mem = c.image.mem
	}
	return &winunwind.Unwinder{Reader: winunwind.At{Memory: mem, Base: c.base}, Unix: !vm.system.Windows}
}

// body returns the step from a frame of a function whose prologue is complete; nil if there is none.
func (vm *VM) body(c *code, p *part) *step {
	if p.body == nil {
		p.body = &step{}
		// Any address behind the prologue has the same rule, if it does not belong to the innermost
		// frame, which may be in an epilogue.
		if r, err := vm.unwinder(c).Rule(p.Function, p.End-1, false); err == nil {
			p.body.compile(r)
		}
	}
	if !p.body.ok {
		return nil
	}
	return p.body
}

// leaf returns the rule of the address at which a thread stopped, nil if there is none.
func (vm *VM) leaf(c *code, p *part, pc uint64) *ehframe.Rule {
	if r, ok := vm.code.leaves[pc]; ok && !c.freed {
		return r
	}
	r, err := vm.unwinder(c).Rule(p.Function, uint32(pc-c.base), true)
	if err != nil {
		r = nil
	}
	const most = 1 << 14
	if len(vm.code.leaves) >= most {
		clear(vm.code.leaves)
	}
	vm.code.leaves[pc] = r
	return r
}
