package winsuspend

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// supported says that there is no code here that stops a thread of arm64.
func supported() error {
	return fmt.Errorf("suspend threads: %w: on Windows candid records programs for x86-64 only", capture.ErrUnsupported)
}

const largestStack = 8 << 20

type stopper struct{}

type taken struct {
	time  uint64
	regs  cpu.Registers
	addr  uint64
	stack []byte
	top   uint64
	flags capture.Flags
	stood uint64

	other              []byte
	otherAddr, otherPC uint64
}

type verdict uint8

const (
	copied verdict = iota
	refused
	elsewhere
	unread
	void
)

func newStopper(int, bool) *stopper { return &stopper{} }

func (*stopper) close() {}

func (*stopper) stop(*thread, *watchman, *taken) verdict { return refused }

func cyclesNS(n uint64) uint64 { return n }
