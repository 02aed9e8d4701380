package main

import (
	"context"
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/suspend"
	"github.com/candid-profiler/candid/internal/hostinfo"
)

// nothing accepts samples and does nothing with them.
type nothing struct{ samples int }

func (n *nothing) Sample(*capture.Snapshot)    { n.samples++ }
func (n *nothing) Notice(capture.ProcessEvent) {}
func (n *nothing) BatchEnd()                   {}

// stops measures for how long the suspend engine stops a thread, and how many samples one core
// could take: one second divided by the CPU time of a sample.
func (b *bench) stops() {
	r := row{Section: "suspend", Unit: "µs", Bar: "≤ 30 µs", What: "a running thread stands still, median, 200 frames deep"}
	rate := row{Section: "suspend", Unit: "1/s", Bar: "≥ 2,000", What: "samples that one core can take by suspending, 200 frames deep"}
	stops, perSecond, err := b.measureStops()
	if err != nil {
		r.Failed, rate.Failed = err.Error(), err.Error()
	}
	r.Value = float64(stops.Median) / 1e3
	r.Note = fmt.Sprintf("%d stops; 99th percentile %.0f µs, longest %.1f ms, where the CPU was another's in between", stops.Count, float64(stops.P99)/1e3, float64(stops.Max)/1e6)
	rate.Value = perSecond
	b.add(r)
	b.add(rate)
}

func (b *bench) measureStops() (suspend.Stops, float64, error) {
	cp, err := b.compile("17", "Steady.java")
	if err != nil {
		return suspend.Stops{}, 0, err
	}
	p, err := start("", b.java("17"), "-cp", cp, "Steady", "3600", "200")
	if err != nil {
		return suspend.Stops{}, 0, err
	}
	defer p.stop()
	time.Sleep(3 * time.Second)
	e, err := suspend.Open(capture.Options{PIDs: []int{p.pid()}, Period: 200 * time.Microsecond, Events: []capture.Event{{Name: "cpu"}}}, "")
	if err != nil {
		return suspend.Stops{}, 0, err
	}
	defer e.Close()
	before := hostinfo.OwnCPU()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(b.seconds(10))*time.Second)
	defer cancel()
	var n nothing
	if err := e.Run(ctx, &n); err != nil {
		return suspend.Stops{}, 0, err
	}
	used := hostinfo.OwnCPU() - before
	return e.Stops(), float64(n.samples) / used.Seconds(), nil
}
