package event

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
)

// ErrUnknown is wrapped by every error of Parse.
var ErrUnknown = errors.New("unknown event")

// Help describes in a few lines what Parse accepts.
const Help = `  cpu                      time on a CPU, -F samples per second (default)
  wall                     every thread, running or not, with its state
  off-cpu                  where threads sleep, by the time slept; see --min-sleep; needs BPF
  page-faults, cs, ...     the kernel's counters by perf's names: page-faults,
                           minor-faults, major-faults, context-switches (cs),
                           migrations, cycles, instructions, cache-misses,
                           branch-misses, L1-dcache-load-misses, rNNN, ...
                           about -F samples per second of each CPU
  sched:sched_switch       a tracepoint of the kernel, each time
  uprobe:LIB:FUNC[+OFF]    each call of a function in a program or library, in
                           the targets only; uretprobe: its return
  NAME/period=N/  NAME:u   every Nth one; :u only in user mode, :k in the kernel`

// suffix matches a period and modes behind a name, as perf writes them.
var suffix = regexp.MustCompile(`^(.+)/(?:period=([0-9]+))?/([ukh]*)$`)

// longest bounds the length of an event's text, in bytes.
const longest = 1024

// Parse reads one event: "cpu", "page-faults", "cache-misses:u", "r01c2/period=1000/",
// "sched:sched_switch", "uprobe:libc.so.6:malloc". It does not check whether this machine has such
// a tracepoint, function or counter.
func Parse(text string) (capture.Event, error) {
	if len(text) > longest {
		return capture.Event{}, fmt.Errorf("%w: a name of %d letters", ErrUnknown, len(text))
	}
	name, period, modes := text, uint64(0), ""
	if m := suffix.FindStringSubmatch(text); m != nil {
		name, modes = m[1], m[3]
		if m[2] != "" {
			n, err := strconv.ParseUint(m[2], 10, 63)
			if err != nil || n == 0 {
				return capture.Event{}, fmt.Errorf("%w %q: the period %s is not a number from 1 on", ErrUnknown, text, m[2])
			}
			period = n
		}
	}
	e, err := parseName(name)
	if err != nil {
		return e, err
	}
	if period > 0 {
		switch e.Kind {
		case capture.Counter, capture.Tracepoint, capture.Probe:
			e.Period = period
		default:
			return e, fmt.Errorf("%w %q: %s has no period of its own; give a rate with -F", ErrUnknown, text, name)
		}
	}
	if modes != "" {
		if err := restrict(&e, modes); err != nil {
			return e, fmt.Errorf("%w %q: %w", ErrUnknown, text, err)
		}
		e.Name += ":" + modes
	}
	return e, nil
}

// restrict limits an event to the given modes, of "ukh".
func restrict(e *capture.Event, modes string) error {
	if e.Kind != capture.Counter {
		return fmt.Errorf("only counters can be kept to a mode")
	}
	user, kernel := strings.Contains(modes, "u"), strings.Contains(modes, "k")
	if !user && !kernel {
		return fmt.Errorf("the mode %q is none of u and k", modes)
	}
	e.NoUser, e.NoKernel = !user, !kernel
	return nil
}

// Same reports whether two names, such as "cs" and "context-switches", mean the same event.
func Same(a, b string) bool {
	x, err := Parse(a)
	if err != nil {
		return false
	}
	y, err := Parse(b)
	x.Name, y.Name = "", ""
	return err == nil && x == y
}

