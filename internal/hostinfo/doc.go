// Package hostinfo reports what the machine is, how busy it is, how much memory a process on it
// uses and how much CPU time this process has used, from what the operating system shows to all
// users.
package hostinfo

import "errors"

// ErrUnsupported is wrapped by the errors for values that this system does not show, or that candid
// does not read there.
var ErrUnsupported = errors.New("not supported on this system")

// Info describes the machine; it does not change.
type Info struct {
	OS      string // name and version, and the kernel's
	CPU     string // the model
	CPUs    string // sockets, cores and the like, in words
	Virtual string // what kind of virtual machine it is, or that it is none; "": not known
	Sockets int
	Cores   int
	Threads int // logical CPUs
}

// Load is how much of the machine's CPUs was used since boot, in the ticks of target.CPUTicks, and
// its memory now.
type Load struct {
	Busy, All          uint64 // summed over all CPUs
	Memory, MemoryUsed uint64 // bytes
}

// Interface is how much was received and sent on a network interface since it appeared, in bytes.
type Interface struct {
	Name           string
	Received, Sent uint64
}
