package oracle

import (
	"errors"
	"runtime"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
)

// TestReturnsGoWhereTheShadowSays steps a whole dynamically linked program: each
// return must go to what the shadow stack held on top.
func TestReturnsGoWhereTheShadowSays(t *testing.T) {
	runtime.LockOSThread() // for good: the thread is pinned below
	tr, err := Start("/bin/true")
	if err != nil {
		t.Skipf("cannot trace a program here: %v", err)
	}
	defer tr.Kill()
	if err := tr.Pin(); err != nil {
		t.Fatal(err)
	}
	var s capture.Snapshot
	var returns, wrong int
	for {
		top, known := tr.Caller()
		depth := len(tr.Callers())
		if tr.Steps()%1000 == 0 {
			tr.Snapshot(&s, 1<<16)
			if len(s.Stack) < 128 || s.StackAddr != tr.SP()-128 {
				t.Fatalf("step %d: snapshot of %d bytes at %#x, stack pointer %#x", tr.Steps(), len(s.Stack), s.StackAddr, tr.SP())
			}
		}
		err := tr.Step()
		if errors.Is(err, ErrExited) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !tr.Executed().Ret {
			continue
		}
		returns++
		// The dynamic linker enters the program by a jump, and a resolved
		// function by a return to a pushed address; both keep the depth.
		if (!known || tr.PC() != top.RA) && len(tr.Callers()) != depth {
			wrong++
			t.Logf("step %d: return from %#x to %#x, shadow says %#x", tr.Steps(), tr.Executed().PC, tr.PC(), top.RA)
		}
	}
	if tr.Steps() < 10000 || returns < 100 {
		t.Errorf("only %d steps and %d returns seen", tr.Steps(), returns)
	}
	if wrong > 0 {
		t.Errorf("%d of %d returns went elsewhere", wrong, returns)
	}
	t.Logf("%d instructions, %d returns", tr.Steps(), returns)
}

func TestOpcodes(t *testing.T) {
	pad := func(b ...byte) []byte { return append(b, make([]byte, 15-len(b))...) }
	for _, c := range []struct {
		b         []byte
		call, ret bool
	}{
		{pad(0xe8, 1, 2, 3, 4), true, false},
		{pad(0xff, 0xd0), true, false},             // call rax
		{pad(0x41, 0xff, 0x55, 0x10), true, false}, // call [r13+16]
		{pad(0xff, 0xe0), false, false},            // jmp rax
		{pad(0xf2, 0xe8, 1, 2, 3, 4), true, false}, // bnd call
		{pad(0x3e, 0xff, 0xd0), true, false},       // notrack call rax
		{pad(0xc3), false, true},
		{pad(0xf3, 0xc3), false, true},
		{pad(0xc2, 8, 0), false, true},
		{pad(0xe9, 1, 2, 3, 4), false, false},
		{pad(0xff, 0x75, 0x10), false, false}, // push [rbp+16]
	} {
		if isCall(c.b) != c.call || isRet(c.b) != c.ret {
			t.Errorf("% x: call %v ret %v", c.b[:6], isCall(c.b), isRet(c.b))
		}
	}
}
