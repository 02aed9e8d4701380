package record

import (
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
)

// Processes that are not visible in candid's pid namespace all have PID 0: what one of them does
// says nothing about the others.
func TestOutsideTheNamespace(t *testing.T) {
	s := newSession(&Options{All: true})
	defer s.close()
	s.Notice(capture.ProcessEvent{Kind: capture.Exec, Comm: "one"})
	s.Notice(capture.ProcessEvent{Kind: capture.Fork, TID: 0, Parent: 0})
	if s.process(0) != nil || s.spaces.Of(0) != nil || s.comms[0] != "" {
		t.Errorf("a process: %v, mappings: %v, called %q", s.process(0), s.spaces.Of(0), s.comms[0])
	}
}
