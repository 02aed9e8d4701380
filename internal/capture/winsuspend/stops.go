package winsuspend

import (
	"math/bits"
	"sync"
	"time"
)

// stopTimes counts for how long threads were suspended, in steps of an eighth of a power of two.
type stopTimes struct {
	mu   sync.Mutex
	n    uint64
	most uint64
	bins [64 * 8]uint64
}

func binOf(ns uint64) int {
	if ns < 8 {
		return int(ns)
	}
	b := bits.Len64(ns) - 1
	return b*8 + int(ns>>(b-3)&7)
}

// upTo returns the end of a bin in ns.
func upTo(bin int) time.Duration {
	if bin < 24 {
		return time.Duration(bin)
	}
	return time.Duration(uint64(8+bin%8+1) << (bin/8 - 3))
}

func (s *stopTimes) add(ns uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.most = max(s.most, ns)
	s.bins[binOf(ns)]++
}

// read returns how often threads were suspended, and how long: the median, 99 %, and the longest.
func (s *stopTimes) read() (n uint64, median, p99, most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := func(share float64) time.Duration {
		left := uint64(share * float64(s.n))
		for i, c := range s.bins {
			if c > left {
				return min(upTo(i), time.Duration(s.most))
			}
			left -= c
		}
		return time.Duration(s.most)
	}
	return s.n, at(0.5).Round(100 * time.Nanosecond), at(0.99).Round(100 * time.Nanosecond), time.Duration(s.most).Round(100 * time.Nanosecond)
}

// slowdown decides how much slower than requested candid samples, so that stops take no more than a
// share of the time of the threads that are sampled.
type slowdown struct {
	factor float64
	share  float64 // of a thread's time, lately
	ticks  int
}

const (
	mostShare  = 0.05 // of a sampled thread's time that it may stand
	slowTicks  = 50   // between two changes
	mostFactor = 100
)

// count takes what one tick cost: ns that threads stood in all, how many of them, and the time since
// the last tick. It reports whether the rate has changed.
func (s *slowdown) count(stood, threads, elapsed uint64) bool {
	if threads == 0 || elapsed == 0 {
		return false
	}
	share := float64(stood) / float64(threads) / float64(elapsed)
	s.share += (min(share, 1) - s.share) / slowTicks
	if s.ticks++; s.ticks < slowTicks {
		return false
	}
	before := s.factor
	switch {
	case s.share > mostShare:
		s.factor = min(s.factor*max(1.25, min(s.share/mostShare, 4)), mostFactor)
	case s.share < mostShare/3 && s.factor > 1:
		s.factor = max(s.factor/1.5, 1)
	}
	s.ticks = 0
	return int(before+0.5) != int(s.factor+0.5)
}
