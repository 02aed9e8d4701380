package main

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/candid-profiler/candid/internal/attach"
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/walk"
)

// walker walks the samples, as a recording does: the effect of that on the machine's caches is part
// of the cost of a sample.
type walker struct {
	p     *attach.Process
	stack walk.Stack
	count atomic.Uint64
}

func (w *walker) Sample(s *capture.Snapshot) {
	w.count.Add(1)
	w.p.Walker.Walk(s, w.p.Target.Memory(), &w.stack)
}
func (w *walker) Notice(capture.ProcessEvent) {}
func (w *walker) BatchEnd() {
	w.p.Target.Memory().Invalidate()
	w.p.BeginBatch()
}

const (
	// costLine is the interval at which the program prints what it has done.
	costLine = 50 * time.Millisecond
	// costLines is how many of its lines each half of a pair takes; the line during which the
	// engine starts or ends belongs to neither.
	costLines = 2
)

// steadyLine is what the steady program did between two lines.
type steadyLine struct{ units, cpu float64 }

// steady is a program that does the same work all the time and prints how much.
type steady struct {
	*program
	process *attach.Process // walks its samples
}

// options returns the options of an engine that samples the program.
func (s *steady) options(hz float64) capture.Options {
	period, _, _ := capture.ChooseRate(hz)
	return capture.Options{PIDs: []int{s.pid()}, Period: period, Events: []capture.Event{{Name: "cpu"}}}
}

func (s *steady) stop() {
	if s.process != nil {
		s.process.Close()
	}
	s.program.stop()
}

// steady starts the program, lets it warm up and attaches to it.
func (b *bench) steady() (*steady, error) {
	cp, err := b.compile("17", "Steady.java")
	if err != nil {
		return nil, err
	}
	p, err := start("", b.java("17"), "-cp", cp, "Steady", "3600", "200", fmt.Sprint(costLine.Milliseconds()))
	if err != nil {
		return nil, err
	}
	s := &steady{program: p}
	for i := 0; i < 60 && err == nil; i++ {
		_, err = s.next()
	}
	if err == nil {
		s.process, err = attach.Open(s.pid(), native.NewFiles())
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *steady) next() (l steadyLine, err error) {
	for s.out.Scan() {
		if n, _ := fmt.Sscanf(s.out.Text(), "%g %g", &l.units, &l.cpu); n == 2 && l.units > 0 {
			return l, nil
		}
	}
	return l, fmt.Errorf("the program ended")
}

// half calls begin after the current line and returns the work of one half from then on.
func (s *steady) half(begin func()) (sum steadyLine, err error) {
	for i := range 1 + costLines {
		l, err := s.next()
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

// pairResult is the result of all pairs, one element each.
type pairResult struct {
	perSample []float64 // µs
	share     []float64 // % more than without
	rate      float64   // samples per second
}

// pairUp measures the program's work with and without something, in turn. with also returns how
// many samples there were.
func pairUp(pairs int, with func() (steadyLine, uint64, error), without func() (steadyLine, error)) (*pairResult, error) {
	out := &pairResult{}
	took, all := 0.0, 0.0
	before, err := without()
	for i := 0; i < pairs && err == nil; i++ {
		var mid, after steadyLine
		var samples uint64
		if mid, samples, err = with(); err != nil {
			break
		}
		if after, err = without(); err != nil {
			break
		}
		// would is the time for the same work at the speed before and after.
		would := mid.units * (before.cpu/before.units + after.cpu/after.units) / 2
		out.share = append(out.share, 100*(mid.cpu/would-1))
		if samples > 0 {
			out.perSample = append(out.perSample, (mid.cpu-would)/float64(samples)/1e3)
		}
		took, all = took+mid.cpu, all+float64(samples)
		before = after
	}
	if err == nil && len(out.perSample) == 0 {
		err = fmt.Errorf("no sample was taken")
	}
	out.rate = 1e9 * all / took
	return out, err
}

// medianRange returns the median of many measurements, and the measurements between which it lies
// with 95 % confidence by their order alone.
func medianRange(v []float64) (median, least, most float64) {
	median, _, _ = spread(v)
	v = slices.Sorted(slices.Values(v))
	n := float64(len(v))
	off := 1.96 * math.Sqrt(n) / 2
	at := func(i float64) float64 { return v[int(min(max(i, 0), n-1))] }
	return median, at(math.Floor(n/2 - off)), at(math.Ceil(n/2+off) - 1)
}
