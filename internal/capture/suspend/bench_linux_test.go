package suspend

import (
	"testing"
	"time"
)

// BenchmarkStops reports how long threads stand still and how many samples a
// second there are, of a program that uses every CPU, at the highest rate.
func BenchmarkStops(b *testing.B) {
	p := start(b, compile(b, "signals"))
	e := open(b, options(20000, p.pid()))
	for b.Loop() {
		c := newCounter()
		begin := time.Now()
		record(b, e, c, 2*time.Second)
		b.ReportMetric(float64(c.samples)/time.Since(begin).Seconds(), "samples/s")
	}
	s := e.Stops()
	b.ReportMetric(float64(s.Median)/1e3, "median-us")
	b.ReportMetric(float64(s.P99)/1e3, "p99-us")
	b.ReportMetric(float64(s.Max)/1e3, "max-us")
	b.ReportMetric(float64(s.BrokenCalls), "broken")
}
