package bpfcopy

import "testing"

// BenchmarkProgramCost reports the time that the BPF programs account to a copy.
func BenchmarkProgramCost(b *testing.B) {
	prog := startProg(b, compile(b, spinSource))
	for _, v := range variants {
		b.Run(v.String(), func(b *testing.B) {
			e := open(b, cpuOptions(2000, prog.Process.Pid), v)
			r := newRecorder()
			recordUntil(b, e, r, max(b.N, 400))
			copies, ns, err := e.ProgramCost()
			if err != nil || copies == 0 {
				b.Fatalf("%d copies accounted for: %v", copies, err)
			}
			b.ReportMetric(float64(ns)/float64(copies), "ns/copy")
			b.ReportMetric(float64(r.bytes)/float64(r.samples), "B/copy")
		})
	}
}
