// Package hostinfo tells what the machine is, how busy it is, what memory a process on it
// has and what CPU time this one has used, from what the operating system shows to all.
package hostinfo

import "errors"

// ErrUnsupported is wrapped by the errors for what this system does not show, or
// candid does not read there.
var ErrUnsupported = errors.New("not supported on this system")

// Info is what does not change.
type Info struct {
	OS      string // name and version, and the kernel's
	CPU     string // its model
	CPUs    string // more of it, in words
	Virtual string // what it is if it is a virtual machine, or that it is none; "": not known
	Sockets int
	Cores   int
	Threads int // that run at once: logical CPUs
}

// Load is how much was used of the machine's CPUs since it began, in
// target.CPUTicks's ticks, and its memory now.
type Load struct {
	Busy, All          uint64 // of all CPUs
	Memory, MemoryUsed uint64 // bytes
}

// Interface is how much went through a network interface since it came, in bytes.
type Interface struct {
	Name           string
	Received, Sent uint64
}
