package profile

import "testing"

// A thread with few samples that weigh as much as it ran agrees; one whose samples weigh less than
// it ran does not.
func TestFewHeavySamplesAgree(t *testing.T) {
	for _, c := range []struct {
		weight    uint64 // ns, of each of the second thread's ten samples
		disagrees bool
	}{{10e6, false}, {1e6, true}} {
		b := NewBuilder()
		one, two := b.Thread(1, 1, "one"), b.Thread(1, 2, "two")
		for range 100 {
			b.Add(Sample{Thread: one, Weight: 1e6})
		}
		for range 10 {
			b.Add(Sample{Thread: two, Weight: c.weight})
		}
		p := b.Finish()
		p.Events = []Event{{Name: "cpu", Kind: EventCPU, Unit: "nanoseconds", Period: 1e6}}
		for i := range p.Threads {
			p.Threads[i].KernelCPU = 100e6
		}
		for _, row := range p.ByThread(Filter{}) {
			if row.Disagrees != c.disagrees {
				t.Errorf("samples of %d ns: thread %d disagrees is %v, with %d samples where %.0f were expected", c.weight, row.Thread, row.Disagrees, row.Samples.Samples, row.Expected)
			}
		}
	}
}
