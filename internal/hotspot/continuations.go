package hotspot

import (
	"encoding/binary"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
)

// Bounds on the search for classes, and for the thread's own storage.
const (
	maxLoaders   = 1 << 16
	maxBootClass = 1 << 16
	maxStubBlobs = 4096 // looked through for the continuation stubs
	// A VM that is starting is asked again soon, then less and less often.
	learnSoon, learnLate = 10 * time.Millisecond, 500 * time.Millisecond
)

// continuations is where a thread's continuations are and what they return into (25
// share/runtime/continuationEntry.hpp, share/oops/stackChunkOop.hpp, and the Java classes
// Continuation and StackChunk of jdk.internal.vm). The boot loader defines these classes: they are
// never unloaded, and their layout never changes.
type continuations struct {
	ok    bool
	next  time.Time // when to try again
	pause time.Duration
	done  bool // nothing more will be found

	tail   uint64 // in a Continuation: its last chunk
	chunk  uint64 // Klass of StackChunk
	parent uint64 // in a StackChunk: the next outer chunk
	sp     uint64 // int, words from the beginning of its stack
	bottom uint64 // int, words; vmstructs.Absent in releases that have size and argsize instead
	size   uint64
	args   uint64
	start  uint64 // where its stack begins
	local  local  // where a thread has a pointer to itself

	follow *capture.Follow
}

// Follow describes to an engine where the stacks of virtual threads continue: in chunks in the
// heap, which have to be copied together with the stack. It is nil as long as that is not known, or
// if the VM has no virtual threads. It may be called once a batch. Until the layout is known it
// takes at most a tenth of the time.
func (vm *VM) Follow() *capture.Follow {
	k := &vm.conts
	if k.ok || k.done {
		return k.follow
	}
	if vm.Major < 21 || !vm.heap.OK || vm.Arch != cpu.AMD64 && vm.Arch != cpu.ARM64 {
		k.done = true
		return nil
	}
	began := time.Now()
	if began.Before(k.next) {
		return nil
	}
	if !vm.learnContinuations() {
		// At most a tenth of the time is spent on trying.
		k.pause = min(max(2*k.pause, learnSoon, 10*time.Since(began)), learnLate)
		k.next = time.Now().Add(k.pause)
		return nil
	}
	k.ok = true
	k.follow = vm.wayToChunks()
	return k.follow
}

// learnContinuations finds the layout; false if it is not all there yet.
func (vm *VM) learnContinuations() bool {
	k := &vm.conts
	if vm.off.contEntry == vmstructs.Absent && !vm.learnEntry() {
		return false
	}
	classes := vm.bootClasses("jdk/internal/vm/Continuation", "jdk/internal/vm/StackChunk")
	cont, chunk := classes[0], classes[1]
	if cont == 0 || chunk == 0 {
		return false
	}
	fields := vm.heap.ClassFields(cont)
	tail, ok := fields["tail"]
	if !ok {
		return false
	}
	k.tail, k.chunk = tail.Offset, chunk
	fields = vm.heap.ClassFields(chunk)
	at := func(name, signature string) uint64 {
		if f, ok := fields[name]; ok && f.Signature == signature {
			return f.Offset
		}
		return vmstructs.Absent
	}
	k.parent = at("parent", "Ljdk/internal/vm/StackChunk;")
	k.sp, k.bottom = at("sp", "I"), at("bottom", "I")
	k.size, k.args = at("size", "I"), at("argsize", "I")
	if k.parent == vmstructs.Absent || k.sp == vmstructs.Absent || k.bottom == vmstructs.Absent && (k.size == vmstructs.Absent || k.args == vmstructs.Absent) {
		return false
	}
	helper, ok := vm.Mem.Member(chunk, vm.Field("Klass::_layout_helper"))
	if k.start = helper &^ 7; !ok || k.start == 0 || k.start > 1<<12 {
		return false
	}
	k.local = vm.learnLocal()
	return true
}

