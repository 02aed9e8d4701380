package engines

import (
	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
)

func Names() []string { return []string{"bpf"} }

func Open(o capture.Options, choice string) (capture.Engine, error) {
	return bpfcopy.Open(o, 0)
}
