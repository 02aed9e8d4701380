package record

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// windowsWork is a program for Windows whose stacks are known: it computes, sorts with a callback
// from the C library, and makes system calls.
const windowsWork = `
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
volatile double sink;
__attribute__((noinline)) double leaf(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
__attribute__((noinline)) double middle(int n) { double r = leaf(n) * 2; sink = r; return r + 1; }
__attribute__((noinline)) void computes(void) { for (int i = 0; i < 50; i++) sink += middle(20000); }
int compare(const void *a, const void *b) { sink += leaf(300); return *(int *)a - *(int *)b; }
__attribute__((noinline)) void sorts(void) {
	int v[300];
	for (int i = 0; i < 300; i++) v[i] = (i * 7919) % 300;
	qsort(v, 300, sizeof v[0], compare);
	sink += v[7];
}
__attribute__((noinline)) void calls(void) {
	for (int i = 0; i < 100; i++) {
		HANDLE h = CreateEventA(0, 0, 0, 0);
		SetEvent(h);
		WaitForSingleObject(h, 0);
		CloseHandle(h);
	}
	sink += 1;
}
int main(void) {
	puts("ready");
	fflush(stdout);
	for (;;) { computes(); sorts(); calls(); }
}`

// TestWine records a Windows program in Wine: its stacks are whole, through Windows' libraries,
// Wine's own code and the kernel.
func TestWine(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("Wine runs Windows programs of this processor only")
	}
	program := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "work.exe", windowsWork, "-O2")
	target := fixture.Start(t, fixture.Wine(t, program))
	target.Await("ready")
	tooLittle := fixture.Watch(t)
	r := run(t, Options{PIDs: []int{target.PID()}, Duration: 6 * time.Second, Hz: 999})
	p := r.Profile
	seen := map[string]int{}
	complete, all := 0, 0
	for _, s := range p.Samples {
		var names []string // outermost first
		kernel := false
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := &p.Frames[p.Nodes[n].Frame]
			if f.Kind == walk.KindKernel {
				kernel = true
				continue
			}
			names = append(names, p.Funcs[f.Func].Name)
		}
		slices.Reverse(names)
		main := slices.Index(names, "main")
		all++
		if s.End != walk.EndComplete {
			t.Logf("%v: %q", s.End, names)
			continue
		}
		complete++
		if main < 0 || names[0] != "RtlUserThreadStart" {
			t.Errorf("a stack that is complete without its beginning: %q", names)
			continue
		}
		for _, chain := range [][]string{
			{"computes", "middle", "leaf"}, {"sorts", "qsort"}, {"compare", "leaf"},
			{"calls", "SetEvent", "NtSetEvent", "__wine_syscall_dispatcher", "NtSetEvent"},
		} {
			if i := slices.Index(names, chain[0]); i >= 0 && len(names) >= i+len(chain) && slices.Equal(names[i:i+len(chain)], chain) {
				seen[chain[0]]++
				if kernel {
					seen["kernel below "+chain[0]]++
				}
			}
		}
	}
	if all < 100 {
		tooLittle("%d samples", all)
	}
	t.Logf("%d of %d stacks are complete", complete, all)
	if complete*1000 < all*999 {
		t.Errorf("%d of %d stacks are complete", complete, all)
	}
	for _, want := range []string{"computes", "sorts", "compare", "calls", "kernel below calls"} {
		if seen[want] == 0 {
			t.Errorf("no %s among %d stacks: %v", want, all, seen)
		}
	}
}

// TestWineLater begins to record the machine before a Windows program starts: Wine reads the
// program's code into memory, and nobody reports which file it is from.
func TestWineLater(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("Wine runs Windows programs of this processor only")
	}
	program := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "work.exe", windowsWork, "-O2")
	tooLittle := fixture.Watch(t)
	r := started(t, Options{All: true, Hz: 199, Events: []string{"cpu"}})
	target := fixture.Start(t, fixture.Wine(t, program))
	target.Await("ready")
	time.Sleep(4 * time.Second)
	result, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	p := result.Profile
	complete, all := 0, 0
	for _, s := range p.Samples {
		if p.Threads[s.Thread].PID != target.PID() {
			continue
		}
		all++
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			if name := p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name; s.End == walk.EndComplete && (name == "computes" || name == "sorts" || name == "calls") {
				complete++
				break
			}
		}
	}
	t.Logf("%d of %d stacks are complete", complete, all)
	if all < 100 {
		tooLittle("%d samples", all)
		return
	}
	if complete*2 < all { // Wine itself starts for a second or two
		t.Errorf("%d of %d stacks are complete", complete, all)
	}
}

// asmcgocall is the function of Go's runtime that calls Windows.
const asmcgocall = "runtime.asmcgocall"

// TestWineGo records a Go program for Windows in Wine: on its goroutines, on its threads' own stacks,
// and in Windows' libraries, with the functions that were inlined, though it has no symbols.
func TestWineGo(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("Wine runs Windows programs of this processor only")
	}
	exe := filepath.Join(t.TempDir(), "gospin.exe")
	c := exec.Command("go", "build", "-ldflags", "-s -w", "-o", exe, "../capture/winsuspend/testdata/gospin")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	target := fixture.Start(t, fixture.Wine(t, exe, "60"))
	target.Await("ready")
	tooLittle := fixture.Watch(t)
	p := run(t, Options{PIDs: []int{target.PID()}, Duration: 4 * time.Second, Hz: 499}).Profile
	complete, leaves, chains, inlined, calls, cut := 0, 0, 0, 0, 0, 0
	for _, s := range p.Samples {
		if s.End == walk.EndComplete {
			complete++
		} else {
			t.Logf("%v", s.End)
		}
		var names []string // innermost first
		for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
			f := &p.Frames[p.Nodes[n].Frame]
			if f.Kind == walk.KindInlined {
				inlined++
			}
			names = append(names, p.Funcs[f.Func].Name)
		}
		if at := slices.Index(names, "main.leaf"); at >= 0 {
			leaves++
			if rest := names[at:]; slices.Equal(rest[:min(3, len(rest))], []string{"main.leaf", "main.middle", "main.work"}) {
				chains++
			} else {
				t.Logf("%q", names)
			}
		}
		// A call of Windows runs on the thread's own stack, below which is the goroutine that made it.
		if slices.Contains(names, asmcgocall) {
			if calls++; names[len(names)-1] == asmcgocall {
				cut++
			}
		}
	}
	t.Logf("%d of %d stacks are complete, %d of %d have their callers, %d frames are inlined, %d of %d calls of Windows end there", complete, len(p.Samples), chains, leaves, inlined, cut, calls)
	if len(p.Samples) < 200 || leaves < 100 {
		tooLittle("%d samples, %d of them in the function in which the program is", len(p.Samples), leaves)
		return
	}
	if cut*100 > calls {
		t.Errorf("%d of %d calls of Windows have no callers", cut, calls)
	}
	if complete*100 < 99*len(p.Samples) || chains*1000 < 999*leaves || inlined == 0 {
		t.Errorf("%d of %d stacks are complete, %d of %d have their callers, %d frames are inlined", complete, len(p.Samples), chains, leaves, inlined)
	}
}
