// Package engines chooses how threads are stopped and copied on this system: the best way that the
// system permits, or the one that the user asked for.
package engines

import (
	"errors"
	"fmt"
	"strings"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
)

// ErrUnknown says that there is no engine with the requested name.
var ErrUnknown = errors.New("unknown engine")

// rung is one engine, and how to open it, given why the one above it could not be used.
type rung struct {
	name string
	open func(opts capture.Options, why string) (capture.Engine, error)
}

// engine keeps a nil pointer from becoming an interface that is not nil.
func engine[E capture.Engine](e E, err error) (capture.Engine, error) {
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Names returns the engines' names, best first, as --engine takes them besides "auto".
func Names() []string {
	names := make([]string, len(ladder))
	for i, r := range ladder {
		names[i] = r.name
	}
	return names
}

// Open opens the engine with that name; with "auto" or "" the best that this system permits, whose
// Describe says why it is not a better one. If a process or an event does not exist, the search
// ends, because every engine would find the same.
func Open(opts capture.Options, choice string) (capture.Engine, error) {
	what, instead := "", ""
	if ladder[0].name == "bpf" {
		what, instead = onlyBPF(opts)
	}
	if choice != "" && choice != "auto" {
		for _, r := range ladder {
			if r.name == choice {
				if what != "" && r.name != "bpf" {
					return nil, needsBPF(what, instead, fmt.Errorf("--engine %s: %w", choice, capture.ErrUnsupported))
				}
				return r.open(opts, "")
			}
		}
		return nil, fmt.Errorf("%w %q: there are auto, %s", ErrUnknown, choice, strings.Join(Names(), ", "))
	}
	var tried []error
	why := ""
	for _, r := range ladder {
		e, err := r.open(opts, why)
		if err == nil {
			return e, nil
		}
		if errors.Is(err, capture.ErrNoEvent) || !errors.Is(err, capture.ErrPermission) && !errors.Is(err, capture.ErrUnsupported) {
			return nil, err
		}
		if what != "" {
			return nil, needsBPF(what, instead, bpfReason(err))
		}
		tried = append(tried, fmt.Errorf("%s: %w", r.name, err))
		switch {
		case why == "":
			why = reason(err)
		case notByPerf(opts) != nil: // no better engine is used because BPF is not available
		case r.name == "perf-thread":
			why = perfReason(err)
		}
	}
	return nil, &noneError{tried}
}

// noneError says why none of the engines could be opened, in one line.
type noneError struct{ tried []error }

func (e *noneError) Error() string {
	parts := make([]string, len(e.tried))
	for i, err := range e.tried {
		parts[i] = firstLine(err.Error())
	}
	return "no way to sample here: " + strings.Join(parts, "; ")
}

func (e *noneError) Unwrap() []error { return e.tried }

// reason returns an engine's failure in a few words, for the line that describes the next one.
func reason(err error) string {
	switch {
	case errors.Is(err, capture.ErrPermission):
		return "BPF is not permitted (needs root, or CAP_BPF with CAP_PERFMON)"
	case errors.Is(err, capture.ErrUnsupported):
		return "BPF does not work here: " + firstLine(err.Error())
	}
	return firstLine(err.Error())
}

// bpfReason returns why BPF could not be used, and what to do about it.
func bpfReason(err error) error {
	if errors.Is(err, capture.ErrPermission) {
		return fmt.Errorf("BPF is %w: run candid as root, or with CAP_BPF and CAP_PERFMON ('candid doctor' says how)", capture.ErrPermission)
	}
	return err
}

// perfReason returns why the kernel's perf events could not be used at all.
func perfReason(err error) string {
	if errors.Is(err, capture.ErrPermission) {
		return "perf events are not permitted (kernel.perf_event_paranoid is " + perfevent.Paranoid() + "; CAP_PERFMON, or in a container its seccomp profile, would permit them)"
	}
	return "perf events do not work here: " + firstLine(err.Error())
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	const most = 240
	if len(line) > most {
		line = line[:most] + "…"
	}
	return line
}
