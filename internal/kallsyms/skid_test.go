package kallsyms

import (
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/walk"
)

// Functions that only enable interrupts are marked, and wrappers of them. Functions that do more
// are not marked, nor frames further out, nor all of a stack.
func TestMarkSkid(t *testing.T) {
	const base = 0xffffffff81000000
	syms, err := Parse(strings.NewReader(`ffffffff81000000 T __raw_callee_save_pvm_irq_enable
ffffffff81000100 T pvm_irq_enable
ffffffff81000200 T _raw_spin_unlock_irqrestore
ffffffff81000300 t finish_task_switch.isra.0
ffffffff81000400 T do_syscall_64
ffffffff81000500 T enable_irq
`))
	if err != nil {
		t.Fatal(err)
	}
	r := NewResolver()
	r.open, r.load = nil, func() (*Symbols, error) { return syms, nil }
	const thunk, enable, unlock, finish, call, other, user = 0, 1, 2, 3, 4, 5, -1
	for _, c := range []struct {
		stack  []int // innermost first
		marked int
	}{
		{[]int{enable, thunk, call, user}, 2},
		{[]int{enable, thunk, unlock, finish, call}, 3},
		{[]int{enable, thunk, finish, unlock, call}, 2},
		{[]int{unlock, call}, 1},
		{[]int{call, unlock, user}, 0},
		{[]int{other, call}, 0},
		{[]int{enable}, 0},
		{[]int{enable, unlock}, 1},
		{[]int{user, enable}, 0},
		{nil, 0},
	} {
		for range 2 { // the second time from the cache
			var frames []walk.Frame
			for i, f := range c.stack {
				fr := walk.Frame{Kind: walk.KindKernel, PC: base + uint64(f)*0x100 + 0x10}
				if f == user {
					fr = walk.Frame{Kind: walk.KindNative, PC: 0x1000}
				}
				if i > 0 {
					fr.Flags, fr.PC = walk.ReturnAddress, base+uint64(f+1)*0x100 // after a call that is the last instruction
				}
				frames = append(frames, fr)
			}
			any, marked := r.MarkSkid(frames), 0
			for i, f := range frames {
				if f.Flags&walk.Skid != 0 {
					if marked++; marked != i+1 {
						t.Errorf("%v: frame %d is marked, and not all before it", c.stack, i)
					}
				}
			}
			if marked != c.marked || any != (marked > 0) {
				t.Errorf("%v: %d frames are marked, not %d", c.stack, marked, c.marked)
			}
		}
	}
}

// A Resolver that was opened does not load anything later.
func TestOpened(t *testing.T) {
	r, opened := NewResolver(), 0
	r.open = func() (*asker, error) { opened++; return nil, ErrUnsupported }
	r.load = func() (*Symbols, error) { return nil, ErrUnsupported }
	if r.Open(); opened != 1 {
		t.Errorf("opened %d times, want 1", opened)
	}
	if r.Resolve(walk.Frame{PC: 1 << 63, Kind: walk.KindKernel}, nil); opened != 1 {
		t.Errorf("opened again at the first frame")
	}
}
