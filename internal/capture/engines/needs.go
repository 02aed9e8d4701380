package engines

import (
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
)

// onlyBPF says what of that which is asked for no engine but bpf gives, and what can
// be had in its place; "" if there is no such thing.
func onlyBPF(opts capture.Options) (what, instead string) {
	var names []string
	simple := true // nothing but time, of threads that run or that are there
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

// needsBPF is the error where that engine could not be had, or another was asked for.
func needsBPF(what, instead string, why error) error {
	return fmt.Errorf("%s: this takes the bpf engine; %s: %w", what, instead, why)
}

// notByPerf refuses wall time to the engines of perf events. It says nil of all else.
func notByPerf(opts capture.Options) error {
	for _, e := range opts.Events {
		if e.Kind == capture.Wall {
			return fmt.Errorf("sample by %s: %w: perf events see a thread only while it runs; the engines bpf and suspend see it asleep too: leave --engine away",
				e.Name, capture.ErrUnsupported)
		}
	}
	return nil
}
