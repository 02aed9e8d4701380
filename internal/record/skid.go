package record

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/profile"
)

// skids counts samples that the sampling timer's interrupt took too late.
type skids struct {
	clocked uint64 // samples that a timer took while the thread ran
	late    uint64 // of these: with frames marked as walk.Skid
}

// markSkid marks frames where the kernel enabled interrupts and the sampling timer's interrupt was
// delivered too late. Samples of other events are taken at the event.
func (s *session) markSkid(snap *capture.Snapshot) {
	if snap.State != capture.Running || int(snap.Event) >= len(s.events) {
		return
	}
	// Both are sampled by a timer of the kernel's.
	if k := s.events[snap.Event].Kind; k != profile.EventCPU && k != profile.EventWall {
		return
	}
	s.skids.clocked++
	if s.kernel.MarkSkid(s.stack.Frames) {
		s.skids.late++
	}
}

// note returns how many samples were taken too late, "" if none were.
func (c skids) note() string {
	if c.late == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d samples (%.1f %%) were taken where the kernel enabled interrupts again: they count for the caller, whose time it was (report --raw shows them as they were)",
		c.late, c.clocked, 100*float64(c.late)/float64(c.clocked))
}
