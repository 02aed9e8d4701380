//go:build !linux

package perfevent

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
)

// Scope is where the engine opens its events.
type Scope uint8

// Values of Scope.
const (
	Machine Scope = iota
	Threads
)

// OpenEngine fails: perf events exist on Linux only.
func OpenEngine(capture.Options, Scope, string) (capture.Engine, error) {
	return nil, fmt.Errorf("sample with perf events: %w: they are Linux's", capture.ErrUnsupported)
}

// TracingMounted returns true: only Linux has files that might have to be mounted.
func TracingMounted() bool { return true }

// Paranoid returns "unknown": only Linux has kernel.perf_event_paranoid.
func Paranoid() string { return "unknown" }
