//go:build !windows

package engines

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/capture/suspend"
)

// ladder lists every engine, best first.
var ladder = []rung{
	{"bpf", func(opts capture.Options, _ string) (capture.Engine, error) {
		return engine(bpfcopy.Open(opts, bpfcopy.Auto))
	}},
	{"perf", func(opts capture.Options, why string) (capture.Engine, error) {
		return perf(opts, perfevent.Machine, why)
	}},
	{"perf-thread", func(opts capture.Options, why string) (capture.Engine, error) {
		return perf(opts, perfevent.Threads, why)
	}},
	{"suspend", func(opts capture.Options, why string) (capture.Engine, error) {
		return engine(suspend.Open(opts, why))
	}},
}

func perf(opts capture.Options, scope perfevent.Scope, why string) (capture.Engine, error) {
	if err := notByPerf(opts); err != nil {
		return nil, err
	}
	return engine(perfevent.OpenEngine(opts, scope, why))
}
