package winsuspend_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/dump"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/profile"
)

// A program with a thousand threads is dumped: each has its state and its whole stack, which is another
// one for each twentieth thread. The two that compute are recorded among those that wait.
func TestManyThreads(t *testing.T) {
	fixture.OnlyFull(t, "TestRecordNative")
	exe, dir, many, deepest := candidExe(t), t.TempDir(), 1000, 20
	pid := strconv.Itoa(startWine(t, mingw(t, "testdata/many.c"), "600"))
	out, errs, code := wine(t, dir, exe, "dump", "-p", pid, "--json")
	var d dump.Dump
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 || len(d.Processes) != 1 {
		t.Fatalf("dump: exit code %d, %v\n%s", code, err, errs)
	}
	depths, compute := map[int]int{}, 0
	for i := range d.Processes[0].Threads {
		th := &d.Processes[0].Threads[i]
		var frames []string // innermost first
		waits := 0
		for _, f := range th.Frames {
			frames = append(frames, f.Function)
			if f.Function == "waits" {
				waits++
			}
		}
		stack := strings.Join(frames, ";")
		switch {
		case th.End != "" || th.Error != "" || !strings.HasSuffix(stack, "BaseThreadInitThunk;RtlUserThreadStart"):
			t.Errorf("thread %d: %s%s: %s", th.TID, th.End, th.Error, stack)
		case waits == 0:
			if compute++; !strings.Contains(stack, "outer_call;computes") {
				t.Errorf("thread %d: %s", th.TID, stack)
			}
		case th.State != "sleeping" || !strings.Contains(stack, "WaitForSingleObject;waits;") || !strings.Contains(stack, "waits;waiter;"):
			t.Errorf("thread %d, %s: %s", th.TID, th.State, stack)
		default:
			depths[waits]++
		}
	}
	for depth := 1; depth <= deepest; depth++ {
		if depths[depth] != many/deepest {
			t.Errorf("%d threads are %d calls deep, not %d", depths[depth], depth, many/deepest)
		}
	}
	if compute != 2 {
		t.Errorf("%d threads compute", compute)
	}
	fixture.Attempts(t, 3, func() (wrong string) {
		_, errs, code := wine(t, dir, exe, "record", "-p", pid, "-d", "10s", "-F", "200", "--force", "-o", "cpu.jfr")
		if code != 0 {
			return fmt.Sprintf("exit code %d\n%s", code, errs)
		}
		return wholeStacks(t, filepath.Join(dir, "cpu.jfr"), 100)
	})
}

// A program that starts two hundred short ones is recorded together with them, and none of them is
// disturbed. Not all of them are seen in their own code: candid samples less often where its stops would
// take too much of their time, and walks what a process has left only if it knows its libraries.
func TestShortProcesses(t *testing.T) {
	fixture.OnlyFull(t, "TestSubcommands")
	exe, dir, many := candidExe(t), t.TempDir(), 200
	prog := mingw(t, "testdata/brood.c")
	fixture.Attempts(t, 3, func() (wrong string) {
		out, errs, code := wine(t, dir, exe, "record", "--children", "--force", "-F", "200", "-o", "b.jfr", "--", prog, strconv.Itoa(many), "100")
		if want := fmt.Sprintf("%d %d", many, many); code != 0 || strings.TrimSpace(out) != want {
			t.Errorf("exit code %d, the program printed %q, not %q\n%s", code, out, want, errs)
		}
		p, err := format.Read(filepath.Join(dir, "b.jfr"))
		if err != nil {
			t.Fatal(err)
		}
		seen, chains, leaves := map[int]bool{}, 0, 0
		p.Each(func(s *profile.Sample, _ uint64) {
			var names []string
			for n := s.Node; n != profile.RootNode; n = p.Nodes[n].Parent {
				names = append(names, p.Funcs[p.Frames[p.Nodes[n].Frame].Func].Name)
			}
			stack := strings.Join(names, ";")
			if strings.Contains(stack, "leaf_short") {
				leaves++
				if strings.Contains(stack, "leaf_short;short_life;main") {
					chains++
				}
				seen[p.Threads[s.Thread].PID] = true
			}
		})
		t.Logf("%d of %d processes were seen in their own code; %d of %d such stacks have their callers\n%s", len(seen), many, chains, leaves, errs)
		if len(seen)*3 < many || chains*100 < leaves*99 {
			return fmt.Sprintf("%d of %d processes were seen in their own code, %d of %d such stacks have their callers:\n%s", len(seen), many, chains, leaves, errs)
		}
		return ""
	})
}
