package winsuspend

import (
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/winsys"
)

// cyclesPerNS is how fast the time stamp counter runs. It is measured against the performance
// counter, for some milliseconds: the shortest of a few readings on both sides is not disturbed.
var cyclesPerNS = sync.OnceValue(func() float64 {
	read := func() (ns, tsc uint64) {
		best := ^uint64(0)
		for range 16 {
			before := cycles()
			now := winsys.Clock()
			if after := cycles(); after-before < best {
				best, ns, tsc = after-before, now, before+(after-before)/2
			}
		}
		return ns, tsc
	}
	ns0, tsc0 := read()
	time.Sleep(10 * time.Millisecond)
	ns1, tsc1 := read()
	if ns1 <= ns0 || tsc1 <= tsc0 {
		return 1
	}
	return float64(tsc1-tsc0) / float64(ns1-ns0)
})

// cyclesNS converts cycles of the time stamp counter to ns.
func cyclesNS(n uint64) uint64 { return uint64(float64(n) / cyclesPerNS()) }
