// Package supported is the table of the runtimes whose code candid steps over and names.
package supported

import (
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/runtimes/dotnet"
	"github.com/candid-profiler/candid/internal/runtimes/java"
	"github.com/candid-profiler/candid/internal/runtimes/javascript"
	"github.com/candid-profiler/candid/internal/runtimes/nativeimage"
	"github.com/candid-profiler/candid/internal/runtimes/wine"
)

// Runtimes are all of them, in the order in which a walker asks them for a frame.
var Runtimes = []*runtimes.Runtime{
	&java.Runtime,
	&javascript.Runtime,
	&dotnet.Runtime,
	&wine.Runtime,
	&nativeimage.Runtime,
}

// Of returns the runtime of a kind, nil if the table has none.
func Of(k runtimes.Kind) *runtimes.Runtime {
	for _, r := range Runtimes {
		if r.Kind == k {
			return r
		}
	}
	return nil
}
