package engines

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/winsuspend"
)

// ladder lists every engine, best first.
var ladder = []rung{
	{"suspend", func(opts capture.Options, why string) (capture.Engine, error) {
		return engine(winsuspend.Open(opts, why))
	}},
}
