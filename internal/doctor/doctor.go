package doctor

import "github.com/candid-profiler/candid/internal/capture"

// Options say what to look at.
type Options struct {
	PID     int     // a process to look at as a target; 0: none
	Hz      float64 // the rate that `record` has unless told otherwise
	Version string  // of candid
}

// ErrUnsupported is wrapped by the error on systems that cannot be looked at.
var ErrUnsupported = capture.ErrUnsupported