// bootClasses finds classes of the boot loader by their names; 0 for one that is not loaded. The
// boot loader's data is the last in the list of all loaders.
func (vm *VM) bootClasses(names ...string) []uint64 {
	out := make([]uint64, len(names))
	t := vm.Tables
	next, first := t.Field("ClassLoaderData::_next"), t.Field("ClassLoaderData::_klasses")
	link, name := t.Field("Klass::_next_link"), t.Field("Klass::_name")
	if !next.OK || !first.OK || !link.OK || !name.OK {
		vm.conts.done = true
		return out
	}
	data, ok := vm.Mem.Static(t.Field("ClassLoaderData::_the_null_class_loader_data"))
	if !ok {
		data, ok = vm.Mem.Static(t.Field("ClassLoaderDataGraph::_head"))
		for range maxLoaders {
			n, ok := vm.Mem.Member(data, next)
			if !ok || n == 0 {
				break
			}
			data = n
		}
	}
	klass, ok2 := vm.Mem.Member(data, first)
	if !ok || !ok2 {
		return out
	}
	low, high := min(link.Offset, name.Offset), max(link.Offset, name.Offset)+8
	if high-low > 1<<10 {
		return out
	}
	buf := make([]byte, high-low)
	var klasses, symbols []uint64
	for range maxBootClass {
		if klass == 0 || klass&7 != 0 || vm.Mem.Reader.ReadAt(buf, klass+low) != nil {
			break
		}
		klasses, symbols = append(klasses, klass), append(symbols, vmstructs.Word(buf, name.Offset-low))
		klass = vmstructs.Word(buf, link.Offset-low)
	}
	text := make([]string, len(symbols))
	vm.heap.Symbols(symbols, text)
	for i, s := range text {
		for j, n := range names {
			if s == n {
				out[j] = klasses[i]
			}
		}
	}
	return out
}

// learnEntry finds where a thread holds its innermost ContinuationEntry by reading the stubs of
// continuations, which switch to it. JDK 25+ publishes it.
func (vm *VM) learnEntry() bool {
	for i := range vm.code.heaps {
		h := &vm.code.heaps[i]
		pc := h.low
		for range maxStubBlobs {
			if pc >= h.high {
				break
			}
			b := vm.find(pc)
			if b == nil || b.end <= pc {
				pc += 1 << h.shift
				continue
			}
			pc = b.end
			if b.kind == blobNMethod || b.kind == blobNativeMethod {
				break // those stubs are made before any method is compiled
			}
			if b.kind != blobContinuation {
				continue
			}
			if n, ok := entryOffset(vm.Arch, vm.codeOf(b)); ok {
				vm.off.contEntry = n
				return true
			}
		}
	}
	return false
}

// entryOffset finds that offset in their code: mov rsp,[r15+n], or ldr x8,[x28,#n]; mov sp,x8 (21
// cpu/x86/stubGenerator_x86_64.cpp and cpu/aarch64/stubGenerator_aarch64.cpp, generate_cont_thaw).
func entryOffset(arch cpu.Arch, code []byte) (uint64, bool) {
	if arch == cpu.ARM64 {
		for i := 0; i+8 <= len(code); i += 4 {
			w := binary.LittleEndian.Uint32(code[i:])
			if w&^(0xfff<<10) == 0xf9400388 && binary.LittleEndian.Uint32(code[i+4:]) == 0x9100011f {
				return uint64(w>>10&0xfff) * 8, true
			}
		}
		return 0, false
	}
	for i := 0; i+7 <= len(code); i++ {
		if fromEntry.at(code, i) {
			if n := binary.LittleEndian.Uint32(code[i+3:]); n < 1<<14 && n&7 == 0 {
				return uint64(n), true
			}
		}
	}
	return 0, false
}

// placesOf finds where a thread's own storage holds a pointer to its JavaThread.
func (vm *VM) placesOf(thread, tp uint64) map[local]bool {
	out := make(map[local]bool)
	buf := make([]byte, maxThreadVars)
	if vm.Mem.Reader.ReadAt(buf, tp-maxThreadVars) == nil {
		for i := uint64(0); i < maxThreadVars; i += 8 {
			if vmstructs.Word(buf, i) == thread {
				out[local{true, vmstructs.Absent, i - maxThreadVars}] = true
			}
		}
	}
	table, ok := vm.Mem.U64(tp + dtvAt)
	if buf = buf[:maxBlocks]; !ok || vm.Mem.Reader.ReadAt(buf, table) != nil {
		return out
	}
	var block [maxBlock]byte
	for i := uint64(0); i < maxBlocks; i += 8 {
		at := vmstructs.Word(buf, i)
		if at < 1<<16 || at&7 != 0 || at >= 1<<47 || vm.Mem.Reader.ReadAt(block[:], at) != nil {
			continue
		}
		for j := uint64(0); j < maxBlock; j += 8 {
			if vmstructs.Word(block[:], j) == thread {
				out[local{true, i, j}] = true
			}
		}
	}
	return out
}

// Registers that the steps use.
const (
	rThread = iota
	rEntry
	rAddr
	rCont
	rChunk
	rFrom
	rLen
	rChunks
	rEntries
)

// Bounds on what is copied for one sample.
const (
	mostEntries = 8
	mostChunks  = 24
)

// way builds a list of steps.
type way struct{ steps []capture.Step }

func (w *way) add(op capture.Op, dst, src uint8, arg uint32, imm uint64) int {
	w.steps = append(w.steps, capture.Step{Op: op, Dst: dst, Src: src, Arg: arg, Imm: imm, No: capture.StepsEnd})
	return len(w.steps) - 1
}

