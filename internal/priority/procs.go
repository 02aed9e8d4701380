package priority

import (
	"runtime"
	"sync"
)

// procs guards GOMAXPROCS between reading and setting it.
var procs sync.Mutex

// AddProcs lets that many more goroutines run at a time than otherwise, until remove is called: Go's
// scheduler gives no CPU to a goroutine while as many as there are CPUs run, even if the kernel has
// preempted them. It is the only one that changes GOMAXPROCS, which is of the whole process, so any
// number of its callers may overlap.
func AddProcs(n int) (remove func()) {
	change := func(by int) {
		procs.Lock()
		defer procs.Unlock()
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + by)
	}
	change(n)
	return sync.OnceFunc(func() { change(-n) })
}
