package hotspot

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/walk"
)

// The frame of enterSpecial, in which a carrier's stack ends and a virtual thread's begins
// (docs/hotspot.md, "Continuations"; 21 to 26 share/runtime/continuationEntry.hpp), is a
// ContinuationEntry, then the saved frame pointer and the return address. The address of the
// ContinuationEntry is the frame's stack pointer.
const (
	entryParent       = 8
	entryContinuation = 16
	entryFlags        = 32
	entryFrame        = 80
)

// maxChunkFrames bounds the frames of one chunk.
const maxChunkFrames = 16384

// stepBarrier continues the walk if the lowest frame of a virtual thread that is on the carrier's
// stack returns to the return barrier. Its callers are in chunks in the heap, which the engine has
// copied together with the stack. The walk then continues with the carrier's own frames, so that
// the stack reaches the thread's first frame. If the chunks were not copied, the stack ends here,
// because what the heap holds by now is from another moment.
func (vm *VM) stepBarrier(c *walk.Cursor, e *pcEntry) walk.Verdict {
	entry, ok := vm.copiedEntry(c)
	if !ok {
		markVirtual(c)
		return walk.Uncopied
	}
	if c.LeafCallee && !vm.unmounting(e) {
		// The stub has called the VM to bring frames back from the heap. Java code that the VM
		// calls from there runs on top of frames that are back already: a class is initialized
		// again after the thread had to wait for it.
		if !vm.mounting(e) || slices.ContainsFunc(c.Stack.Frames, func(f walk.Frame) bool { return isJava(f.Kind) }) {
			// It cannot be told where each of the virtual thread's frames is at this moment.
			vm.push(c, e.pc, e.ref, walk.KindStub, walk.Exact, walk.ReturnAddress)
			markVirtual(c)
			return walk.Uncopied
		}
		vm.push(c, e.pc, e.ref, walk.KindStub, walk.Exact, walk.ReturnAddress)
	} else {
		on := len(c.Stack.Frames)
		if !vm.walkHeap(c, entry) || !vm.dropFrozen(c, entry, on) {
			c.Stack.Frames = c.Stack.Frames[:on]
			markVirtual(c)
			return walk.Uncopied
		}
		markVirtual(c)
	}
	return vm.leaveContinuation(c, e, entry)
}

// leaveContinuation goes to the caller of enterSpecial, whose frame is at entry. The barrier hides
// where enterSpecial continues. JDK 25+ publishes it; before that, it is known once a stack without
// a barrier was seen, and until then the barrier stands for it.
func (vm *VM) leaveContinuation(c *walk.Cursor, e *pcEntry, entry uint64) walk.Verdict {
	pc, ref, kind := e.pc, e.ref, walk.KindStub
	at := vm.continuationReturnPC
	if at == 0 {
		at = vm.stepping.enterSpecial
	}
	if r := vm.classify(at); r != nil && r.kind == walk.KindNativeMethod {
		pc, ref, kind = r.pc, r.ref, r.kind
	}
	vm.push(c, pc, ref, kind, walk.Exact, walk.ReturnAddress|walk.Virtual)
	return vm.popFrame(c, entry+entryFrame)
}

// mounting reports whether a return address into the stubs is in the stub that mounts a virtual
// thread. While it runs, none of the virtual thread's frames is on the stack, and none calls.
func (vm *VM) mounting(e *pcEntry) bool {
	code := vm.codeOf(e.blob)
	off := int(min(e.pc-e.blob.codeBegin, uint64(len(code))))
	mount, others := -1, bytes.LastIndex(code[:off], entrySP)
	for i := off - 1; i > others && mount < 0; i-- {
		if popRCX.at(code, i) {
			mount = i
		}
	}
	return mount > others
}

// beginsBarrier reports whether the stub that stands in for frames in the heap begins at pc.
func (vm *VM) beginsBarrier(pc uint64) bool {
	e := vm.classify(pc)
	if vm.Arch != cpu.AMD64 || e == nil || e.how != howBarrier {
		return false
	}
	code := vm.codeOf(e.blob)
	off := e.pc - e.blob.codeBegin
	return off < uint64(len(code)) && fromEntry.at(code, int(off))
}

// innermost returns the thread's innermost ContinuationEntry as it was copied.
func (vm *VM) innermost(c *walk.Cursor) (uint64, bool) {
	if len(c.Regions) == 0 || len(c.Regions[0].Bytes) != 8 || !vm.conts.ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(c.Regions[0].Bytes), true
}

