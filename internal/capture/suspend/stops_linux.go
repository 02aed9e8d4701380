package suspend

import (
	"math/bits"
	"time"
)

// stopCounts counts how long threads were stopped, in steps of an eighth.
type stopCounts struct {
	n   [64 * 8]uint32
	max int64
}

func (c *stopCounts) add(ns int64) {
	ns = max(ns, 8)
	c.max = max(c.max, ns)
	top := bits.Len64(uint64(ns)) - 1
	c.n[top*8+int(ns>>(top-3)&7)]++
}

func (c *stopCounts) addAll(o *stopCounts) {
	for i, n := range o.n {
		c.n[i] += n
	}
	c.max = max(c.max, o.max)
}

// quantile returns the time that the share q of the stops did not exceed.
func (c *stopCounts) quantile(q float64) time.Duration {
	all := 0.0
	for _, n := range c.n {
		all += float64(n)
	}
	sum := 0.0
	for i, n := range c.n {
		if sum += float64(n); n > 0 && sum >= q*all {
			return time.Duration(int64(8+i%8+1) << (i / 8) >> 3)
		}
	}
	return 0
}

// Stops is what came of stopping threads.
type Stops struct {
	Count          uint64
	Median, P99    time.Duration // time that a thread was stopped, from its stop to its release
	Max            time.Duration
	Raced          uint64 // left alone: they ran again just before they would have been interrupted
	Refused        uint64 // the kernel did not let candid trace them: a debugger did, or they were ending
	BrokenCalls    uint64 // system calls that returned EINTR because of a stop
	MendedCalls    uint64 // system calls that would have done so, and go on instead
	Asleep         uint64 // samples of threads that fell asleep just before they would have been stopped
	Unsure         uint64 // stopped in a call, but maybe elsewhere when the sample was due: no sample
	Stuck          uint64 // threads that did not stop, and were let go
	Unfollowed     uint64 // threads for which there was no descriptor
	OutOfReach     uint64 // looks at running threads on CPUs where candid may not run
	SamplingMissed uint64 // periods in which the sampling threads got no CPU
}
