package nativeimage

import (
	"os"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// BenchmarkFind measures what attaching to an image costs that was not seen before.
func BenchmarkFind(b *testing.B) {
	file, err := os.Open(fixture.Image(b, "image25"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for b.Loop() {
		var k known
		if k.read(file); k.image == nil {
			b.Fatal("not found")
		}
	}
}

// deepStack returns a process that only looks as if it ran an image, and a stack of the image's
// frames: each returns to the same call.
func deepStack(b testing.TB, depth int) (*walk.Walker, *VM, *capture.Snapshot, walk.Memory) {
	b.Helper()
	_, im := open(b, fixture.Image(b, "image25"))
	p, err := target.Open(os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	code, err := native.New(p, native.NewFiles())
	if err != nil {
		b.Fatal(err)
	}
	vm := &VM{native: code, memory: p.Memory(), process: p}
	vm.add(&known{image: im}, 0)
	vm.reset()
	var stack []byte
	var first uint64
	for i := 0; len(stack) == 0 || depth > 0; i += 61 {
		m := im.table.methods[i%len(im.table.methods)]
		e, _, ok := im.table.seek(uint64(m.start))
		for ok && e.kind != plainInfo {
			if ok = im.table.after(&e); e.begins {
				ok = false
			}
		}
		if !ok || e.frame&frameEntryPoint != 0 {
			continue
		}
		pc := im.code.start + e.ip
		if first == 0 {
			first = pc
		} else {
			copy(stack[len(stack)-8:], u64(pc))
		}
		stack = append(stack, make([]byte, e.bytes())...)
		depth--
	}
	snap := &capture.Snapshot{StackAddr: 0x7f0000000000, Stack: stack, StackTop: 0x7f0000000000 + uint64(len(stack))}
	snap.Regs.Arch, snap.Regs.PC, snap.Regs.Known = cpu.AMD64, first, 1<<cpu.RSP
	snap.Regs.SetSP(snap.StackAddr)
	w := walk.New(cpu.AMD64, code)
	w.Add(vm)
	w.Add(code)
	return w, vm, snap, p.Memory()
}

func u64(v uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return b
}

// BenchmarkWalk walks stacks of 50 frames.
func BenchmarkWalk(b *testing.B) {
	w, vm, snap, mem := deepStack(b, 50)
	vm.leaves[snap.Regs.PC] = leafAt(vm, snap.Regs.PC)
	var out walk.Stack
	b.ReportAllocs()
	for b.Loop() {
		w.Walk(snap, mem, &out)
	}
	b.ReportMetric(float64(len(out.Frames)), "frames")
}

// leafAt is the leaf of a whole frame at a return address.
func leafAt(vm *VM, pc uint64) leaf {
	im := vm.find(pc)
	e, _, _ := im.table.seek(pc - im.code.start)
	return leaf{known: true, built: true, depth: uint32(e.bytes() - 8)}
}

// TestWalkDoesNotAllocate walks the same stack again and again.
func TestWalkDoesNotAllocate(t *testing.T) {
	w, vm, snap, mem := deepStack(t, 50)
	vm.leaves[snap.Regs.PC] = leafAt(vm, snap.Regs.PC)
	var out walk.Stack
	w.Walk(snap, mem, &out)
	if len(out.Frames) != 50 {
		t.Fatalf("%d frames were walked, not 50; %v", len(out.Frames), out.End)
	}
	if n := testing.AllocsPerRun(100, func() { w.Walk(snap, mem, &out) }); n > 0 {
		t.Errorf("a walk allocates %.1f times", n)
	}
}
