//go:build !linux

package bpfcopy

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
)

// Variant is how the stack's bytes get into the ring buffer.
type Variant uint8

// The variants.
const (
	Auto Variant = iota
	Exact
	Sized
)

// Open fails: BPF programs run in Linux only.
func Open(capture.Options, Variant) (capture.Engine, error) {
	return nil, fmt.Errorf("sample with BPF: %w: BPF programs run in Linux only", capture.ErrUnsupported)
}
