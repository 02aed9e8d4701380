package bpfcopy

import (
	"fmt"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/capture"
)

// Software counters load in each variant: the kernel accepts the programs that see each hit.
func TestCountersLoad(t *testing.T) {
	for _, v := range variants {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			open(t, capture.Options{All: true, Period: 10 * time.Millisecond, Events: []capture.Event{{Name: "cs", Unit: "count", Kind: capture.Counter, Type: capture.TypeSoftware, Config: 3}}}, v)
		})
	}
}
