//go:build !linux

package bpfcopy

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// Variant is how the stack's bytes get into the ring buffer.
type Variant uint8

// Values of Variant.
const (
	Auto Variant = iota
	Exact
	Sized
)

// Open fails: BPF programs run on Linux only.
func Open(capture.Options, Variant) (capture.Engine, error) {
	return nil, fmt.Errorf("sample with BPF: %w: BPF programs run in Linux only", capture.ErrUnsupported)
}

// Waiters finds where a process's threads entered the kernel.
type Waiters struct{}

// Waiter is a thread that was in the kernel.
type Waiter struct {
	TID  uint32
	Call int
	Regs cpu.Registers
}

// OpenWaiters fails: BPF programs run on Linux only.
func OpenWaiters(int) (*Waiters, error) {
	return nil, fmt.Errorf("see where threads wait: %w: BPF programs run in Linux only", capture.ErrUnsupported)
}

// Each returns nil without calling f.
func (*Waiters) Each(func(Waiter)) error { return nil }
