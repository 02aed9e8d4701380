package doctor

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/winsys"
)

// Examine examines this machine, and a process if one is named. The error is that of target.Open if
// there is no such process.
func Examine(o Options) (*Report, error) {
	v := windows.RtlGetVersion()
	r := &Report{
		Schema: Schema, Version: o.Version, Engine: "suspend",
		Host:    Host{Kernel: fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber), Arch: runtime.GOARCH, CPUs: runtime.NumCPU()},
		Verdict: Verdict{OK, "candid can record programs of this user, and of all users"},
	}
	debug := Check{ID: "windows.debug", Group: groupPrivileges, Name: "SeDebugPrivilege", State: OK, Seen: "held", Means: "programs of all users and services can be recorded, but for protected ones"}
	if !winsys.EnableDebug() {
		debug.State, debug.Seen, debug.Means = Limited, "not held", "programs of this user that do not run elevated can be recorded; for others run candid as administrator"
		r.Verdict = Verdict{Limited, "candid can record programs of this user; as administrator those of all"}
	}
	engine := Engine{Name: "suspend", State: OK, Detail: "threads are suspended for a copy"}
	if runtime.GOARCH != "amd64" {
		engine.State, engine.Detail = No, "on Windows candid records programs for x86-64 only"
		r.Engine, r.Verdict = "", Verdict{No, engine.Detail}
	}
	r.Engines = []Engine{engine}
	safe := Check{ID: "windows.state-change", Group: "safety", Name: "thread state change objects", State: OK, Seen: "present", Means: "the kernel resumes a suspended thread if candid is ended"}
	if windows.NewLazySystemDLL("ntdll.dll").NewProc("NtCreateThreadStateChange").Find() != nil {
		safe.State, safe.Seen, safe.Means = OK, "absent", "a second process of candid's resumes a suspended thread if candid is ended"
	}
	cycles := Check{ID: "windows.cycles", Group: "accuracy", Name: "cycle times of threads", State: OK, Seen: "counted", Means: "samples weigh what a thread has run, to the cycle"}
	if _, ok := winsys.Cycles(windows.CurrentThread()); !ok {
		cycles.State, cycles.Seen, cycles.Means = Limited, "not counted", "samples share the time that the system counts in ticks"
	}
	r.Checks = []Check{debug, safe, cycles}
	if o.PID != 0 {
		if err := r.examine(o.PID); err != nil {
			return nil, err
		}
	}
	r.collect()
	return r, nil
}

// examine adds a process.
func (r *Report) examine(pid int) error {
	r.Target = &Target{PID: pid, NamespacePID: pid, UID: -1, Runtime: "unknown", Modules: []Module{}}
	access := Check{ID: "target.access", Group: groupTarget, Name: "access", State: OK, Seen: "permitted", Means: "its memory can be read and its threads can be suspended"}
	p, err := target.Open(pid)
	if err != nil {
		if !target.Existing(pid) {
			return err
		}
		access.State, access.Seen, access.Means = No, "refused", err.Error()
		r.Verdict = Verdict{No, err.Error()}
		r.Checks = append(r.Checks, access)
		return nil
	}
	defer p.Close()
	r.Target.Command = redact.Command(p.Cmdline())
	if threads, err := p.Threads(); err == nil {
		r.Target.Threads = len(threads)
	}
	if what, err := runtimes.Of(p); err == nil {
		r.Target.Runtime = what.String()
	}
	r.Checks = append(r.Checks, access)
	return nil
}
