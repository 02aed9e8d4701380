package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/suspend"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// walker walks what is sampled, as a recording does: what that takes of the machine's
// caches is part of what a sample costs.
type walker struct {
	p     *attach.Process
	stack walk.Stack
}

func (w *walker) Sample(s *capture.Snapshot) { w.p.Walker.Walk(s, w.p.Target.Memory(), &w.stack) }
func (w *walker) Notice(capture.Notice)      {}
func (w *walker) BatchEnd() {
	w.p.Target.Memory().Invalidate()
	if w.p.VM != nil {
		w.p.VM.BeginBatch()
	}
}

const (
	// costLine is how often the program says what it has done.
	costLine = 50 * time.Millisecond
	// costLines is how many of its lines each half of a pair takes; the one in which
	// the engine starts or ends belongs to neither.
	costLines = 2
)

// steadyLine is what the steady program did in a while.
type steadyLine struct{ units, cpu float64 }

// suspendCost measures what a sample of the suspend engine costs the program: the CPU
// time that a unit of its work takes with the engine and without, in turn, a tenth of a
// second each. Machines change their speed by some percent within seconds, which
// is more than what is looked for; in hundreds of short pairs that falls out.
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
	// At 99 Hz itself too, for not all that it costs need be in proportion to the samples.
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

// pairResult is what pairs gave, one element each.
type pairResult struct {
	perSample []float64 // µs
	share     []float64 // % more than without
	rate      float64   // samples a second
}

func (b *bench) suspendPairs(hz float64, pairs int) (*pairResult, error) {
	cp, err := b.compile("17", "Steady.java")
	if err != nil {
		return nil, err
	}
	p, err := start("", b.java("17"), "-cp", cp, "Steady", "3600", "200", fmt.Sprint(costLine.Milliseconds()))
	if err != nil {
		return nil, err
	}
	defer p.stop()
	next := func() (l steadyLine, err error) {
		for p.out.Scan() {
			if n, _ := fmt.Sscanf(p.out.Text(), "%g %g", &l.units, &l.cpu); n == 2 && l.units > 0 {
				return l, nil
			}
		}
		return l, fmt.Errorf("the program ended")
	}
	// half gives a while's work, after the line that is going on, and calls begin then.
	half := func(begin func()) (sum steadyLine, err error) {
		for i := range 1 + costLines {
			l, err := next()
			if err != nil {
				return sum, err
			}
			if i == 0 {
				begin()
				continue
			}
			sum.units, sum.cpu = sum.units+l.units, sum.cpu+l.cpu
		}
		return sum, nil
	}
	for range 60 { // it warms up
		if _, err := next(); err != nil {
			return nil, err
		}
	}
	a, err := attach.Open(p.pid(), native.NewFiles())
	if err != nil {
		return nil, err
	}
	defer a.Close()
	period, _, _ := capture.ChooseRate(hz)
	e, err := suspend.Open(capture.Options{PIDs: []int{p.pid()}, Period: period, Events: []capture.Event{{Name: "cpu"}}}, "")
	if err != nil {
		return nil, err
	}
	defer e.Close()
	sink := &walker{p: a}
	// with is half with the engine, and the stops that there were.
	with := func() (sum steadyLine, stops uint64, err error) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx, sink) }()
		before := uint64(0)
		sum, err = half(func() { before = e.Stops().Count })
		stops = e.Stops().Count - before
		cancel()
		if ended := <-done; err == nil {
			err = ended
		}
		return sum, stops, err
	}
	out := &pairResult{}
	took, all := 0.0, 0.0
	before, err := half(func() {})
	for i := 0; i < pairs && err == nil; i++ {
		var mid, after steadyLine
		var stops uint64
		if mid, stops, err = with(); err != nil {
			break
		}
		if after, err = half(func() {}); err != nil {
			break
		}
		// As much work would have taken so long at the speed of before and after.
		would := mid.units * (before.cpu/before.units + after.cpu/after.units) / 2
		out.share = append(out.share, 100*(mid.cpu/would-1))
		if stops > 0 {
			out.perSample = append(out.perSample, (mid.cpu-would)/float64(stops)/1e3)
		}
		took, all = took+mid.cpu, all+float64(stops)
		before = after
	}
	if err == nil && len(out.perSample) == 0 {
		err = fmt.Errorf("no sample was taken")
	}
	out.rate = 1e9 * all / took
	return out, err
}

// medianRange gives the median of many measurements, and between which of them it
// lies with 95 % by their order alone.
func medianRange(v []float64) (median, least, most float64) {
	median, _, _ = spread(v)
	v = slices.Sorted(slices.Values(v))
	n := float64(len(v))
	off := 1.96 * math.Sqrt(n) / 2
	at := func(i float64) float64 { return v[int(min(max(i, 0), n-1))] }
	return median, at(math.Floor(n/2 - off)), at(math.Ceil(n/2+off) - 1)
}
