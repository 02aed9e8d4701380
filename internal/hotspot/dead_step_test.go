//go:build linux && amd64

package hotspot

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/oracle"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Where an interpreted method goes on after a call, registers hold whatever the callee left in
// them: a method that returns nothing may leave an address of code. The room that a synchronized
// method makes for its lock holds what was on the stack before. Neither is the return address of a
// method that is just being entered.
func TestWhatWasLeftIsNoCaller(t *testing.T) {
	for _, major := range fixture.JDKs(t, 8) {
		t.Run(fmt.Sprint(major), func(t *testing.T) { whatWasLeft(t, major) })
	}
}

func whatWasLeft(t *testing.T, major int) {
	cmd := startStepped(t, major, "-cp", fixture.Classes(t, major, "testdata/steps/Steps.java"), "-Xint", "Steps", "locks")
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	time.Sleep(500 * time.Millisecond)
	vm, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	tid := threadNamed(t, p, "stepped")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr := trace(t, tid)
	defer tr.Detach()
	s := &stepped{t: t, vm: vm, tr: tr}
	s.end = time.Now().Add(stepLimit)
	left := []int{cpu.RDX, cpu.RAX, cpu.RBX, cpu.RCX, cpu.RSI, cpu.RDI, cpu.R8, cpu.R9, cpu.R10, cpu.R11}
	const enough = 150
	goesOn, locks, wrong := 0, 0, 0
	compare := func(what string, c *codelet, want []walk.Frame) {
		if s.walkAll(); !slices.Equal(s.stack.Frames, want) {
			wrong++
			t.Errorf("with the call stub's return address in %s, in %q at +%#x, the chain is\n%v instead of\n%v", what, c.name, tr.PC()-c.lo, s.names(s.stack.Frames), s.names(want))
		}
	}
	for (goesOn < enough || locks == 0) && wrong < giveUp && !s.late() {
		vm.BeginBatch()
		p.Memory().Invalidate()
		for n, outside := 0, 0; n < 2000 && outside < 50; n++ {
			c := vm.codelet(tr.PC())
			switch {
			case c == nil:
			case strings.HasSuffix(c.name, "return entry points") && !strings.HasPrefix(c.name, "early"):
				goesOn++
				s.walkAll()
				want := slices.Clone(s.stack.Frames)
				for i, r := range left {
					s.left = &left[i]
					compare(registerNames[r], c, want)
				}
				s.left = nil
			case s.locking(c):
				// The room for the lock holds what was on the stack before.
				locks++
				s.walkAll()
				want := slices.Clone(s.stack.Frames)
				s.leftOnTop = true
				compare("the room for the lock", c, want)
				s.leftOnTop = false
			}
			step := tr.Step
			if outside++; vm.Owns(tr.PC()) {
				outside = 0
			} else if vm.Owns(tr.Executed().PC) && tr.InCall() {
				step = tr.StepOut
			}
			if err := step(); err != nil && !errors.Is(err, oracle.ErrBlocked) {
				t.Fatal(err)
			}
		}
		if err := tr.Continue(2 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d instructions where methods go on after a call, %d where they enter a lock, %d wrong chains", goesOn, locks, wrong)
	if (goesOn < enough || locks == 0) && wrong == 0 {
		fixture.NotPermitted(t, "only %d of %d instructions where methods go on after a call were met in %v, and %d where they enter a lock", goesOn, enough, stepLimit, locks)
	}
}

// locking reports whether the thread is entering a synchronized method, whose frame is whole and
// has room for the lock below it.
func (s *stepped) locking(c *codelet) bool {
	if !strings.Contains(c.name, "synchronized") {
		return false
	}
	cur := s.cursor(4096)
	at := s.vm.slots(cur)
	fp, sp := cur.Regs.FP(), cur.Regs.SP()
	bcp, ok := cur.Word(slot(fp, at.bcp))
	return ok && fp > sp && sp == slot(fp, at.bottom)-16 && bcp != 0 && bcp == cur.Regs.R[at.liveBCP]
}
