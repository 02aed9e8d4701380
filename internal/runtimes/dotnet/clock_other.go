//go:build !linux

package dotnet

// clockShift returns how many ns the engines' clock is ahead of the performance counter of Windows: on
// Windows it is the same.
func clockShift() int64 { return 0 }
