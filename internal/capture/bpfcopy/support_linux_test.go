package bpfcopy

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

func stringReader(s string) io.Reader { return strings.NewReader(s) }

func itoa(n int) string { return strconv.Itoa(n) }

// schedstat is the CPU time of a thread by the kernel's own account, ns.
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

// stackRange is where the first thread's stack is mapped.
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