func parseName(name string) (capture.Event, error) {
	switch {
	case name == "":
		return capture.Event{}, fmt.Errorf("%w: the name is empty", ErrUnknown)
	case strings.HasPrefix(name, "uprobe:"), strings.HasPrefix(name, "uretprobe:"):
		return parseProbe(name)
	case strings.HasPrefix(name, "kprobe:"), strings.HasPrefix(name, "kretprobe:"):
		return capture.Event{}, fmt.Errorf("%w %q: candid puts no probes into the kernel; take one of its tracepoints (perf list tracepoint)", ErrUnknown, name)
	}
	base, modes, colon := strings.Cut(name, ":")
	if kind, ok := times[base]; ok && !colon {
		return capture.Event{Name: name, Kind: kind, Unit: "nanoseconds"}, nil
	}
	if c, ok := counterOf(base); ok {
		e := capture.Event{Name: name, Kind: capture.Counter, Unit: "count", Type: c.typ, Config: c.config}
		if colon {
			if err := checkModes(modes); err != nil {
				return e, fmt.Errorf("%w %q: %w", ErrUnknown, name, err)
			}
			return e, restrict(&e, modes)
		}
		return e, nil
	}
	if colon && isWord(base) && isWord(modes) && times[base] == 0 && base != "cpu" {
		return capture.Event{Name: name, Kind: capture.Tracepoint, Unit: "count", Point: capture.Point{System: base, Name: modes}}, nil
	}
	if why, ok := others[name]; ok {
		return capture.Event{}, fmt.Errorf("%w %q: %s", ErrUnknown, name, why)
	}
	hint := ": there are cpu, wall, off-cpu, and perf's counters, tracepoints and probes ('candid record --help')"
	if names := near(name); len(names) > 0 {
		hint = ": did you mean " + strings.Join(names, ", ") + "?"
	}
	return capture.Event{}, fmt.Errorf("%w %q%s", ErrUnknown, name, hint)
}

// others are events of other profilers that candid reads but does not record.
var others = map[string]string{
	"alloc": "candid does not record allocations; what a JVM (jcmd PID JFR.start) or async-profiler recorded of them it reads",
	"lock":  "candid records waiting for locks as part of -e wall and -e off-cpu, with the threads' state (report --state blocked); 'candid dump' shows who holds which lock now",
}

func checkModes(modes string) error {
	if modes == "" || strings.Trim(modes, "ukh") != "" {
		return fmt.Errorf("the mode %q is none of u and k", modes)
	}
	return nil
}

// counterOf finds a counter by its name, or by its raw number: r01c2.
func counterOf(name string) (counter, bool) {
	if c, ok := byName[name]; ok {
		return c, true
	}
	if len(name) > 1 && name[0] == 'r' {
		if n, err := strconv.ParseUint(name[1:], 16, 64); err == nil {
			return counter{typ: capture.TypeRaw, config: n}, true
		}
	}
	return counter{}, false
}

// isWord reports whether s may be the name of a tracepoint or of its system.
func isWord(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return s != ""
}

// parseProbe reads "uprobe:LIB:FUNC+0xOFF" and "uretprobe:…".
func parseProbe(name string) (capture.Event, error) {
	wrong := func(why string) (capture.Event, error) {
		return capture.Event{}, fmt.Errorf("%w %q: %s; write uprobe:libc.so.6:malloc, or uprobe:/path/to/program:function+0x10", ErrUnknown, name, why)
	}
	kind, rest, _ := strings.Cut(name, ":")
	// A path may contain colons; a function may not, except for C++ names that are not mangled.
	cut := strings.LastIndexByte(rest, ':')
	if cut < 0 {
		return wrong("it names no function")
	}
	p := capture.Place{Library: rest[:cut], Function: rest[cut+1:], Return: kind == "uretprobe"}
	if p.Library == "" {
		return wrong("it names no program or library")
	}
	if strings.ContainsRune(p.Library, 0) || strings.ContainsRune(p.Function, 0) {
		return wrong("a name cannot hold a zero byte")
	}
	if f, off, ok := strings.Cut(p.Function, "+"); ok {
		n, err := strconv.ParseUint(off, 0, 63)
		if err != nil {
			return wrong("the offset " + strconv.Quote(off) + " is no number")
		}
		p.Function, p.Offset = f, n
	} else if n, err := strconv.ParseUint(p.Function, 0, 63); err == nil {
		p.Function, p.Offset = "", n
	}
	if p.Function == "" && p.Offset == 0 {
		return wrong("it names no function")
	}
	return capture.Event{Name: name, Kind: capture.Probe, Unit: "count", Place: p}, nil
}
