package hotspot

import (
	"bytes"
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/walk"
)

// The frame of enterSpecial, where a carrier's stack ends and a virtual thread's
// begins (FACTS D.6; 21 to 26 share/runtime/continuationEntry.hpp): a
// ContinuationEntry, then the saved frame pointer and the return address. Its
// address is its frame's stack pointer.
const (
	entryParent       = 8
	entryContinuation = 16
	entryFlags        = 32
	entryFrame        = 80
)

// Bounds on what is read of a virtual thread's heap.
const (
	maxHeapChunks  = 64
	maxChunkBytes  = 1 << 20
	maxChunkFrames = 4096
)

// chunkWalk is a stack chunk being walked: a copy of its live part.
type chunkWalk struct {
	base uint64 // address of buf[0]
	buf  []byte
}

func (k *chunkWalk) word(addr uint64) (uint64, bool) {
	off := addr - k.base
	if off >= uint64(len(k.buf)) || uint64(len(k.buf))-off < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(k.buf[off:]), true
}

// stepBarrier goes on where the lowest frame of a virtual thread that is on the
// carrier's stack returns to the return barrier: its callers are in chunks in the
// heap. They are read from the process as it is now, then the walk continues
// with the carrier's own frames, so that the stack reaches the thread's first.
func (vm *VM) stepBarrier(c *walk.Cursor, e *pcEntry) walk.Verdict {
	pc, ref := e.pc, e.ref
	entry, ok := vm.continuationEntry(c)
	if !ok && c.LeafCallee {
		// The stub has called the VM to bring frames back from the heap: it is a
		// frame of its own, somewhere below the entry, and which of the virtual
		// thread's frames are where just now cannot be told.
		if entry, ok = vm.entryAbove(c); ok {
			vm.push(c, pc, ref, walk.KindStub, walk.Exact, walk.ReturnAddress)
			v := vm.popFrame(c, entry+entryFrame)
			vm.stepping.prov = max(vm.stepping.prov, walk.Derived)
			return v
		}
	}
	if !ok {
		vm.push(c, pc, ref, walk.KindStub, walk.Exact, walk.ReturnAddress)
		return walk.Stuck
	}
	if cont, ok := c.Word(entry + entryContinuation); ok {
		vm.walkHeap(c, vm.heap.address(cont))
	}
	markVirtual(c)
	// The barrier hides where enterSpecial goes on. JDK 25+ publishes it; before,
	// it is known once a stack without a barrier was seen; till then the
	// barrier stands for it.
	at := vm.continuationReturnPC
	if at == 0 {
		at = vm.stepping.enterSpecial
	}
	kind := walk.KindStub
	if r := vm.classify(at); r != nil && r.kind == walk.KindNativeMethod {
		pc, ref, kind = r.pc, r.ref, r.kind
	}
	vm.push(c, pc, ref, kind, walk.Exact, walk.ReturnAddress|walk.Virtual)
	return vm.popFrame(c, entry+entryFrame)
}

// continuationEntry finds the ContinuationEntry above the Cursor: at its stack
// pointer, or a little above it if the frame's arguments lie between.
func (vm *VM) continuationEntry(c *walk.Cursor) (uint64, bool) {
	sp := c.Regs.SP()
	if c.Unextended != 0 {
		sp = c.Unextended
	}
	if vm.isContinuationEntry(c, sp) {
		return sp, true
	}
	if thread, ok := vm.javaThread(c.TID); ok && vm.off.contEntry != absent {
		if at, ok := vm.peek.u64(thread + vm.off.contEntry); ok && at > sp && at-sp < maxFrame && vm.isContinuationEntry(c, at) {
			return at, true
		}
	}
	return 0, false
}

// maxThawed bounds the room that is made on a stack for frames from the heap, in
// bytes.
const maxThawed = 64 << 10

