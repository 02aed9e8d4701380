//go:build !linux

package perfevent

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
)

// Scope is which events the engine opens.
type Scope uint8

// The scopes.
const (
	Machine Scope = iota
	Threads
)

// OpenEngine fails: perf events are Linux's.
func OpenEngine(capture.Options, Scope, string) (capture.Engine, error) {
	return nil, fmt.Errorf("sample with perf events: %w: they are Linux's", capture.ErrUnsupported)
}

// Paranoid is "unknown": only Linux has kernel.perf_event_paranoid.
func Paranoid() string { return "unknown" }
