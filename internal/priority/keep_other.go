//go:build !linux

package priority

import (
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
)

// Keep does nothing: crowds are measured on Linux only.
func Keep(func(Report)) (stop func()) { return func() {} }

// Child does nothing: Keep has not changed any level.
func Child(int) {}

// Runnable returns an error: the number is not known here.
func Runnable() (threads, cpus int, err error) {
	return 0, 0, fmt.Errorf("count runnable threads: %w: Linux only", capture.ErrUnsupported)
}
