package oracle

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// TestReturnsGoWhereTheShadowSays steps a whole dynamically linked program and checks that each
// return goes to the innermost entry of the shadow stack.
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
		// The dynamic linker enters the program by a jump, and a resolved function by a return to a
		// pushed address; both keep the depth.
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

// Return addresses that a program takes off its stack without returning are its callers again when
// it puts them back, and are not when it only makes room over them.
func TestReturnAddressesTakenOff(t *testing.T) {
	code := []byte{
		0xe8, 14, 0, 0, 0, // call first
		0xe8, 37, 0, 0, 0, // call second
		0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05, // exit
		// first: calls code that takes its return address off the stack and then behaves like a
		// function called by first's caller.
		0xe8, 2, 0, 0, 0, // call 1f
		0x0f, 0x0b, // ud2
		0x48, 0x83, 0xc4, 0x08, // 1: add rsp, 8
		0x48, 0x81, 0xec, 0x80, 0, 0, 0, // sub rsp, 128
		0x90,
		0x48, 0x81, 0xc4, 0x80, 0, 0, 0, // add rsp, 128
		0xc3,
		0xcc,
		// second:
		0x58, // pop rax
		0x50, // push rax
		0x90,
		0x58,                   // pop rax
		0x48, 0x83, 0xec, 0x10, // sub rsp, 16
		0x50, // push rax
		0x90,
		0x58,                   // pop rax
		0x48, 0x83, 0xc4, 0x10, // add rsp, 16
		0x50, // push rax
		0xc3,
	}
	nops := []uint64{}
	for i, b := range code {
		if b == 0x90 {
			nops = append(nops, codeAt+uint64(i))
		}
	}
	if len(nops) != 3 {
		t.Fatalf("%d nops", len(nops))
	}
	runtime.LockOSThread() // for good: the thread is pinned below
	tr, err := Start(executable(t, code))
	if err != nil {
		t.Skipf("cannot trace a program here: %v", err)
	}
	defer tr.Kill()
	seen := 0
	for tr.Steps() < 100 {
		if seen < len(nops) && tr.PC() == nops[seen] {
			want := codeAt + uint64(5)
			if seen > 0 {
				want = codeAt + 10
			}
			callers := tr.Callers()
			if top, _ := tr.Caller(); len(callers) != 1 || top.RA != want || seen > 0 && top.SP != tr.SP() {
				t.Errorf("nop %d: callers %+v at stack pointer %#x, want only %#x", seen, callers, tr.SP(), want)
			}
			seen++
		}
		if err := tr.Step(); err != nil {
			if !errors.Is(err, ErrExited) {
				t.Error(err)
			}
			break
		}
	}
	if seen != len(nops) {
		t.Errorf("it came to %d of %d nops", seen, len(nops))
	}
}

const codeAt = 0x400078

// executable writes a program that is only code.
func executable(t *testing.T, code []byte) string {
	t.Helper()
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Entry: codeAt, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	size := uint64(64 + 56 + len(code))
	load := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: codeAt - 120, Paddr: codeAt - 120, Filesz: size, Memsz: size, Align: 4096}
	var b bytes.Buffer
	for _, part := range []any{head, load, code} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, b.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// A thread that gets signals all the time makes progress: each of them stops it until it is passed
// on.
func TestContinuePassesSignalsOn(t *testing.T) {
	bin := fixture.C(t, `
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static sigjmp_buf back;
static int *volatile null;
static void fault(int sig) { siglongjmp(back, 1); }
int main() {
  signal(SIGSEGV, fault);
  puts("ready"); fflush(stdout);
  for (;;) {
    if (!sigsetjmp(back, 1)) *null = 1;
    for (volatile int i = 0; i < 20000; i++);
  }
}`)
	p := fixture.Start(t, exec.Command(bin))
	p.Line()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tr, err := Attach(p.PID())
	if err != nil {
		t.Skipf("cannot trace a program here: %v", err)
	}
	defer tr.Detach()
	const times, d = 50, 2 * time.Millisecond
	ran := tr.Ran()
	for range times {
		if err := tr.Continue(d); err != nil {
			t.Fatal(err)
		}
	}
	ran = tr.Ran() - ran
	// If nothing passes the signals on, it runs for some microseconds each time.
	if t.Logf("it ran %v in %d times %v", ran, times, d); ran < times*d/10 {
		t.Errorf("it ran %v in %d times %v", ran, times, d)
	}
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
