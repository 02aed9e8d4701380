package suspend

import (
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/hostinfo"
)

// BenchmarkStops reports how long threads are stopped, how many samples a second are taken of a
// program that uses every CPU, at the highest rate, and how many one core could take: one second
// divided by the CPU time of a sample.
func BenchmarkStops(b *testing.B) {
	p := start(b, compile(b, "signals"))
	e := open(b, options(20000, p.pid()))
	for b.Loop() {
		c := newCounter()
		begin, used := time.Now(), hostinfo.OwnCPU()
		record(b, e, c, 2*time.Second)
		b.ReportMetric(float64(c.samples)/time.Since(begin).Seconds(), "samples/s")
		b.ReportMetric(float64(c.samples)/(hostinfo.OwnCPU()-used).Seconds(), "samples/cpu-s")
	}
	s := e.Stops()
	b.ReportMetric(float64(s.Median)/1e3, "median-us")
	b.ReportMetric(float64(s.P99)/1e3, "p99-us")
	b.ReportMetric(float64(s.Max)/1e3, "max-us")
	b.ReportMetric(float64(s.BrokenCalls), "broken")
}

// BenchmarkIdleThreads reports how much of a CPU a thousand threads that do not run cost.
func BenchmarkIdleThreads(b *testing.B) {
	p := start(b, compile(b, "crowd"))
	e := open(b, wallOptions(20, p.pid()))
	record(b, e, newWallSink(), time.Second) // attaches to the threads
	for b.Loop() {
		const d = 3 * time.Second
		used := hostinfo.OwnCPU()
		record(b, e, newWallSink(), d)
		b.ReportMetric(100*(hostinfo.OwnCPU()-used).Seconds()/d.Seconds(), "%cpu")
	}
}
