package doctor

import "github.com/candid-profiler/candid/internal/capture"

// Options say what to examine.
type Options struct {
	PID     int     // a process to examine as a target; 0: none
	Hz      float64 // the default rate of `record`
	Version string  // of candid
}

// ErrUnsupported is wrapped by the error on systems that cannot be examined.
var ErrUnsupported = capture.ErrUnsupported
