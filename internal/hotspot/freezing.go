package hotspot

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// A virtual thread that leaves its carrier has its frames twice for a while: the VM has copied them
// to the heap, and they have not been taken off the stack yet.
//
// A thread leaves its carrier inside the VM. Then the innermost Java frame has called into the VM,
// and no frame in the heap that was waiting for a Java method to return is at that place.
//
// From JDK 24 on a thread also leaves when it has to wait for a monitor or in Object.wait, and from
// 26 on for a class's initialization. Then the innermost frame in the heap is not a Java method
// that waits for another, but a stub, a native method's wrapper, or an interpreted method at the
// place where it resumes in the interpreter. A mounted thread never has any of these innermost in
// the heap, because they are the first frames that are brought back
// (share/runtime/continuationFreezeThaw.cpp of 25 and 27: recurse_freeze, thaw_slow,
// remove_top_compiled_frame_from_chunk).

// dropFrozen removes those of the frames from index on, which are from the heap, that are on the
// stack too because the thread is just leaving its carrier. It returns false if that cannot be
// told.
func (vm *VM) dropFrozen(c *walk.Cursor, entry uint64, on int) bool {
	frames := c.Stack.Frames
	if first, ok := vm.innermost(c); !ok || first != entry || on == len(frames) {
		return ok
	}
	top := 0
	for top < on && !isJava(frames[top].Kind) {
		top++
	}
	if top == on {
		return true // all of them are in the heap only
	}
	from, ok := vm.frozenFrom(c, frames, top, on)
	if !ok || from < 0 {
		return ok
	}
	n := on - from
	if len(frames)-on < n {
		return false
	}
	for i := 1; i < n; i++ {
		if frames[from+i].PC != frames[on+i].PC {
			return false
		}
	}
	c.Stack.Frames = append(frames[:on], frames[on+n:]...)
	return true
}

// frozenFrom returns the index of the innermost frame that is in the heap too; less than 0 if none
// is. The innermost Java frame is top, and the frames from index on are from the heap. ok is false
// if it cannot be told.
func (vm *VM) frozenFrom(c *walk.Cursor, frames []walk.Frame, top, on int) (from int, ok bool) {
	a, b := &frames[top], &frames[on]
	inVM := top > 0 && frames[top-1].Kind != walk.KindKernel
	// The stub or wrapper by which Java code entered the VM may be frozen too.
	if vm.leftInside(c, b) {
		for i := range top + 1 {
			if f := &frames[i]; f.Kind == b.Kind && f.Ref>>32 == b.Ref>>32 && f.Ref != 0 {
				return i, true
			}
		}
		return -1, false
	}
	if !inVM {
		return -1, true // in Java code itself, where a thread leaves nowhere else
	}
	for i := range top + 1 {
		if frames[i].PC == b.PC && frames[i].Ref == b.Ref {
			return i, true
		}
	}
	// The same method at another place of the interpreter may be the same frame still.
	return -1, a.Ref>>32 != b.Ref>>32 || a.Kind != walk.KindInterpreted
}

// leftInside reports whether the innermost frame in the heap is not one that waits for a Java
// method to return.
func (vm *VM) leftInside(c *walk.Cursor, f *walk.Frame) bool {
	switch f.Kind {
	case walk.KindStub, walk.KindNativeMethod:
		return true
	case walk.KindInterpreted:
		return bytes.Equal(c.Code(f.PC-3, 3), jumpR10) || bytes.Equal(c.Code(f.PC-4, 4), branchX8)
	}
	return false
}

// jumpR10 and branchX8 end the interpreter's code before the place where such a method resumes: it
// jumps to wherever the VM wants (27 cpu/x86/interp_masm_x86.cpp and
// cpu/aarch64/interp_masm_aarch64.cpp, call_VM_preemptable_helper).
var (
	jumpR10  = []byte{0x41, 0xFF, 0xE2}
	branchX8 = []byte{0x00, 0x01, 0x1F, 0xD6}
)

// maxUnmount bounds the stub through which such a thread leaves, in bytes.
const maxUnmount = 160

// unmountStub returns where that stub begins in the code of the stubs of continuations, less than 0
// if there is none. The stub before it ends in jmp rbx, and it begins by clearing the thread's
// anchor, before it takes off all frames (25 and 27 cpu/x86/stubGenerator_x86_64.cpp,
// generate_cont_preempt_stub).
func unmountStub(code []byte) int {
	if i := bytes.Index(code, []byte{0xFF, 0xE3, 0x49, 0xC7, 0x87}); i >= 0 {
		return i + 2
	}
	return -1
}

// unmounting reports whether a return address of C++ into the stubs is in that stub. The VM
// replaces its own caller's return address by it once all frames are in the heap
// (share/runtime/continuationFreezeThaw.cpp, preempt_epilog).
func (vm *VM) unmounting(e *pcEntry) bool {
	begin := unmountStub(vm.codeOf(e.blob))
	return vm.Arch == cpu.AMD64 && begin >= 0 && e.pc == e.blob.codeBegin+uint64(begin)
}

// isJava reports whether frames of a kind run Java methods' own code.
func isJava(k walk.Kind) bool {
	switch k {
	case walk.KindInterpreted, walk.KindCompiled, walk.KindC1, walk.KindC2:
		return true
	}
	return false
}
