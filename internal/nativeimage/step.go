package nativeimage

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// VM is the native images of one process: a walk.Stepper for their code. It is used from one
// goroutine.
type VM struct {
	images  []mapped
	native  *native.Stepper
	memory  *target.Memory
	process *target.Process
	unknown Guesser

	calls  []call
	leaves map[uint64]leaf
	reader codeReader

	lists map[listKey]places
	texts map[textKey]string

	threads threads
}

// mapped is an image in a process.
type mapped struct {
	*known
	code span   // in the process
	bias uint64 // the process's addresses minus the file's
}

// call is a place in the cache of return addresses.
type call struct {
	at   uint64
	size uint32 // of the frame; 0: not known
	out  bool   // native code calls it
	// to is what is called, if the table does not have the return address: it has none of calls of
	// code that never stops for the collector. 0: the table has it.
	to uint64
}

const callBits = 13

func (vm *VM) reset() {
	vm.calls = make([]call, 1<<callBits)
	vm.leaves = map[uint64]leaf{}
	vm.lists, vm.texts = map[listKey]places{}, map[textKey]string{}
	vm.threads.seen = map[uint32]uint64{}
}

func (vm *VM) add(k *known, bias uint64) {
	code := span{k.code.start + bias, k.code.end + bias}
	for i := range vm.images {
		if vm.images[i].code == code {
			return
		}
	}
	vm.images = append(vm.images, mapped{k, code, bias})
}

// find returns the image that has an address in its code.
func (vm *VM) find(at uint64) *mapped {
	for i := range vm.images {
		if vm.images[i].code.has(at) {
			return &vm.images[i]
		}
	}
	return nil
}

// Owns implements walk.Stepper.
func (vm *VM) Owns(pc uint64) bool { return vm.find(pc) != nil || vm.unknown.Owns(pc) }

// Step implements walk.Stepper.
func (vm *VM) Step(c *walk.Cursor) walk.Verdict {
	pc := c.Regs.PC
	im := vm.find(pc)
	if im == nil {
		return vm.unknown.Step(c)
	}
	f := c.Stack.Next()
	*f = walk.Frame{PC: pc, Kind: walk.KindAOT, Prov: c.Prov}
	if c.Leaf {
		vm.threads.saw(c)
		return vm.leave(c, im, pc)
	}
	f.Flags = walk.ReturnAddress
	e := &vm.calls[pc*0x9e3779b97f4a7c15>>(64-callBits)]
	if e.at != pc {
		vm.lookUp(c, e, im, pc)
	}
	if e.size == 0 {
		return walk.Stuck
	}
	if e.to != 0 {
		c.Prov = max(c.Prov, walk.Derived)
		f.Prov = c.Prov
	}
	return vm.to(c, im, c.Regs.SP()+uint64(e.size), e.out)
}

// lookUp fills a place of the cache for a return address.
func (vm *VM) lookUp(c *walk.Cursor, e *call, im *mapped, pc uint64) {
	*e = call{at: pc}
	rel := pc - im.code.start
	x, exact, ok := im.table.seek(rel)
	if !ok {
		return
	}
	if exact && x.kind != noFrameInfo && x.bytes() >= 8 {
		e.size, e.out = uint32(x.bytes()), x.frame&frameEntryPoint != 0
		return
	}
	const length = 5 // of a call of a fixed address
	b := c.Code(pc-length, length)
	m, _, ok := im.table.method(rel - 1)
	if b == nil || b[0] != 0xe8 || !ok {
		return
	}
	to := pc + uint64(int64(int32(binary.LittleEndian.Uint32(b[1:]))))
	if vm.begin(to) == to || vm.find(to) == nil && vm.native.Executable(to) {
		e.size, e.out, e.to = uint32(m.frame)&^frameFlags, m.frame&frameEntryPoint != 0, to
	}
}

// begin returns where the method begins that holds an address; 0 if none does.
func (vm *VM) begin(at uint64) uint64 {
	if im := vm.find(at); im != nil {
		if m, _, ok := im.table.method(at - im.code.start); ok {
			return im.code.start + uint64(m.start)
		}
	}
	return 0
}

// leave moves the Cursor to the caller of code that the thread was stopped in.
func (vm *VM) leave(c *walk.Cursor, im *mapped, pc uint64) walk.Verdict {
	l, ok := vm.leaves[pc]
	if !ok {
		l = vm.reader.leaf(c.Mem, im, pc)
		if len(vm.leaves) >= maxLeaves {
			clear(vm.leaves)
		}
		vm.leaves[pc] = l
	}
	if !l.known {
		return walk.Stuck
	}
	if !l.built {
		c.Prov = max(c.Prov, walk.Derived)
	}
	return vm.to(c, im, c.Regs.SP()+uint64(l.depth)+8, l.out)
}

// to moves the Cursor to the caller of a frame that ends at an address, just above the return
// address. out says that the frame's code is called by native code; all other is called by code of
// the image, at a place that the table has.
func (vm *VM) to(c *walk.Cursor, im *mapped, end uint64, out bool) walk.Verdict {
	ra, ok := c.Word(end - 8)
	if !ok || ra < 4096 {
		return walk.Stuck
	}
	if caller := vm.find(ra); caller != nil {
		e := &vm.calls[ra*0x9e3779b97f4a7c15>>(64-callBits)]
		if e.at != ra {
			vm.lookUp(c, e, caller, ra)
		}
		if e.size == 0 || e.to != 0 && e.to != vm.begin(c.Regs.PC) {
			return walk.Stuck
		}
	} else if !out || !vm.native.Executable(ra-1) || !c.AfterCall(ra) {
		return walk.Stuck
	}
	c.Regs.PC = ra
	c.Regs.SetSP(end)
	c.Regs.Known = 1 << cpu.RSP
	c.Leaf, c.Unextended, c.LeafCallee = false, 0, false
	return walk.Stepped
}
