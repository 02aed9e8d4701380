package hotspot

import "errors"

// Errors of Open.
var (
	// ErrNotHotSpot: the process has no HotSpot Java VM in it.
	ErrNotHotSpot = errors.New("no HotSpot Java VM")
	// ErrNotReady: the Java VM is still starting; try again in some milliseconds.
	ErrNotReady = errors.New("the Java VM is still starting")
)
