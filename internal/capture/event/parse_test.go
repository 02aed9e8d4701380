package event

import (
	"errors"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
)

func TestParse(t *testing.T) {
	count := func(name string, typ uint32, config uint64) capture.Event {
		return capture.Event{Name: name, Kind: capture.Counter, Unit: "count", Type: typ, Config: config}
	}
	with := func(e capture.Event, change func(*capture.Event)) capture.Event {
		change(&e)
		return e
	}
	for text, want := range map[string]capture.Event{
		"cpu":                       {Name: "cpu", Kind: capture.CPUTime, Unit: "nanoseconds"},
		"cpu-clock":                 {Name: "cpu-clock", Kind: capture.CPUTime, Unit: "nanoseconds"},
		"wall":                      {Name: "wall", Kind: capture.Wall, Unit: "nanoseconds"},
		"off-cpu":                   {Name: "off-cpu", Kind: capture.OffCPU, Unit: "nanoseconds"},
		"page-faults":               count("page-faults", capture.TypeSoftware, 2),
		"cs":                        count("cs", capture.TypeSoftware, 3),
		"migrations":                count("migrations", capture.TypeSoftware, 4),
		"cycles":                    count("cycles", capture.TypeHardware, 0),
		"branch-misses":             count("branch-misses", capture.TypeHardware, 5),
		"L1-dcache-load-misses":     count("L1-dcache-load-misses", capture.TypeCache, 0x10000),
		"LLC-store-misses":          count("LLC-store-misses", capture.TypeCache, 0x10102),
		"dTLB-loads":                count("dTLB-loads", capture.TypeCache, 3),
		"node-prefetch-misses":      count("node-prefetch-misses", capture.TypeCache, 0x10206),
		"r01c2":                     count("r01c2", capture.TypeRaw, 0x1c2),
		"cycles:u":                  with(count("cycles:u", capture.TypeHardware, 0), func(e *capture.Event) { e.NoKernel = true }),
		"page-faults/period=7/":     with(count("page-faults", capture.TypeSoftware, 2), func(e *capture.Event) { e.Period = 7 }),
		"cycles/period=1000000/k":   with(count("cycles:k", capture.TypeHardware, 0), func(e *capture.Event) { e.Period, e.NoUser = 1e6, true }),
		"sched:sched_switch":        {Name: "sched:sched_switch", Kind: capture.Tracepoint, Unit: "count", Point: capture.Point{System: "sched", Name: "sched_switch"}},
		"kmem:kmalloc/period=100/":  {Name: "kmem:kmalloc", Kind: capture.Tracepoint, Unit: "count", Period: 100, Point: capture.Point{System: "kmem", Name: "kmalloc"}},
		"uprobe:libc.so.6:malloc":   {Name: "uprobe:libc.so.6:malloc", Kind: capture.Probe, Unit: "count", Place: capture.Place{Library: "libc.so.6", Function: "malloc"}},
		"uprobe:/opt/a:b/x:f+0x10":  {Name: "uprobe:/opt/a:b/x:f+0x10", Kind: capture.Probe, Unit: "count", Place: capture.Place{Library: "/opt/a:b/x", Function: "f", Offset: 16}},
		"uprobe:libc.so.6:0x9c000":  {Name: "uprobe:libc.so.6:0x9c000", Kind: capture.Probe, Unit: "count", Place: capture.Place{Library: "libc.so.6", Offset: 0x9c000}},
		"uretprobe:libc.so.6:read":  {Name: "uretprobe:libc.so.6:read", Kind: capture.Probe, Unit: "count", Place: capture.Place{Library: "libc.so.6", Function: "read", Return: true}},
		"uprobe:/bin/a:f/period=3/": {Name: "uprobe:/bin/a:f", Kind: capture.Probe, Unit: "count", Period: 3, Place: capture.Place{Library: "/bin/a", Function: "f"}},
	} {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
		} else if got != want {
			t.Errorf("Parse(%q) =\n%+v, not\n%+v", text, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "empty",
		"page-fault":                          "did you mean page-faults",
		"cach-misses":                         "cache-misses",
		"offcpu":                              "off-cpu",
		"bananas":                             "--help",
		"alloc":                               "JFR.start",
		"lock":                                "-e off-cpu",
		"cpu/period=5/":                       "-F",
		"cycles/period=0/":                    "period",
		"cycles:x":                            "mode",
		"wall:u":                              "unknown",
		"sched:sched_switch/,/":               "unknown",
		"kprobe:vfs_read":                     "tracepoint",
		"uprobe:malloc":                       "no function",
		"uprobe::malloc":                      "no program",
		"uprobe:libc.so.6:":                   "no function",
		"uprobe:libc:f+x":                     "offset",
		"cycles/period=99999999999999999999/": "period",
	} {
		_, err := Parse(text)
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("Parse(%q): more than one line: %v", text, err)
		}
	}
}

func TestNamesAreKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range Names() {
		if _, err := Parse(n); err != nil {
			t.Errorf("Parse(%q): %v", n, err)
		}
		if seen[n] {
			t.Errorf("%s is there twice", n)
		}
		seen[n] = true
	}
	if len(seen) < 60 {
		t.Errorf("only %d names", len(seen))
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"cs", "context-switches", true}, {"cpu", "cpu-clock", true}, {"faults:u", "page-faults:u", true}, {"wall", "wall", true},
		{"cs", "cs:u", false}, {"wall", "cpu", false}, {"a:b", "a:c", false}, {"none", "none", false}, {"cpu", "none", false}, {"cs", "cs/period=3/", false},
	} {
		if Same(c.a, c.b) != c.want || Same(c.b, c.a) != c.want {
			t.Errorf("Same(%q, %q) is not %v", c.a, c.b, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"cpu", "cycles:u", "a:b", "uprobe:l:f+1", "r1/period=3/k", "uprobe:/a/b:c", "off-cpu", "::", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			return
		}
		if e.Name == "" || e.Unit == "" || e.NoUser && e.NoKernel {
			t.Fatalf("Parse(%q) = %+v", s, e)
		}
		again, err := Parse(e.Name)
		e.Period = 0
		if err != nil || again != e {
			t.Fatalf("Parse(%q) is called %q, which is read as %+v, %v", s, e.Name, again, err)
		}
	})
}
