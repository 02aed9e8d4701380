// Package doctor examines what a machine permits a profiler to do, which engine candid would choose
// and why, and what would have to change for a better one. It changes nothing: events and BPF
// programs are opened to see whether they can be, and closed again before they sample.
package doctor

import "strings"

// Schema names the form of Report as JSON. Fields may be added to it; none is removed or changes
// its meaning.
const Schema = "candid.doctor/1"

// State says how well something works for profiling.
type State string

// Values of State.
const (
	OK      State = "ok"      // everything that candid could use is available
	Limited State = "limited" // it works, with restrictions
	No      State = "no"      // it does not work
)

// Report is everything that was found.
type Report struct {
	Schema  string   `json:"schema"` // "candid.doctor/1"
	Version string   `json:"version"`
	Host    Host     `json:"host"`
	Verdict Verdict  `json:"verdict"`
	Engine  string   `json:"engine"`  // the engine that `record` would choose; "" if it can choose none
	Engines []Engine `json:"engines"` // all, best first
	Checks  []Check  `json:"checks"`
	Target  *Target  `json:"target,omitempty"` // with -p
	Fixes   []Fix    `json:"fixes"`            // of all checks, the most useful first, each once
}

// Host is the machine.
type Host struct {
	Kernel string `json:"kernel"` // release: "6.18.44"
	Arch   string `json:"arch"`   // as Go names it: "amd64"
	CPUs   int    `json:"cpus"`   // online
}

// Verdict is the conclusion in a sentence.
type Verdict struct {
	State State  `json:"state"` // no: nothing can be recorded
	Text  string `json:"text"`
}

// Engine is one way of stopping threads.
type Engine struct {
	Name   string `json:"name"` // as --engine accepts it
	State  State  `json:"state"`
	Detail string `json:"detail"` // what it does, or why it is not available
}

// Check is the result for one thing that was examined.
type Check struct {
	ID    string `json:"id"`    // "kernel.perf_event_paranoid"; stable
	Group string `json:"group"` // heading: "privileges"
	Name  string `json:"name"`  // for people
	State State  `json:"state"`
	Seen  string `json:"seen"`          // "2"
	Means string `json:"means"`         // the consequence for profiling
	Fix   *Fix   `json:"fix,omitempty"` // a change that would improve it, if a command can make one
}

// Fix is a change that improves something.
type Fix struct {
	Command string `json:"command"` // for a POSIX shell
	Gain    string `json:"gain"`    // what it achieves
}

// Target is the process that the user asked about.
type Target struct {
	PID          int      `json:"pid"`
	NamespacePID int      `json:"namespace_pid"` // PID in its own pid namespace
	UID          int      `json:"uid"`           // -1 if unknown
	Command      string   `json:"command"`
	Runtime      string   `json:"runtime"` // "hotspot 17.0.15"
	Threads      int      `json:"threads"`
	JVM          *JVM     `json:"jvm,omitempty"`
	Modules      []Module `json:"modules"` // the files whose code is mapped
}

// JVM is what a Java VM reports about itself.
type JVM struct {
	Release string            `json:"release"` // the VM's own version string
	GC      string            `json:"gc"`      // "G1"; "" if unknown
	Flags   map[string]string `json:"flags"`   // values of the flags that matter to a profiler
	Notes   []string          `json:"notes"`   // what is not possible with this VM
}

// Module is a file with code, and what is known about that code.
type Module struct {
	Path    string `json:"path"` // as the target sees it
	State   State  `json:"state"`
	Symbols string `json:"symbols"` // "symtab", "debug file", "pclntab", ".gnu_debugdata", "dynsym only", "none", "unreadable"
	Count   int    `json:"count"`   // number of functions with a name
	Lines   bool   `json:"lines"`   // source lines and inlined functions are known
	Unwind  bool   `json:"unwind"`  // it has unwind tables
	Package string `json:"package"` // Debian package that should hold its symbols; "" if none is missing or known
	Note    string `json:"note,omitempty"`
}

// collect fills Fixes from the checks, in their order except that those for things that do not work
// come first. A command that helps several checks is listed once.
func (r *Report) collect() {
	r.Fixes = []Fix{}
	at := map[string]int{}
	for _, s := range []State{No, Limited, OK} {
		for _, c := range r.Checks {
			if c.State != s || c.Fix == nil {
				continue
			}
			i, seen := at[c.Fix.Command]
			if !seen {
				at[c.Fix.Command] = len(r.Fixes)
				r.Fixes = append(r.Fixes, *c.Fix)
			} else if f := &r.Fixes[i]; !strings.Contains(f.Gain, c.Fix.Gain) {
				f.Gain += "; " + c.Fix.Gain
			}
		}
	}
	r.Fixes = oneStart(r.Fixes)
}

// oneStart merges the commands that start the container with more capabilities: each of them alone
// would leave out the others' capabilities. A command that takes more than capabilities stays
// separate.
func oneStart(fixes []Fix) []Fix {
	const capability, image = "--cap-add ", " IMAGE"
	out := []Fix{}
	first := -1
	for _, f := range fixes {
		start, flags, ok := strings.Cut(f.Command, " run ")
		if !ok || !strings.HasPrefix(flags, capability) || !strings.HasSuffix(flags, image) {
			out = append(out, f)
			continue
		}
		if first < 0 {
			first = len(out)
			out = append(out, f)
			continue
		}
		one := &out[first]
		if strings.HasPrefix(one.Command, start+" run ") {
			one.Command = strings.TrimSuffix(one.Command, image) + " " + flags
			one.Gain += "; " + f.Gain
		} else {
			out = append(out, f)
		}
	}
	return out
}
