package dotnet

import (
	"fmt"
	"time"

	"github.com/candid-profiler/candid/internal/clrgc"
	"github.com/candid-profiler/candid/internal/coreclr"
	"github.com/candid-profiler/candid/internal/runtimes"
)

var _ runtimes.AsyncReader = (*instance)(nil)

// PendingAsync implements runtimes.AsyncReader. The collector's own functions tell whether it has run while
// the heap was read.
func (i *instance) PendingAsync(l runtimes.AsyncLimits) (*runtimes.Async, error) {
	begin := time.Now()
	heap := i.GCHeap()
	if heap == 0 {
		return nil, fmt.Errorf("CoreCLR %s has no heap yet: %w", i.Version(), coreclr.ErrHeap)
	}
	gc, err := clrgc.Open(&fileCode{process: i.process, native: i.native}, heap, i.observer.calls)
	if err != nil {
		return nil, fmt.Errorf("CoreCLR %s: %w: %w", i.Version(), err, coreclr.ErrHeap)
	}
	a, err := i.VM.PendingAsync(coreclr.AsyncOptions{Time: l.Time, Bytes: l.Bytes, Stopped: l.Stopped, Quiet: gc.Quiet})
	if err != nil {
		return nil, err
	}
	out := &runtimes.Async{Pending: a.Pending, Missing: a.Missing, Heap: a.Heap, Read: a.Read, Nodes: make([]runtimes.AsyncNode, len(a.Nodes))}
	for n := range a.Nodes {
		out.Nodes[n] = runtimes.AsyncNode(a.Nodes[n])
	}
	out.Took = time.Since(begin)
	return out, nil
}
