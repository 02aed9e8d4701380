package nativeimage

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// threads are what is known of a process's threads.
type threads struct {
	// seen is, by tid, the thread's IsolateThread: code of an image keeps its address in a register
	// (SubstrateAMD64RegisterConfig: r15, and the base of references in r14).
	seen map[uint32]uint64
	base uint64 // of references in the process; 0: not seen
}

// maxThreads bounds the threads that are remembered.
const maxThreads = 1 << 14

// saw notes the registers of a thread that was stopped in an image's code.
func (t *threads) saw(c *walk.Cursor) {
	const both = 1<<cpu.R14 | 1<<cpu.R15
	if c.Regs.Known&both != both {
		return
	}
	at, base := c.Regs.R[cpu.R15], c.Regs.R[cpu.R14]
	if at == t.seen[c.TID] || at&7 != 0 || at < 4096 || base&7 != 0 || len(t.seen) >= maxThreads {
		return
	}
	t.seen[c.TID], t.base = at, base
}

// threadLocals is how much of an IsolateThread is searched, bytes.
const threadLocals = 2048

// ThreadNames returns the Java names of the threads that were seen in an image's code, by tid.
func (vm *VM) ThreadNames() map[int]string {
	out := map[int]string{}
	if len(vm.images) == 0 || vm.threads.base == 0 {
		return out
	}
	im := vm.images[0].image
	for tid, at := range vm.threads.seen {
		if name, ok := vm.threadName(im, at); ok {
			out[int(tid)] = name
		}
	}
	return out
}

// threadName reads the name of the thread with an IsolateThread. Its thread-local variables lie
// there in an order that every image has its own of, so the java.lang.Thread among them is
// recognised by its class.
func (vm *VM) threadName(im *image, at uint64) (string, bool) {
	var b [threadLocals]byte
	n := len(b)
	for n > 0 && vm.memory.ReadAt(b[:n], at) != nil {
		n /= 2
	}
	size := int(im.heap.refSize())
	for i := 0; i+size <= n; i += size {
		ref := uint64(binary.LittleEndian.Uint32(b[i:]))
		if im.heap.wide {
			ref = binary.LittleEndian.Uint64(b[i:])
		} else {
			ref <<= im.heap.shift
		}
		if ref == 0 || ref&7 != 0 || ref >= 1<<46 {
			continue
		}
		if name, ok := vm.nameOf(im, vm.threads.base+ref); ok {
			return name, true
		}
	}
	return "", false
}

// nameOf returns the name of the java.lang.Thread at an address of the process; false if there is
// none. Its name is the only string that it refers to.
func (vm *VM) nameOf(im *image, at uint64) (string, bool) {
	var b [160]byte
	if vm.memory.ReadAt(b[:], at) != nil {
		return "", false
	}
	h := &im.heap
	if hub := h.base + uint64(binary.LittleEndian.Uint32(b[:])&^7); !h.span.has(hub) || !im.isThread(hub, 0) {
		return "", false
	}
	size := int(h.refSize())
	for i := size; i+size <= len(b); i += size {
		ref := uint64(binary.LittleEndian.Uint32(b[i:]))
		if h.wide {
			ref = binary.LittleEndian.Uint64(b[i:])
		} else {
			ref <<= h.shift
		}
		if ref == 0 || ref&7 != 0 || ref >= 1<<46 {
			continue
		}
		if s, ok := vm.liveText(h, vm.threads.base+ref); ok {
			return s, true
		}
	}
	return "", false
}

// maxSupers bounds how far a class is followed up.
const maxSupers = 5

// isThread reports whether the class at an address of the file is java.lang.Thread, or one that
// refers to such a class, as a class does to the one that it extends.
func (im *image) isThread(class uint64, depth int) bool {
	h := &im.heap
	switch im.className(h, class) {
	case "":
		return false
	case "java.lang.Thread":
		return true
	case "java.lang.Object", "java.lang.Class":
		return false
	}
	of, ok := h.hub(class)
	if !ok || depth >= maxSupers {
		return false
	}
	for off := h.refSize(); off < maxHub; off += h.refSize() {
		p, ok := h.field(class + off)
		if !ok || p == class {
			continue
		}
		if hub, ok := h.hub(p); ok && hub == of && im.isThread(p, depth+1) {
			return true
		}
	}
	return false
}

// liveText reads the string at an address of the process.
func (vm *VM) liveText(h *heap, at uint64) (string, bool) {
	var b [32]byte
	if vm.memory.ReadAt(b[:], at) != nil || uint64(binary.LittleEndian.Uint32(b[:])&^7) != h.stringHub {
		return "", false
	}
	ref := uint64(binary.LittleEndian.Uint32(b[h.chars:]))
	if h.wide {
		ref = binary.LittleEndian.Uint64(b[h.chars:])
	} else {
		ref <<= h.shift
	}
	// The characters are read as a heap's that is where the process has it.
	live := *h
	live.source, live.base, live.span = processMemory{vm.memory}, vm.threads.base, span{4096, 1 << 47}
	chars := vm.threads.base + ref
	text, ok := live.characters(chars, b[h.chars+h.refSize()+4] == 1)
	return text, ok && text != ""
}

// processMemory is a process's memory as a source.
type processMemory struct{ m *target.Memory }

// bytes implements source.
func (s processMemory) bytes(p []byte, addr uint64) bool { return s.m.ReadAt(p, addr) == nil }