// entryAbove looks for the ContinuationEntry above the Cursor: where the thread
// says that it is, else in the copy, where an old one may still lie about.
func (vm *VM) entryAbove(c *walk.Cursor) (uint64, bool) {
	sp := c.Regs.SP()
	if thread, ok := vm.javaThread(c.TID); ok && vm.off.contEntry != absent {
		if at, ok := vm.peek.u64(thread + vm.off.contEntry); ok && at >= sp && at-sp < maxThawed && vm.isContinuationEntry(c, at) {
			return at, true
		}
	}
	for at := (sp + 7) &^ 7; at < sp+maxThawed && c.InCopy(at+entryFrame-8); at += 8 {
		// All of it has to look so: two objects, the flag of virtual threads and the
		// size of arguments, a place on the stack or none, a small number.
		cont, _ := c.Word(at + entryContinuation)
		chunk, _ := c.Word(at + entryContinuation + 8)
		flags, _ := c.Word(at + entryFlags)
		path, _ := c.Word(at + entryFlags + 8)
		count, _ := c.Word(at + entryFlags + 16)
		ra, _ := c.Word(at + entryFrame - 8)
		if cont&7 == 0 && chunk&7 == 0 && cont > 1<<12 && uint32(flags) <= 1 && flags>>32 < 1<<12 &&
			(path == 0 || path > at) && uint32(count) < 1<<12 && vm.isContinuationEntry(c, at) && vm.validRA(stripPC(c, ra)) && !vm.inCodeCache(cont) && !vm.inCodeCache(chunk) {
			return at, true
		}
	}
	return 0, false
}

// thawing finds the caller of the stubs that bring frames back from the heap, up to
// where they have switched to them: mov rsp,rbx. Before, room is made on the stack
// (sub rsp,rbx), and none of the virtual thread's frames is where it will be, so
// that is the carrier's.
func (l *leaf) thawing() (f found, ok bool) {
	if !l.known() || l.switched() {
		return f, false
	}
	if popRCX.at(l.code, l.off) {
		return l.read(onTop) // as it was called
	}
	if l.vm.off.contEntry == absent {
		l.learnEntry()
	}
	entry, ok := l.vm.entryAbove(l.c)
	if !ok {
		return f, false
	}
	f.sp, f.saved = entry+entryFrame, true
	var ok1 bool
	f.ra, ok = l.c.Word(f.sp - 8)
	f.fp, ok1 = l.c.Word(f.sp - 16)
	l.vm.stepping.prov = walk.Derived
	return f, ok && ok1
}

// switched says whether the last of those stubs has switched to the frames. All but
// the first begin with mov rsp,[r15+n].
func (l *leaf) switched() bool {
	done := bytes.LastIndex(l.code[:l.off], setRSP)
	return done >= 0 && !fromEntry.at(l.code, l.off) && bytes.LastIndex(l.code[:l.off], entrySP) < done
}

// popRCX begins the first: it takes its return address off the stack.
var popRCX = pat("59 49 8B FF")

// entrySP is mov rsp,[r15+n] without n.
var (
	entrySP   = []byte{0x49, 0x8B, 0xA7}
	fromEntry = pat("49 8B A7")
)

// learnEntry reads where a thread has its innermost ContinuationEntry out of the
// return barrier, which switches to it: mov rsp,[r15+n]. JDK 25+ publishes it.
func (l *leaf) learnEntry() {
	at := bytes.Index(l.code, entrySP)
	if at < 0 || len(l.code) < at+7 {
		return
	}
	if n := binary.LittleEndian.Uint32(l.code[at+3:]); n < 1<<14 && n&7 == 0 {
		l.vm.off.contEntry = uint64(n)
	}
}

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

// markVirtual says of the frames so far that they are a virtual thread's.
func markVirtual(c *walk.Cursor) {
	for i := range c.Stack.Frames {
		if f := &c.Stack.Frames[i]; f.Kind != walk.KindKernel {
			f.Flags |= walk.Virtual
		}
	}
}

