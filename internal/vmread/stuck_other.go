//go:build !linux

package vmread

import "time"

// EndBy does nothing: on this system no call has to be given up.
func EndBy(time.Time) {}
