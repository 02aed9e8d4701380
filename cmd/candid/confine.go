package main

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/event"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/confine"
	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/vmread"
)

// confined gives up what reading files does not need, and confining says whether others do so too.
// Tests that run commands in their own process keep it all: it cannot be taken back.
var (
	confined  = func() {}
	confining bool
)

// confineTo makes a recording give up what it does not need. opens says that a browser is started
// afterwards.
func confineTo(o *record.Options, opens bool) {
	if !confining {
		return
	}
	s := confine.Sampler{Launched: len(o.Command) > 0, Admin: administers(o.Events)}
	o.Attaching = s.Attach
	if opens {
		return
	}
	o.Attached = func() {
		// Without the asker the process that asks file systems has to be started by candid itself.
		if s.Attached(vmread.StartAsker) != nil {
			s.Starts = true
			_ = s.Attached(nil)
		}
	}
}

// confineDump makes dump give up what it does not need. It loads BPF programs for each look where it
// may not read what threads wait for, and starts the process that asks file systems.
func confineDump() {
	if !confining {
		return
	}
	s := confine.Sampler{Starts: true, Loads: true}
	s.Attach()
	_ = s.Attached(nil)
}

// confineAgent makes the agent give up what it does not need, before it reads its file. It starts copies
// of candid for captures, and loads BPF programs whenever its recording begins anew.
func confineAgent() {
	if !confining {
		return
	}
	s := confine.Sampler{Agent: true, Starts: true, Loads: true}
	s.Attach()
	_ = s.Attached(nil)
}

// administers reports whether an event takes CAP_SYS_ADMIN: probes in programs do, for which
// CAP_PERFMON is not enough (tried on Linux 6.18), and tracepoints if the kernel's tracing files, which
// have their numbers, are mounted nowhere.
func administers(events []string) bool {
	for _, written := range events {
		if e, err := event.Parse(written); err == nil && (e.Kind == capture.Probe || e.Kind == capture.Tracepoint && !perfevent.TracingMounted()) {
			return true
		}
	}
	return false
}
