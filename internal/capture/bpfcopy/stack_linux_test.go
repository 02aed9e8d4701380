package bpfcopy

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/fixture"
)

// startReady starts a program and waits for its first line of output.
func startReady(t testing.TB, argv ...string) (pid int, line string) {
	t.Helper()
	p := fixture.Start(t, command(argv...))
	favour(p.PID())
	return p.PID(), p.Line()
}

// recordSome records until there are some samples.
func recordSome(t testing.TB, e *Engine, r *recorder) {
	t.Helper()
	recordUntil(t, e, r, 10)
}

// recordUntil records until there are that many samples, however busy the machine.
func recordUntil(t testing.TB, e *Engine, r *recorder, samples int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	look := r.look
	r.look = func(s *capture.Snapshot) {
		if look != nil {
			look(s)
		}
		if r.samples >= samples {
			cancel()
		}
	}
	if err := e.Run(ctx, r); err != nil {
		t.Fatal(err)
	}
}

// holeSource has a page in the middle of its stack that is absent: the copy holds zeros.
const holeSource = `
#include <stdio.h>
#include <stdint.h>
#include <sys/mman.h>
void __attribute__((noinline)) spin(char *top) {
  volatile char pad[20000]; pad[0] = 1;
  for (volatile int i = 0; ; i++) pad[i & 1023] = i;
}
int main() {
  volatile char big[1 << 18];
  for (int i = 0; i < sizeof big; i++) big[i] = i;
  uintptr_t hole = ((uintptr_t)big + (1 << 16)) & ~4095ul;
  madvise((void *)hole, 4096, MADV_DONTNEED);
  printf("%lx %lx\n", hole, (uintptr_t)big); fflush(stdout);
  spin((char *)big);
  return big[7];
}`

func TestHoleInTheStack(t *testing.T) {
	bin := compile(t, holeSource)
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			pid, line := startReady(t, bin)
			var hole, array uint64
			if _, err := fmt.Sscanf(line, "%x %x", &hole, &array); err != nil {
				t.Fatal(err)
			}
			r := newRecorder()
			whole, moved := 0, 0
			r.look = func(s *capture.Snapshot) {
				end := s.StackAddr + uint64(len(s.Stack))
				if s.StackAddr > s.Regs.SP() || end != s.StackTop || s.Flags&^capture.InKernel != capture.StackHoles || end < hole+8192 {
					t.Fatalf("copied %x to %x, sp %x, hole at %x, top %x, flags %x", s.StackAddr, end, s.Regs.SP(), hole, s.StackTop, s.Flags)
				}
				around := s.Stack[hole-4096-s.StackAddr:][:3*4096]
				if zero := make([]byte, 4096); bytes.Equal(around[:4096], zero) || bytes.Equal(around[2*4096:], zero) {
					moved++ // the kernel moved it: the page was absent at that moment
					return
				}
				whole++
				for i, c := range around {
					addr := hole - 4096 + uint64(i)
					want := byte(addr - array)
					if addr >= hole && addr < hole+4096 {
						want = 0
					}
					if c != want {
						t.Fatalf("the byte at %x, hole at %x, is %d, not %d", addr, hole, c, want)
					}
				}
			}
			recordSome(t, open(t, cpuOptions(500, pid), v), r)
			if whole == 0 || moved > whole {
				t.Fatalf("%d whole samples, %d in which a page beside the hole is not there", whole, moved)
			}
		})
	}
}

// edgeSource has its stack pointer at the very start of a mapping: nothing is below it.
const edgeSource = `
#include <stdio.h>
#include <sys/mman.h>
int main() {
  char *m = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(m, 4096, PROT_NONE);
  mprotect(m + 8192, 4096, PROT_NONE);
  char *sp = m + 4096;
  sp[0] = 1; 
  printf("%lx\n", (unsigned long)sp); fflush(stdout);
#if defined(__x86_64__)
  asm volatile("mov %0, %%rsp\n1: jmp 1b" :: "r"(sp));
#else
  asm volatile("mov sp, %0\n1: b 1b" :: "r"(sp));
#endif
}`

// redZone is how many bytes the ABI lets code use below the stack pointer.
var redZone = map[string]int{"amd64": 128}[runtime.GOARCH]

func TestStackOfUnknownKind(t *testing.T) {
	bin := compile(t, edgeSource)
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			pid, line := startReady(t, bin)
			var sp uint64
			if _, err := fmt.Sscanf(line, "%x", &sp); err != nil {
				t.Fatal(err)
			}
			r := newRecorder()
			there := false // the program has printed where it goes, and goes there
			r.look = func(s *capture.Snapshot) {
				if there = there || s.Regs.SP() == sp; !there {
					r.samples--
					return
				}
				if s.Regs.SP() != sp || s.StackTop != 0 || s.StackAddr != sp-uint64(redZone) || len(s.Stack) != 4096+redZone || s.Flags&^capture.InKernel != 0 {
					t.Errorf("sp %x (%x), copied %x+%d, top %x, flags %x", s.Regs.SP(), sp, s.StackAddr, len(s.Stack), s.StackTop, s.Flags)
				} else if s.Stack[redZone] != 1 || redZone > 0 && s.Stack[0] != 0 {
					t.Errorf("the copy begins %d, the stack %d", s.Stack[0], s.Stack[redZone])
				}
			}
			recordSome(t, open(t, cpuOptions(500, pid), v), r)
			if r.samples == 0 {
				t.Fatal("no samples")
			}
		})
	}
}

// deepSource has a stack that is deeper than any copy.
const deepSource = `
#include <stdio.h>
#include <string.h>
int down(int n) {
  volatile char pad[8192]; memset((void *)pad, n, sizeof pad);
  if (n == 0) { printf("deep\n"); fflush(stdout); for (volatile int i = 0; ; i++); }
  return down(n - 1) + pad[5];
}
int main() { return down(128); }`

func TestDeepStack(t *testing.T) {
	bin := compile(t, deepSource)
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			pid, _ := startReady(t, bin)
			time.Sleep(20 * time.Millisecond)
			for _, limit := range []int{0, 100 << 10} {
				opts := cpuOptions(50, pid)
				opts.MaxStack = limit
				want := limit
				if limit == 0 {
					want = 512 << 10
				}
				r := newRecorder()
				r.look = func(s *capture.Snapshot) {
					if len(s.Stack) != want || s.Flags&capture.StackCut == 0 || s.StackTop-s.StackAddr < 1<<20 {
						t.Errorf("copied %d bytes of %d, flags %x", len(s.Stack), s.StackTop-s.StackAddr, s.Flags)
					}
				}
				e := open(t, opts, v)
				recordSome(t, e, r)
				if r.samples == 0 || e.Stats().Lost > 0 {
					t.Errorf("%d samples, %d lost", r.samples, e.Stats().Lost)
				}
			}
		})
	}
}
