package doctor

import (
	"fmt"
	"strings"
)

// ways describes for people how the engines work, by name.
var ways = map[string]string{
	"bpf":         "perf events + BPF stack copy",
	"perf":        "perf events and stack copies of a fixed size",
	"perf-thread": "one perf event for each thread",
	"suspend":     "stopping running threads for microseconds",
}

// verdict returns the conclusion in a sentence or two. engine is the chosen one, "" if none could
// be; t is the target, nil if the user asked about none.
func (f *facts) verdict(engine string, detail string, t *Target) Verdict {
	if engine == "" {
		what := "candid cannot record here"
		if t != nil {
			what = fmt.Sprintf("candid cannot record process %d", t.PID)
			detail = strings.TrimPrefix(detail, fmt.Sprintf("process %d: ", t.PID))
		}
		return Verdict{No, what + ": " + strings.TrimPrefix(detail, "no way to sample here: ")}
	}
	v := Verdict{State: OK}
	whose := "every process here"
	switch {
	case t != nil:
		whose = fmt.Sprintf("process %d", t.PID)
		if t.Runtime != "" && t.Runtime != "unknown" {
			whose += " (" + t.Runtime + ")"
		}
	case f.sysctl["kernel.yama.ptrace_scope"] == "3":
		return Verdict{No, "candid cannot read any process here: kernel.yama.ptrace_scope is 3 until the next boot"}
	case !f.ptrace() && f.yama() > 1:
		return Verdict{No, fmt.Sprintf("candid cannot read any process here: kernel.yama.ptrace_scope is %d and CAP_SYS_PTRACE is missing", f.yama())}
	case !f.ptrace() && f.yama() == 1:
		v.State, whose = Limited, "only the programs that it launches"
	case !f.ptrace():
		v.State, whose = Limited, "only the processes of user "+f.user
	case f.inContainer():
		whose = "every process in this container"
	}
	way, known := ways[engine]
	if !known {
		way = "engine " + engine
	}
	if engine == "bpf" {
		if t == nil && whose == "every process here" {
			whose = "everything here"
		}
		v.Text = fmt.Sprintf("candid can profile %s with the full engine: %s.", whose, way)
	} else {
		v.State = Limited
		v.Text = fmt.Sprintf("candid can profile %s, by %s (not the full engine)", whose, way)
		if engine == "perf-thread" && f.perf == perfUser || engine == "suspend" {
			v.Text += ", without the time spent in the kernel"
		}
		v.Text += "."
	}
	if t == nil && engine != "bpf" && engine != "perf" {
		v.Text += " The whole machine at once (-a) cannot be recorded."
	}
	if t == nil {
		return v
	}
	if t.JVM != nil && t.JVM.Flags["DebugNonSafepoints"] == "false" {
		v.Text += " Where code is inlined, the innermost method may be its neighbour (DebugNonSafepoints is off)."
	}
	if poor := t.poor(); poor > 0 {
		v.Text += fmt.Sprintf(" %s some or all symbols.", plural(poor, "module lacks", "modules lack"))
	}
	return v
}

// yama returns kernel.yama.ptrace_scope, 0 if there is none.
func (f *facts) yama() int {
	var n int
	fmt.Sscan(f.sysctl["kernel.yama.ptrace_scope"], &n)
	return n
}

// poor returns how many modules lack some of their names.
func (t *Target) poor() int {
	n := 0
	for _, m := range t.Modules {
		if m.State != OK {
			n++
		}
	}
	return n
}
