package coreclr

import (
	"strings"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// maxStub bounds the code of a stub that is read, in bytes.
const maxStub = 256

// Code is what is known of a process's native code; *native.Stepper implements it.
type Code interface {
	// Frame returns the frame of an address; its Kind is walk.KindUnknown if no file holds it.
	Frame(pc uint64, flags walk.FrameFlags) (walk.Frame, bool)
	// Locate returns the mapping that a frame is in.
	Locate(f walk.Frame) (*native.Module, uint64, bool)
}

// ownMemory is the memory from which the runtime maps its code twice, to write it in one place and
// to run it in another (src/coreclr/minipal/Unix/doublemapping.cpp).
const ownMemory = "/memfd:doublemapper"

// loose reports whether an address lies in memory that no file holds, and whether that is certainly
// the runtime's. The runtime puts small pieces of code there that its map does not have, such as
// those that move a delegate's arguments, or through which native code calls managed code.
func (vm *VM) loose(pc uint64) (is, own bool) {
	if vm.native == nil {
		return false, false
	}
	f, ok := vm.native.Frame(pc, 0)
	if !ok || f.Kind != walk.KindUnknown {
		return false, false
	}
	m, _, ok := vm.native.Locate(f)
	return true, ok && (strings.HasPrefix(m.Mapping.Path, ownMemory) || vm.system.Windows && vm.doubled(m.Mapping))
}

// doubled reports whether a mapping is of the file from which the runtime maps its code twice. It has no name
// of its own on Windows, but code that the runtime's map knows is in it too.
func (vm *VM) doubled(m target.Mapping) bool {
	id := m.ID()
	switch {
	case m.Inode == 0 || m.FileBacked():
		return false
	case vm.ownFile != fileid.ID{}: // there is one such file
		return vm.ownFile == id
	}
	for _, s := range vm.sections.known {
		f, ok := vm.native.Frame(s.lo, 0)
		if !ok || s.kind == image {
			continue
		}
		if k, _, ok := vm.native.Locate(f); ok && id == k.Mapping.ID() {
			vm.ownFile = id
			return true
		}
	}
	return false
}

// stepStub steps over code that belongs to no method: precode, which leads to a method that may
// not be compiled yet, dispatch of interface calls, counting of calls. It jumps to where it leads
// and calls nothing, so only the innermost frame can be in it. What it has pushed by then is found by
// reading the code.
func (vm *VM) stepStub(c *walk.Cursor, at uint64, flags walk.FrameFlags) walk.Verdict {
	s := vm.sectionOf(at)
	own := s != nil
	if !own {
		is := false
		if is, own = vm.loose(at); !c.Leaf || !is {
			return walk.NotMine
		}
	}
	f := walk.Frame{PC: c.Regs.PC, Ref: vm.stubRef(s, at), Kind: walk.KindStub, Prov: c.Prov, Flags: flags}
	if !c.Leaf {
		c.Stack.Push(f)
		return walk.Stuck
	}
	code := vm.stubCode[:]
	if s != nil && s.hi-at < maxStub {
		code = code[:s.hi-at]
	}
	for len(code) > 0 && !vm.mem.Bytes(at, code) {
		code = code[:len(code)/2] // what follows may not be mapped
	}
	r := vm.pushed(at)
	if r == nil {
		r = vm.reader.TailRule(code, at, at)
	}
	ok := r != nil
	if ok {
		var ra uint64
		ra, _, ok = native.Caller(c, r)
		// Code in memory of unknown use is the runtime's only if managed code has called it.
		ok = ok && c.AfterCall(ra) && (own || vm.sectionOf(ra-1) != nil)
	}
	if !ok && s == nil {
		return walk.NotMine
	}
	c.Stack.Push(f)
	if !ok || !native.Follow(c, r) {
		return walk.Stuck
	}
	c.Prov = max(c.Prov, walk.Derived)
	return walk.Stepped
}

// stepChain steps over chainCode, a function of the runtime's own.
func (vm *VM) stepChain(c *walk.Cursor) walk.Verdict {
	r := vm.chainRule(c.Regs.PC)
	if ra, _, ok := native.Caller(c, r); !ok || !c.AfterCall(ra) {
		return walk.NotMine
	}
	c.Stack.Push(walk.Frame{PC: c.Regs.PC, Kind: walk.KindStub, Prov: c.Prov})
	if !native.Follow(c, r) {
		return walk.Stuck
	}
	c.Prov = max(c.Prov, walk.Derived)
	return walk.Stepped
}

// stubRef returns the Ref of a stub: the id of its kind's piece of code.
func (vm *VM) stubRef(s *section, at uint64) uint64 {
	if s != nil && s.kind == methods {
		if c := vm.generated(s, at); c != nil {
			return uint64(c.id)<<32 | (at-c.start)&0xffffffff
		}
	}
	return 0
}
