package event

import (
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
)

// counter is a counter of the kernel under perf's names.
type counter struct {
	names  []string // the first is the usual one
	typ    uint32
	config uint64
}

// counters are PERF_COUNT_SW_* and PERF_COUNT_HW_* of linux/perf_event.h.
var counters = []counter{
	{[]string{"page-faults", "faults"}, capture.TypeSoftware, 2},
	{[]string{"context-switches", "cs"}, capture.TypeSoftware, 3},
	{[]string{"cpu-migrations", "migrations"}, capture.TypeSoftware, 4},
	{[]string{"minor-faults"}, capture.TypeSoftware, 5},
	{[]string{"major-faults"}, capture.TypeSoftware, 6},
	{[]string{"alignment-faults"}, capture.TypeSoftware, 7},
	{[]string{"emulation-faults"}, capture.TypeSoftware, 8},
	{[]string{"cgroup-switches"}, capture.TypeSoftware, 11},
	{[]string{"cycles", "cpu-cycles"}, capture.TypeHardware, 0},
	{[]string{"instructions"}, capture.TypeHardware, 1},
	{[]string{"cache-references"}, capture.TypeHardware, 2},
	{[]string{"cache-misses"}, capture.TypeHardware, 3},
	{[]string{"branch-instructions", "branches"}, capture.TypeHardware, 4},
	{[]string{"branch-misses"}, capture.TypeHardware, 5},
	{[]string{"bus-cycles"}, capture.TypeHardware, 6},
	{[]string{"stalled-cycles-frontend", "idle-cycles-frontend"}, capture.TypeHardware, 7},
	{[]string{"stalled-cycles-backend", "idle-cycles-backend"}, capture.TypeHardware, 8},
	{[]string{"ref-cycles"}, capture.TypeHardware, 9},
}

// caches are PERF_COUNT_HW_CACHE_* by number, with what can be counted for each (perf's
// evsel__hw_cache_stat).
var caches = []struct {
	name string
	ops  string // of "rwp": loads, stores, prefetches
}{
	{"L1-dcache", "rwp"},
	{"L1-icache", "rp"},
	{"LLC", "rwp"},
	{"dTLB", "rwp"},
	{"iTLB", "r"},
	{"branch", "r"},
	{"node", "rwp"},
}

// cacheOps are the operations by their letters, in the order of their numbers.
var cacheOps = []struct {
	letter       byte
	all, missing string
}{
	{'r', "loads", "load-misses"},
	{'w', "stores", "store-misses"},
	{'p', "prefetches", "prefetch-misses"},
}

// cacheEvents returns every counter of a cache.
func cacheEvents() []counter {
	var list []counter
	for i, c := range caches {
		for op, o := range cacheOps {
			if !strings.ContainsRune(c.ops, rune(o.letter)) {
				continue
			}
			config := uint64(i) | uint64(op)<<8
			list = append(list,
				counter{[]string{c.name + "-" + o.all}, capture.TypeCache, config},
				counter{[]string{c.name + "-" + o.missing}, capture.TypeCache, config | 1<<16})
		}
	}
	return list
}

// byName maps each name of every counter to it.
var byName = func() map[string]counter {
	m := map[string]counter{}
	for _, list := range [][]counter{counters, cacheEvents()} {
		for _, c := range list {
			for _, n := range c.names {
				m[n] = c
			}
		}
	}
	return m
}()

// times are candid's own events, which count time. perf's names for the CPU clock mean the same as
// cpu.
var times = map[string]capture.EventKind{
	"cpu":        capture.CPUTime,
	"cpu-clock":  capture.CPUTime,
	"task-clock": capture.CPUTime,
	"off-cpu":    capture.OffCPU,
	"wall":       capture.Wall,
}

// Names returns the names that Parse knows, except those of tracepoints and probes: candid's own
// first, then the counters.
func Names() []string {
	names := []string{"cpu", "wall", "off-cpu"}
	for _, list := range [][]counter{counters, cacheEvents()} {
		for _, c := range list {
			names = append(names, c.names...)
		}
	}
	return names
}

// near returns up to three known names that are spelled almost like name.
func near(name string) []string {
	type candidate struct {
		name string
		off  int
	}
	var list []candidate
	lower := strings.ToLower(name)
	for _, n := range Names() {
		d := distance(lower, strings.ToLower(n))
		if len(lower) >= 3 && strings.Contains(strings.ToLower(n), lower) {
			d = min(d, 2)
		}
		if d <= 1+len(lower)/4 {
			list = append(list, candidate{n, d})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return a.off - b.off })
	var names []string
	for _, c := range list[:min(3, len(list))] {
		names = append(names, c.name)
	}
	return names
}

// distance returns how many letters must be inserted, deleted or replaced to turn a into b
// (Levenshtein); 99 for texts that are longer than any name.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 99
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				next = min(next, before)
			} else {
				next = min(next, before+1)
			}
			before, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