// copiedEntry returns the ContinuationEntry that the Cursor's frame returns to: the first one at or
// above its stack pointer.
func (vm *VM) copiedEntry(c *walk.Cursor) (uint64, bool) {
	entry, ok := vm.innermost(c)
	sp := c.Regs.SP()
	for range mostEntries {
		if !ok || !c.InCopy(entry) || !vm.isContinuationEntry(c, entry) {
			return 0, false
		}
		if entry >= sp {
			return entry, entry-sp < maxFrame
		}
		entry, ok = c.Word(entry + entryParent)
	}
	return 0, false
}

// thawing finds the caller of the stubs that bring frames back from the heap, until they have
// switched to those frames: mov rsp,rbx. Before that, room is made on the stack (sub rsp,rbx) and
// none of the virtual thread's frames is in its final place, so the caller is the carrier's frame.
func (l *leaf) thawing() (f found, ok bool) {
	if !l.known() {
		return f, false
	}
	if begin := unmountStub(l.code); begin >= 0 && l.off >= begin && l.off < begin+maxUnmount {
		entry, ok := l.vm.innermost(l.c)
		if !ok || bytes.Contains(l.code[begin:l.off], entrySP) {
			return f, false // read from where the stack pointer is
		}
		return l.carrier(entry)
	}
	if l.switched() {
		return f, false
	}
	if popRCX.at(l.code, l.off) {
		return l.read(onTop) // as it was when it was called
	}
	entry, ok := l.vm.copiedEntry(l.c)
	if !ok || !l.vm.mounting(&pcEntry{pc: l.pc, blob: l.b}) {
		l.uncopied = true
		return f, false
	}
	return l.carrier(entry)
}

// carrier returns the caller of enterSpecial, whose frame is at entry.
func (l *leaf) carrier(entry uint64) (f found, ok bool) {
	f.sp, f.saved = entry+entryFrame, true
	var ok1 bool
	f.ra, ok = l.c.Word(f.sp - 8)
	f.fp, ok1 = l.c.Word(f.sp - 16)
	l.vm.stepping.prov = walk.Derived
	return f, ok && ok1
}

// switched reports whether the last of those stubs has switched to the frames. All stubs but the
// first begin with mov rsp,[r15+n].
func (l *leaf) switched() bool {
	done := bytes.LastIndex(l.code[:l.off], setRSP)
	return done >= 0 && !fromEntry.at(l.code, l.off) && bytes.LastIndex(l.code[:l.off], entrySP) < done
}

// popRCX is the beginning of the first stub, which takes its return address off the stack.
var popRCX = pat("59 49 8B FF")

// entrySP is mov rsp,[r15+n] without n.
var (
	entrySP   = []byte{0x49, 0x8B, 0xA7}
	fromEntry = pat("49 8B A7")
)

// setRSP is mov rsp,rbx.
var setRSP = []byte{0x48, 0x8B, 0xE3}

func (vm *VM) isContinuationEntry(c *walk.Cursor, at uint64) bool {
	if at&7 != 0 {
		return false
	}
	parent, ok1 := c.Word(at + entryParent)
	cont, ok2 := c.Word(at + entryContinuation)
	ra, ok3 := c.Word(at + entryFrame - 8)
	return ok1 && ok2 && ok3 && cont != 0 && (parent == 0 || parent > at) && vm.codeRA(stripPC(c, ra))
}

// markVirtual marks the frames so far as a virtual thread's.
func markVirtual(c *walk.Cursor) {
	for i := range c.Stack.Frames {
		if f := &c.Stack.Frames[i]; f.Kind != walk.KindKernel {
			f.Flags |= walk.Virtual
		}
	}
}

// walkHeap appends the frames of a continuation that are in chunks; false if not all of them were
// copied, or if something in them makes no sense.
func (vm *VM) walkHeap(c *walk.Cursor, entry uint64) bool {
	k := &vm.conts
	cont, ok := c.Word(entry + entryContinuation)
	if !ok {
		return false
	}
	object := c.Copied(cont, k.tail+8)
	if object == nil || moved(object) {
		return false
	}
	tail, null, ok := vm.copiedReference(c, object, k.tail, true)
	for range mostChunks {
		if null || !ok {
			return ok
		}
		head := c.Copied(tail, k.start)
		if head == nil || moved(head) || vm.heap.KlassIn(head) != k.chunk || !vm.walkChunk(c, tail, head) {
			return false
		}
		tail, null, ok = vm.copiedReference(c, head, k.parent, false)
	}
	return false
}

