package doctor

import (
	"errors"
	"os"
	"runtime"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
	"github.com/candid-profiler/candid/internal/capture/engines"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
)

// Examine examines the machine and, if one is given, a target. The error wraps target.ErrNoProcess,
// target.ErrZombie or target.ErrKernelThread if there is no such target; a target that may not be
// examined is reported in the Report.
func Examine(o Options) (*Report, error) {
	r := &Report{Schema: Schema, Version: o.Version}
	pid := os.Getpid()
	var p *target.Process
	var denied error
	if o.PID > 0 {
		pid = o.PID
		var err error
		if p, err = target.Open(pid); err != nil {
			if !errors.Is(err, target.ErrPermission) {
				return nil, err
			}
			denied = err
		} else {
			defer p.Close()
		}
	}
	f := gather()
	r.Host = Host{Kernel: f.kernel, Arch: runtime.GOARCH, CPUs: f.cpus}
	var detail string
	if denied == nil {
		r.Engine, detail, r.Engines = probe(pid, o.Hz)
	} else {
		detail, r.Engines = symbol.Printable(denied.Error()), []Engine{}
	}
	r.Checks = f.machine(r.Engine, o.Hz)
	if o.PID > 0 {
		e := examiner{f: f, p: p}
		e.target(o.PID, denied)
		r.Target = e.t
		if r.Engine != "" {
			replace(r.Checks, f.checkFiles(r.Engine, e.t.Threads))
		}
		r.Checks = append(r.Checks, e.checks...)
	}
	r.Verdict = f.verdict(r.Engine, detail, r.Target)
	f.suit(r.Checks)
	r.collect()
	return r, nil
}

// replace replaces the check with the same ID.
func replace(checks []Check, c Check) {
	for i := range checks {
		if checks[i].ID == c.ID {
			checks[i] = c
		}
	}
}

// probe opens the engine that `record` would choose for a process, and then the others to see
// whether they can be opened. None of them begins to sample. detail is the reason if there is none
// and chosen is "".
func probe(pid int, hz float64) (chosen, detail string, all []Engine) {
	period, _, _ := capture.ChooseRate(hz)
	opts := capture.Options{PIDs: []int{pid}, Period: period, Events: []capture.Event{{Name: "cpu", Kind: capture.CPUTime, Unit: "nanoseconds"}}}
	best, err := open(opts, "auto")
	if err != nil {
		detail = symbol.Printable(errText(err))
	} else {
		chosen = best.Name
	}
	for _, name := range engines.Names() {
		if name == chosen {
			all = append(all, best)
			continue
		}
		e, err := open(opts, name)
		if err != nil {
			e = Engine{Name: name, State: No, Detail: symbol.Printable(errText(err))}
		}
		all = append(all, e)
	}
	return chosen, detail, all
}

// open opens an engine to see whether it can be.
func open(opts capture.Options, name string) (Engine, error) {
	e, err := engines.Open(opts, name)
	if err != nil {
		return Engine{}, err
	}
	defer e.Close()
	out := Engine{Name: e.Name(), State: Limited, Detail: e.Describe()}
	if v, ok := e.(interface{ Variant() bpfcopy.Variant }); ok {
		out.State = OK
		if s := v.Variant().String(); !strings.Contains(out.Detail, s) {
			out.Detail += ", " + s
		}
	}
	return out, nil
}
