package vmstructs

import "errors"

// Errors of Open and OpenReader.
var (
	// ErrNotHotSpot is returned if the process has no HotSpot Java VM in it.
	ErrNotHotSpot = errors.New("no HotSpot Java VM")
	// ErrNotReady is returned if the Java VM is still starting; try again in some milliseconds.
	ErrNotReady = errors.New("the Java VM is still starting")
)
