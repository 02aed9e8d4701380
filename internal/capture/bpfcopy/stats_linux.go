package bpfcopy

import (
	"fmt"
	"slices"

	"github.com/candid-profiler/candid/internal/capture"
)

// Stats returns the counts so far.
func (e *Engine) Stats() capture.Stats {
	return capture.Stats{Samples: e.samples.Load(), Bytes: e.bytes.Load(), Lost: e.lost(), Ended: e.ended.Load()}
}

// Losses returns when samples were lost.
func (e *Engine) Losses() []capture.Loss {
	e.reading.Lock()
	defer e.reading.Unlock()
	return slices.Clone(e.pace.losses)
}

// lost returns how many samples could not be kept.
func (e *Engine) lost() uint64 {
	lost := e.malformed.Load() + e.dropped.Load()
	var perCPU []uint64
	if e.progs != nil && e.progs.coll.Maps["lost"].Lookup(uint32(0), &perCPU) == nil {
		for _, n := range perCPU {
			lost += n
		}
	}
	return lost
}

// ProgramCost returns how many samples the BPF programs copied, and how long the copied threads
// waited for that in total, in ns, without the interrupt around it.
func (e *Engine) ProgramCost() (copies, ns uint64, err error) {
	var perCPU []struct{ Copies, NS uint64 }
	if err := e.progs.coll.Maps["spending"].Lookup(uint32(0), &perCPU); err != nil {
		return 0, 0, fmt.Errorf("read what the BPF programs spent: %w", err)
	}
	for _, s := range perCPU {
		copies += s.Copies
		ns += s.NS
	}
	return copies, ns, nil
}
