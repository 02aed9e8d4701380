package record

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/target"
)

// vanished counts samples of processes that had ended before anything could be known of them: their
// time is real, and what they did in it is not known.
type vanished struct {
	pids               map[uint32]bool // those that have no other process's number by now; whether it is among processes
	processes, samples uint64          // of this part: that have samples, and these
}

// maxVanished bounds how many are told from others that could not be examined.
const maxVanished = 1 << 14

// refused records why a process could not be opened.
func (v *vanished) refused(pid uint32, err error) {
	if !errors.Is(err, target.ErrNoProcess) && !errors.Is(err, target.ErrZombie) {
		return
	}
	if v.pids == nil || len(v.pids) >= maxVanished {
		v.pids = map[uint32]bool{}
	}
	v.pids[pid] = false
}

// next begins another part of the recording.
func (v *vanished) next() {
	v.processes, v.samples = 0, 0
	for pid := range v.pids {
		v.pids[pid] = false
	}
}

// sample counts a sample of a process that was not opened.
func (v *vanished) sample(pid uint32) {
	counted, ok := v.pids[pid]
	if !ok {
		return
	}
	if v.samples++; !counted {
		v.pids[pid] = true
		v.processes++
	}
}

// note describes what was counted, "" if that is nothing.
func (v *vanished) note() string {
	if v.samples == 0 {
		return ""
	}
	return fmt.Sprintf("%d samples of %d processes have no stacks of their own code: the processes had ended before candid could look at them", v.samples, v.processes)
}