// moved reports whether an object's header says that the collector has copied the object elsewhere
// (25 share/oops/markWord.hpp, marked_value).
func moved(object []byte) bool { return object[0]&3 == 3 }

// copiedReference is metadata.Heap.ReferenceIn for an object that was copied with the sample. If current is set,
// the reference must be one that the thread itself would follow: while the collector moves objects,
// others may lead to an object's old address.
func (vm *VM) copiedReference(c *walk.Cursor, object []byte, offset uint64, current bool) (addr uint64, null, ok bool) {
	// ZGC colors null too.
	if addr, ok = vm.heap.ReferenceIn(object, offset); !ok || addr == 0 {
		return 0, true, true
	}
	if current && vm.heap.Generational() {
		if len(c.Regions) < 2 || len(c.Regions[1].Bytes) != 8 {
			return 0, false, false
		}
		bad := binary.LittleEndian.Uint64(c.Regions[1].Bytes)
		return addr, false, vmstructs.Word(object, offset)&bad == 0
	}
	return addr, false, true
}

// walkChunk appends the frames of one chunk; false if what is there makes no sense.
func (vm *VM) walkChunk(c *walk.Cursor, chunk uint64, head []byte) bool {
	k := &vm.conts
	int4 := func(at uint64) uint64 { return uint64(binary.LittleEndian.Uint32(head[at:])) }
	sp, bottom := int4(k.sp), uint64(0)
	if k.bottom != vmstructs.Absent {
		bottom = int4(k.bottom)
	} else if size, args := int4(k.size), int4(k.args); args <= size {
		bottom = size - args
	}
	if sp >= bottom {
		return true // empty: the frames are in its parent
	}
	from, end := chunk+k.start+8*sp, chunk+k.start+8*bottom
	live := c.Copied(from-16, end-from+16)
	return live != nil && vm.chunkFrames(c, walk.StackCopy{Base: from - 16, Bytes: live}, from, end)
}

// chunkFrames appends the frames from sp to end. In a chunk, the saved frame pointers and the
// sender's stack pointers of interpreted frames are relative
// (cpu/x86/stackChunkFrameStream_x86.inline.hpp).
func (vm *VM) chunkFrames(c *walk.Cursor, k walk.StackCopy, sp, end uint64) bool {
	unextended := sp
	s := vm.slots(c)
	const flags = walk.ReturnAddress | walk.Virtual
	for range maxChunkFrames {
		ra, ok1 := k.Word(sp - 8)
		link, ok2 := k.Word(sp - 16)
		if !ok1 || !ok2 {
			return false
		}
		ra = stripPC(c, ra)
		e := vm.classify(ra)
		if e == nil {
			return false
		}
		if e.how == howDeopt {
			b := e.blob
			orig, ok := k.Word(unextended + b.nm.origPCOffset)
			if !ok || !b.contains(orig) {
				return false
			}
			if e = vm.classify(orig); e == nil || e.how != howFrame {
				return false
			}
		}
		before := sp
		switch e.how {
		case howInterpreter:
			fp := sp - 16 + 8*link
			m, ok1 := k.Word(slot(fp, s.method))
			bcp, ok2 := k.Word(slot(fp, s.bcp))
			locals, ok3 := k.Word(slot(fp, s.locals))
			sender, ok4 := k.Word(slot(fp, s.senderSP))
			if !ok1 || !ok2 || !ok3 || !ok4 {
				return false
			}
			id, ok := vm.method(m)
			if !ok {
				return false
			}
			vm.push(c, ra, methodRef(id, vm.bytecodeIndex(id, bcp), true), walk.KindInterpreted, walk.Exact, flags)
			if fp+8*(locals+1) >= end {
				return true
			}
			sp, unextended = fp+16, fp+8*sender
		case howFrame:
			vm.push(c, e.pc, e.ref, e.kind, walk.Exact, flags)
			sp = unextended + uint64(e.frame)
			unextended = sp
			if sp+16 >= end {
				return true
			}
		default:
			return false
		}
		if sp <= before || unextended < before || sp&7 != 0 {
			return false
		}
	}
	return false
}