// fail sets where the steps continue if they fail.
func (w *way) fail(at uint8, steps ...int) {
	for _, s := range steps {
		w.steps[s].No = at
	}
}

func (w *way) here() uint8 { return uint8(len(w.steps)) }

// wayToChunks returns the steps from a thread to the chunks of its continuations. The thread's own
// storage points to its JavaThread. If that place is not known, a register holds it in Java code
// (25 cpu/x86/register_x86.hpp, r15_thread; cpu/aarch64/register_aarch64.hpp, rthread). The pointer
// is believed if its innermost ContinuationEntry lies on the live stack.
func (vm *VM) wayToChunks() *capture.Follow {
	k, o := &vm.conts, vm.off.contEntry
	register := uint32(cpu.R15)
	if vm.Arch == cpu.ARM64 {
		register = cpu.X28
	}
	w := &way{}
	var first []int
	if k.local.ok {
		w.add(capture.OpThread, rThread, 0, 0, 0)
		from, steps := uint8(rThread), []uint64{k.local.offset, o}
		if k.local.block != vmstructs.Absent {
			steps = []uint64{dtvAt, k.local.block, k.local.offset, o}
		}
		for i, at := range steps {
			to := from
			if i == len(steps)-1 {
				to = rEntry
			}
			first = append(first, w.add(capture.OpLoad, to, from, 0, at))
		}
		first = append(first, w.add(capture.OpOnStack, rEntry, 0, 0, 0))
		found := w.add(capture.OpJump, 0, 0, 0, 0)
		w.fail(w.here(), first...)
		first = []int{found}
	}
	w.add(capture.OpRegister, rThread, 0, register, 0)
	w.add(capture.OpLoad, rEntry, rThread, 0, o)
	w.add(capture.OpOnStack, rEntry, 0, 0, 0)
	w.fail(w.here(), first...)
	w.add(capture.OpAdd, rAddr, rThread, 0, o)
	w.add(capture.OpCopy, rAddr, 0, 8, 0)
	if at, ok := vm.heap.BadMask(); ok {
		w.add(capture.OpSet, rAddr, 0, 0, at)
		w.fail(w.here()+1, w.add(capture.OpCopy, rAddr, 0, 8, 0))
	}
	w.add(capture.OpSet, rEntries, 0, 0, mostEntries)
	entry := w.here()
	w.add(capture.OpLoad, rCont, rEntry, 0, entryContinuation)
	cont := w.add(capture.OpCopy, rCont, 0, uint32(k.tail)+8, 0)
	tail := w.add(capture.OpReference, rChunk, rCont, 0, k.tail)
	w.add(capture.OpSet, rChunks, 0, 0, mostChunks)
	chunk := w.here()
	head := w.add(capture.OpCopy, rChunk, 0, uint32(k.start), 0)
	sp := w.add(capture.OpLoad4, rFrom, rChunk, 0, k.sp)
	var bottom, size, args int
	if k.bottom != vmstructs.Absent {
		bottom = w.add(capture.OpLoad4, rLen, rChunk, 0, k.bottom)
		size, args = bottom, bottom
	} else {
		size = w.add(capture.OpLoad4, rLen, rChunk, 0, k.size)
		args = w.add(capture.OpLoad4, rAddr, rChunk, 0, k.args)
		bottom = size
		w.add(capture.OpLess, rLen, rAddr, 0, 0)
	}
	// From two words below the stack pointer to the bottom.
	w.add(capture.OpLess, rLen, rFrom, 0, 0)
	empty := w.add(capture.OpNotZero, rLen, 0, 0, 0)
	w.add(capture.OpShift, rLen, 0, 3, 0)
	w.add(capture.OpAdd, rLen, rLen, 0, 16)
	w.add(capture.OpShift, rFrom, 0, 3, 0)
	w.add(capture.OpSum, rFrom, rChunk, 0, 0)
	w.add(capture.OpAdd, rFrom, rFrom, 0, k.start-16)
	w.fail(w.here()+1, w.add(capture.OpCopy, rFrom, rLen, 0, 0))
	w.fail(w.here(), empty)
	count := w.add(capture.OpCount, rChunks, 0, 0, 0)
	parent := w.add(capture.OpReference, rChunk, rChunk, 0, k.parent)
	w.fail(chunk, w.add(capture.OpJump, 0, 0, 0, 0))
	w.fail(w.here(), cont, tail, head, sp, bottom, size, args, count, parent)
	w.add(capture.OpLoad, rEntry, rEntry, 0, entryParent)
	w.add(capture.OpOnStack, rEntry, 0, 0, 0)
	w.add(capture.OpCount, rEntries, 0, 0, 0)
	w.fail(entry, w.add(capture.OpJump, 0, 0, 0, 0))
	return &capture.Follow{Steps: w.steps, Reference: vm.heap.Followed()}
}
