package hotspot

import "github.com/candid-profiler/candid/internal/walk"

// chunkWalk is what walking a heap chunk needs.
type chunkWalk struct{}

// stepBarrier goes on where the lowest thawed frame of a virtual thread returns
// to the return barrier.
func (vm *VM) stepBarrier(c *walk.Cursor, e *pcEntry) walk.Verdict {
	return walk.Stuck
}
