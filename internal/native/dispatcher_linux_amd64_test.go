package native

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/walk"
	"github.com/candid-profiler/candid/internal/wine"
)

// dispatcherCheck compares what candid.exe makes of a thread that was stopped in Wine's dispatcher of
// system calls with the call that has led there.
type dispatcherCheck struct {
	d   *wine.Dispatcher
	at  uint64 // where the dispatcher begins
	top uint64 // end of the stack of Windows code

	// The last system call.
	active  bool
	regs    cpu.Registers // in the stub, as Wine reports them while the call lasts
	callers []uint64      // return addresses, innermost last

	right, between, wrong int
}

// openDispatcher finds the dispatcher of a process whose thread runs Windows code.
func (s *subject) openDispatcher(t *testing.T) *dispatcherCheck {
	t.Helper()
	var b [8]byte
	code := make([]byte, wine.DispatcherBytes)
	mem := s.tr.Memory()
	if !mem.Bytes(wine.DispatcherPointer, b[:]) {
		t.Fatal("the address of Wine's dispatcher cannot be read")
	}
	c := &dispatcherCheck{at: binary.LittleEndian.Uint64(b[:])}
	if !mem.Bytes(c.at, code) {
		t.Fatalf("Wine's dispatcher at %#x cannot be read", c.at)
	}
	if c.d = wine.NewDispatcher(c.at, code); c.d == nil {
		t.Fatalf("Wine's dispatcher is not recognised: % x", code[:64])
	}
	s.tr.Snapshot(&s.snap, 4096)
	c.top = s.snap.StackTop
	return c
}

// preservedByCalls are the registers that a called function preserves on Windows.
var preservedByCalls = [...]uint8{cpu.RBX, cpu.RBP, cpu.RSI, cpu.RDI, cpu.R12, cpu.R13, cpu.R14, cpu.R15}

// check looks at the instruction that the thread is at. s.snap is of it.
func (c *dispatcherCheck) check(t *testing.T, s *subject) {
	onWindows, pc := s.snap.StackTop == c.top, s.tr.PC()
	if !c.d.Holds(pc) {
		c.active = c.active && !onWindows
		return
	}
	if pc == c.at && onWindows && strings.HasSuffix(s.moduleOf(s.tr.Executed().PC), ".dll") {
		ra, _ := s.tr.Memory().Word(s.tr.SP())
		c.active, c.regs = true, s.tr.Regs()
		c.regs.PC = ra - 0xb // Wine 10.0 subtracts it
		c.regs.SetSP(s.tr.SP() + 8)
		c.callers = c.callers[:0]
		for _, e := range s.tr.Callers() {
			c.callers = append(c.callers, e.RA)
		}
		c.callers = c.callers[:max(len(c.callers), 1)-1]
	}
	if !c.active {
		return
	}
	regs := s.tr.Regs()
	stop := c.d.Undo(&regs, s.tr.Memory())
	if !onWindows {
		if c.between++; stop != wine.BetweenStacks {
			c.fail(t, s, "the stack is Wine's own, and Undo says %d", stop)
		}
		return
	}
	if stop != wine.AtCall || regs.PC != c.regs.PC || regs.SP() != c.regs.SP() {
		c.fail(t, s, "Undo says %d, pc %#x, sp %#x; the call was at %#x, %#x", stop, regs.PC, regs.SP(), c.regs.PC, c.regs.SP())
		return
	}
	for _, r := range preservedByCalls {
		if regs.Known&(1<<r) != 0 && regs.R[r] != c.regs.R[r] {
			c.fail(t, s, "register %d is %#x, and was %#x", r, regs.R[r], c.regs.R[r])
			return
		}
	}
	snap := s.snap
	snap.Regs, snap.Regions = regs, nil
	s.walker.Walk(&snap, codeOnly{s}, &s.stack)
	frames := s.stack.Frames
	if s.stack.End != walk.EndComplete || s.stack.Worst == walk.Heuristic || len(frames) <= len(c.callers) {
		c.fail(t, s, "%v, %v, %d frames for %d callers", s.stack.End, s.stack.Worst, len(frames), len(c.callers))
		return
	}
	for i := range c.callers {
		if ra := c.callers[len(c.callers)-1-i]; frames[1+i].PC != ra {
			c.fail(t, s, "caller %d is %s, not %s", i, s.where(frames[1+i].PC), s.where(ra))
			return
		}
	}
	c.right++
}

func (c *dispatcherCheck) fail(t *testing.T, s *subject, format string, args ...any) {
	if c.wrong++; c.wrong < 8 {
		t.Logf("step %d, %#x of the dispatcher: "+format, append([]any{s.tr.Steps(), s.tr.PC() - c.at}, args...)...)
	}
}

// From each instruction of Wine's dispatcher of system calls at which the thread is still, or again, on
// the stack of Windows code, the call is found, with its callers.
func TestWineDispatcher(t *testing.T) {
	const source = `#include <stdio.h>
#include <windows.h>
__attribute__((noinline)) void yields(void) { Sleep(0); SwitchToThread(); }
int main(void) {
	puts("ready"); fflush(stdout);
	getchar();
	__asm__ volatile("int3");
	yields(); yields();
	__asm__ volatile("int3");
	return 0;
}`
	s, w := windowsSubject(t, fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "yields.exe", source, "-O2"))
	sc := s.stepWindows(t, w, 20000)
	t.Logf("%+v", sc)
	if sc.wrong > 0 || sc.dispatched < 80 || sc.between == 0 {
		t.Errorf("%d wrong callers; the call was found from %d instructions; at %d the stack is Wine's", sc.wrong, sc.dispatched, sc.between)
	}
}
