//go:build linux || windows

package dump

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/runtimes"
)

// async looks for pending asynchronous methods, if they were asked for.
func (p *process) async(out *Process, o *Options) {
	if o.Async == nil {
		return
	}
	r, ok := runtimes.Ability[runtimes.AsyncReader](p.Runtimes)
	if !ok {
		out.Notes = append(out.Notes, "asynchronous methods are looked for in programs of .NET 9 and 10 only")
		return
	}
	p.fresh()
	a, err := r.PendingAsync(*o.Async)
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("asynchronous methods are not shown: %v", err))
		return
	}
	out.Async = asyncOf(a)
}
