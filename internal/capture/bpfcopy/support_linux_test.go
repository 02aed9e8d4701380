package bpfcopy

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// schedstat returns the CPU time of a thread by the kernel's own account, in ns.
func schedstat(t testing.TB, pid, tid int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseUint(strings.Fields(string(b))[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// stackRange returns where the first thread's stack is mapped.
func stackRange(t testing.TB, maps string) (lo, hi uint64) {
	t.Helper()
	for line := range strings.Lines(maps) {
		if strings.Contains(line, "[stack]") {
			if _, err := fmt.Sscanf(line, "%x-%x", &lo, &hi); err != nil {
				t.Fatal(err)
			}
			return lo, hi
		}
	}
	t.Fatal("no stack in the maps")
	return 0, 0
}

// threadTimes returns the CPU time of each of a process's threads, in ns.
func threadTimes(t testing.TB, pid int) map[int]uint64 {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	times := map[int]uint64{}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		times[tid] = schedstat(t, pid, tid)
	}
	return times
}

// favour lets a program run before others on a busy machine, if permitted.
func favour(pid int) { _ = unix.Setpriority(unix.PRIO_PROCESS, pid, -10) }
