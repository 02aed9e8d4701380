package suspend

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/vmread"
)

// memory reads stacks, mostly of stopped threads, in a way that does not wait for anybody. A page
// that userfaultfd would have to provide is an error in /proc/PID/mem, while process_vm_readv waits
// for it. Pages of files are not read at all: a file system may have to be asked for them, which may
// be a program, even the target itself. It may be used by several goroutines.
type memory struct {
	fd     int // /proc/PID/mem; -1: it cannot be opened
	dir    int // /proc/PID, not owned
	avoid  vmread.Avoided
	looked int64 // ns, when the mappings were last read; used by one goroutine
}

// lookEvery is how often the mappings of a process are read for what its stacks should not be in,
// in ns.
const lookEvery = 1e9

func openMemory(dir int) memory {
	fd, err := unix.Openat(dir, "mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		fd = -1
	}
	return memory{fd: fd, dir: dir}
}

func (m *memory) close() {
	if m.fd >= 0 {
		_ = unix.Close(m.fd)
	}
	m.fd = -1
}

// look finds the mappings of files, and those that may not be read, which /proc/PID/mem would show
// nevertheless.
func (m *memory) look(p *target.Process, now int64) {
	if p == nil || m.looked != 0 && now-m.looked < lookEvery {
		return
	}
	m.looked = now
	maps, err := p.Mappings()
	if err != nil {
		return
	}
	var spans []vmread.Span
	for _, x := range maps {
		if x.Perm&target.PermRead == 0 || p.Served(x) {
			spans = append(spans, vmread.Span{Start: x.Start, End: x.End})
		}
	}
	m.avoid.Serve(spans)
}

// copy copies from a thread's memory: the stack, and one word besides. It returns how many bytes of
// the stack could be read; the word is 0 if it or a part of the stack is absent. All system calls
// are raw: a stopped thread must not have to wait for Go's scheduler.
func (m *memory) copy(tid int, to []byte, from, wordAt uint64) (n int, word uint64) {
	n = m.part(tid, to[:m.avoid.Until(from, len(to))], from)
	if n < len(to) || wordAt == 0 || m.avoid.Has(wordAt, 8) {
		return n, 0
	}
	var w [8]byte
	if m.part(tid, w[:], wordAt) == 8 {
		word = *(*uint64)(unsafe.Pointer(&w))
	}
	return n, word
}

// part reads as much as it can.
func (m *memory) part(tid int, to []byte, from uint64) int {
	if len(to) == 0 {
		return 0
	}
	if m.fd < 0 {
		return m.direct(tid, to, from)
	}
	for again := false; ; again = true {
		got, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(m.fd), uintptr(unsafe.Pointer(&to[0])), uintptr(len(to)), uintptr(from), 0, 0)
		if errno != 0 {
			return 0
		}
		if got > 0 || again {
			return int(got)
		}
		// The file shows the memory of the program that ran when it was opened, and another one has
		// been executed since.
		fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(m.dir), uintptr(unsafe.Pointer(&memName[0])), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			return 0
		}
		_, _, errno = unix.RawSyscall(unix.SYS_DUP3, fd, uintptr(m.fd), unix.O_CLOEXEC)
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		if errno != 0 {
			return 0
		}
		renewed.Add(1)
	}
}

// memName is the name of the file, as the kernel takes it.
var memName = [...]byte{'m', 'e', 'm', 0}

// renewed counts how often the file was opened again, for tests.
var renewed atomic.Int64

// direct reads by process_vm_readv, for systems where /proc/PID/mem is forbidden.
func (m *memory) direct(tid int, to []byte, from uint64) int {
	local := unix.Iovec{Base: &to[0], Len: uint64(len(to))}
	remote := unix.RemoteIovec{Base: uintptr(from), Len: len(to)}
	got, _, errno := unix.RawSyscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&remote)), 1, 0)
	if errno != 0 {
		return 0
	}
	return int(got)
}
