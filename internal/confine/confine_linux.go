//go:build amd64 || arm64

package confine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// files are the capabilities that reading and writing files takes that root may: those of other
// users, as with sudo candid report, and the addresses in /proc/kallsyms, for perf.data.
const files = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER | 1<<unix.CAP_SYSLOG

// The arguments of system calls that every thread makes: they must not move.
var (
	header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	caps   [2]unix.CapUserData
)

// Reader is for a process that from now on only reads and writes files and serves what it read: it
// gives up all capabilities that those do not take, for good, and every system call that looks at
// other processes, starts programs or changes the machine is refused from then on. What the kernel or
// a container does not permit is left out.
func Reader() {
	reduce(func(held uint64) uint64 { return held & files }, false)
	noNewPrivileges(func() { install(refusing(readerRefused)) })
}

// reduce gives up on all threads, for good, all capabilities but those that kept returns of the ones
// that are permitted. Unless passOn, programs that are started get none as ambient or inheritable ones,
// which is how those get any that another user than root starts. It must not be called while a thread is in a
// system call that may never return: each thread has to take part.
func reduce(kept func(held uint64) uint64, passOn bool) {
	if unix.Capget(&header, &caps[0]) != nil {
		return
	}
	keep := kept(uint64(caps[0].Permitted) | uint64(caps[1].Permitted)<<32)
	for i := range caps {
		keep := uint32(keep >> (32 * i))
		caps[i].Effective &= keep
		caps[i].Permitted &= keep
		if caps[i].Inheritable &= keep; !passOn {
			caps[i].Inheritable = 0
		}
	}
	// Permitted capabilities that are given up are no ambient ones any more (capabilities(7)).
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&caps[0])), 0)
}
