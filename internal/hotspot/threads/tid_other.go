//go:build !linux

package threads

// innerTID returns tid: only Linux has pid namespaces.
func innerTID(pid, tid int) (uint32, bool) { return uint32(tid), true }
