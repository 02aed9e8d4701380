package engines

import (
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
)

// onlyBPF returns which part of the request no engine but bpf supports, and what can be used
// instead; "" if there is none.
func onlyBPF(opts capture.Options) (what, instead string) {
	var names []string
	simple := true // nothing but time, on the CPU or wall-clock
	for _, e := range opts.Events {
		if e.Kind == capture.OffCPU {
			return "sample by " + e.Name, "where threads sleep is seen without it by -e wall"
		}
		names = append(names, e.Name)
		simple = simple && (e.Kind == capture.CPUTime || e.Kind == capture.Wall)
		if e.Kind == capture.Wall && opts.All {
			return "sample the whole machine by " + e.Name, "it is to be had without it of the processes that -p names"
		}
	}
	if len(names) > 1 && !simple {
		return "sample by " + strings.Join(names, " and ") + " at once", "without it a recording has one event, or cpu and wall; record one after the other"
	}
	return "", ""
}

// needsBPF returns the error for when that engine could not be opened, or another one was
// requested.
func needsBPF(what, instead string, why error) error {
	return fmt.Errorf("%s: this takes the bpf engine; %s: %w", what, instead, why)
}

// notByPerf returns an error for wall time, which the engines of perf events do not support, and
// nil for everything else.
func notByPerf(opts capture.Options) error {
	for _, e := range opts.Events {
		if e.Kind == capture.Wall {
			return fmt.Errorf("sample by %s: %w: perf events see a thread only while it runs; the engines bpf and suspend see it asleep too: leave --engine away",
				e.Name, capture.ErrUnsupported)
		}
	}
	return nil
}
