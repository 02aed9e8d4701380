//go:build !linux

package procsyscall

// Of returns false: only Linux shows where a thread waits.
func Of(int, int) (Place, bool) { return Place{}, false }
