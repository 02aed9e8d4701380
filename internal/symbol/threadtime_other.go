//go:build !linux

package symbol

import "time"

var began = time.Now()

// threadTime returns the time that has passed: an upper bound of the thread's CPU time.
func threadTime() time.Duration { return time.Since(began) }