// walkHeap appends the frames of a continuation that are in heap chunks.
func (vm *VM) walkHeap(c *walk.Cursor, cont uint64) {
	if !vm.heap.ok {
		return
	}
	tail, ok := vm.fieldOf(cont, "tail")
	if !ok {
		return
	}
	chunk, ok := vm.reference(cont + tail.offset)
	for range maxHeapChunks {
		if !ok || chunk == 0 {
			return
		}
		if !vm.walkChunk(c, chunk) {
			return
		}
		parent, has := vm.fieldOf(chunk, "parent")
		if !has {
			return
		}
		chunk, ok = vm.reference(chunk + parent.offset)
	}
}

// chunkField reads an int field of a chunk, in words of its stack.
func (vm *VM) chunkField(chunk uint64, name string) (uint64, bool) {
	f, ok := vm.fieldOf(chunk, name)
	if !ok {
		return 0, false
	}
	v, ok := vm.peek.u32(chunk + f.offset)
	return uint64(v), ok && v < maxChunkBytes/8*64
}

// walkChunk appends the frames of one chunk. It returns false if what is there
// makes no sense.
func (vm *VM) walkChunk(c *walk.Cursor, chunk uint64) bool {
	klass, ok := vm.klassOf(chunk)
	if !ok {
		return false
	}
	helper, ok := vm.peek.member(klass, vm.t.field("Klass::_layout_helper"))
	size := helper &^ 7
	if !ok || size == 0 || size > 1<<16 {
		return false
	}
	spWords, ok1 := vm.chunkField(chunk, "sp")
	bottom, ok2 := vm.chunkField(chunk, "bottom")
	if !ok2 {
		// The field was called argsize before: words above the frames.
		var total, args uint64
		if total, ok2 = vm.chunkField(chunk, "size"); ok2 {
			if args, ok2 = vm.chunkField(chunk, "argsize"); args <= total {
				bottom = total - args
			}
		}
	}
	if !ok1 || !ok2 {
		return false
	}
	sp, end := chunk+size+8*spWords, chunk+size+8*bottom
	if sp >= end {
		return true // empty: the frames are in its parent
	}
	n := end - sp + 16
	if n > maxChunkBytes {
		return false
	}
	k := &vm.stepping.chunk
	if uint64(cap(k.buf)) < n {
		k.buf = make([]byte, n, n+n/2)
	}
	k.base, k.buf = sp-16, k.buf[:n]
	if vm.peek.r.ReadAt(k.buf, k.base) != nil {
		return false
	}
	return vm.chunkFrames(c, k, sp, end)
}

// chunkFrames appends the frames from sp to end. In a chunk the saved frame
// pointers and the sender's stack pointers of interpreted frames are relative
// (cpu/x86/stackChunkFrameStream_x86.inline.hpp).
func (vm *VM) chunkFrames(c *walk.Cursor, k *chunkWalk, sp, end uint64) bool {
	unextended := sp
	s := vm.slots(c)
	const flags = walk.ReturnAddress | walk.Virtual | walk.Stitched
	for range maxChunkFrames {
		ra, ok1 := k.word(sp - 8)
		link, ok2 := k.word(sp - 16)
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
			orig, ok := k.word(unextended + b.nm.origPCOffset)
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
			m, ok1 := k.word(slot(fp, s.method))
			bcp, ok2 := k.word(slot(fp, s.bcp))
			locals, ok3 := k.word(slot(fp, s.locals))
			sender, ok4 := k.word(slot(fp, s.senderSP))
			if !ok1 || !ok2 || !ok3 || !ok4 {
				return false
			}
			id, ok := vm.method(m)
			if !ok {
				return false
			}
			vm.push(c, ra, methodRef(id, vm.bytecodeIndex(id, bcp), true), walk.KindInterpreted, walk.Derived, flags)
			if fp+8*(locals+1) >= end {
				return true
			}
			sp, unextended = fp+16, fp+8*sender
		case howFrame:
			vm.push(c, e.pc, e.ref, e.kind, walk.Derived, flags)
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
