package main

import (
	"context"
	"fmt"

	"github.com/candid-profiler/candid/internal/capture/suspend"
)

// suspendCost measures what a sample of the suspend engine costs the program: the CPU time that a
// unit of its work takes with the engine and without, in turn, a tenth of a second each. Machines
// change their speed by some percent within seconds, which is more than the effect; over hundreds
// of short pairs that cancels out.
func (b *bench) suspendCost() {
	const hz = 2000
	each := row{Section: "suspend-cost", What: "target's CPU per sample of the suspend engine, 2 kHz, 200 frames deep", Unit: "µs"}
	share := row{Section: "suspend-cost", What: "target's CPU per unit of work, candid's suspend engine at 99 Hz", Unit: "% more", Bar: "≤ 1 %"}
	pairs := 600
	if b.quick {
		pairs = 150
	}
	fast, err := b.suspendPairs(hz, pairs)
	if err == nil {
		each.Value, each.Min, each.Max = medianRange(fast.perSample)
		each.Runs = len(fast.perSample)
		each.Note = fmt.Sprintf("in pairs, %.0f samples a second; the spread is where the median is with 95 %%", fast.rate)
	}
	// It is also measured at 99 Hz itself, because not all of the cost need be proportional to the
	// samples.
	var slow *pairResult
	if err == nil {
		slow, err = b.suspendPairs(99, pairs)
	}
	if err == nil {
		share.Value, share.Min, share.Max = medianRange(slow.share)
		share.Runs = len(slow.share)
		share.Note = fmt.Sprintf("the spread is where the median is with 95 %%; 99 samples cost %.2f %%", 99*each.Value/1e4)
	}
	if err != nil {
		each.Failed, share.Failed = err.Error(), err.Error()
	}
	b.add(each)
	b.add(share)
}

func (b *bench) suspendPairs(hz float64, pairs int) (*pairResult, error) {
	p, err := b.steady()
	if err != nil {
		return nil, err
	}
	defer p.stop()
	e, err := suspend.Open(p.options(hz), "")
	if err != nil {
		return nil, err
	}
	defer e.Close()
	sink := &walker{p: p.process}
	// with is half with the engine, and returns the number of stops.
	with := func() (sum steadyLine, stops uint64, err error) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, sink) }()
		before := uint64(0)
		sum, err = p.half(func() { before = e.Stops().Count })
		stops = e.Stops().Count - before
		cancel()
		if ended := <-done; err == nil {
			err = ended
		}
		return sum, stops, err
	}
	return pairUp(pairs, with, func() (steadyLine, error) { return p.half(func() {}) })
}
