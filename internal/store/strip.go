package store

import "time"

// Strip is what was used over time.
type Strip struct {
	CPU     []time.Duration // by part of the range of time
	Samples []uint64        // of the events that CPU is the sum of
	Stored  []bool          // whether anything is stored of the part
}

// Strip divides a range of time into n parts and returns what a service used in each; "" is all
// services.
func (r *Reader) Strip(from, to time.Time, service string, n int) (*Strip, error) {
	from, to = bounded(from), bounded(to)
	out := &Strip{CPU: make([]time.Duration, n), Samples: make([]uint64, n), Stored: make([]bool, n)}
	begin, length := from.UnixNano(), to.Sub(from)
	if n <= 0 || length <= 0 {
		return out, nil
	}
	part := func(ns int64) int { return min(max(int(float64(ns-begin)/float64(length)*float64(n)), 0), n-1) }
	var seg *opened
	var wanted map[uint32]bool // by thread
	err := r.blocks(from, to, service, nil, func(s *opened, k *block) error {
		if seg != s {
			seg, wanted = s, map[uint32]bool{}
		}
		for i := part(max(k.header.from, begin)); i <= part(min(k.header.to, to.UnixNano())-1); i++ {
			out.Stored[i] = true
		}
		cpu := k.cpuKinds()
		wants := func(thread uint32) bool {
			is, ok := wanted[thread]
			if !ok {
				is = service == "" || s.text(s.process(thread).service) == service
				wanted[thread] = is
			}
			return is
		}
		return k.each(wants, func(e *entry, times []uint32) {
			if !cpu[e.kind] {
				return
			}
			for i, t := range times {
				if at := k.header.from + int64(t)*int64(quantum); at >= begin && at < to.UnixNano() {
					out.CPU[part(at)] += time.Duration(e.share(i))
					out.Samples[part(at)]++
				}
			}
		})
	})
	return out, err
}

// cpuKinds reports which kinds are of events that measure time on a CPU.
func (k *block) cpuKinds() []bool {
	cpu := make([]bool, len(k.kinds))
	for i, kd := range k.kinds {
		e := &k.events[kd.event]
		cpu[i] = e.kind.CPUTime() && e.unit == unitNanoseconds
	}
	return cpu
}
