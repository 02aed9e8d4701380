package suspend

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readBytes is the buffer size for one /proc/PID/task/TID/status, the longest of the files: some
// sixty lines, of which those with lists of CPUs may be long.
const readBytes = 8192

// reader reads small files of /proc repeatedly without allocating.
type reader struct{ buf [readBytes]byte }

// read reads a descriptor's file from its beginning. It uses raw system calls, because these files
// never block and there may be thousands to read.
func (r *reader) read(fd int) []byte {
	if fd < 0 {
		return nil
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&r.buf[0])), readBytes, 0, 0, 0)
	if errno != 0 || n > readBytes {
		return nil
	}
	return r.buf[:n]
}

// account is what the kernel has counted for a thread: /proc/PID/task/TID/schedstat.
type account struct {
	run   uint64 // ns on a CPU, up to the last time that the scheduler accounted it
	turns uint64 // how often it was given a CPU
}

func (r *reader) account(fd int) (a account, ok bool) {
	a, _, ok = parseAccount(r.read(fd))
	return a, ok
}

// accountAndDelay also returns how long the thread has waited for a CPU, in ns. That may grow
// although the thread has not run.
func (r *reader) accountAndDelay(fd int) (a account, delay uint64, ok bool) {
	return parseAccount(r.read(fd))
}

// parseAccount reads "run delay turns".
func parseAccount(b []byte) (a account, delay uint64, ok bool) {
	var ok1, ok2 bool
	a.run, b, ok1 = number(b)
	delay, b, _ = number(b)
	a.turns, _, ok2 = number(b)
	return a, delay, ok1 && ok2
}

// status holds the fields of /proc/PID/task/TID/stat that are used.
type status struct {
	state      byte
	cpu        int    // where it runs, ran or waits to run
	startCode  uint64 // 0 if candid may not know it
	startStack uint64 // where exec put the argument count; 0 if candid may not know it
	started    uint64 // clock ticks after boot
	system     uint64 // clock ticks that it ran in the kernel
}

func (r *reader) status(fd int) (s status, ok bool) { return parseStatus(r.read(fd)) }

// Fields of stat (proc(5)); the second is a name that may contain anything.
const (
	fieldState      = 3
	fieldSystem     = 15
	fieldStarted    = 22
	fieldStartCode  = 26
	fieldStartStack = 28
	fieldCPU        = 39
)

func parseStatus(b []byte) (s status, ok bool) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 || len(b) < end+4 {
		return s, false
	}
	s.state = b[end+2]
	b = b[end+3:]
	for field := fieldState + 1; field <= fieldCPU; field++ {
		var n uint64
		if len(b) > 1 && b[1] == '-' {
			b = b[1:]
		}
		if n, b, ok = number(b); !ok {
			return s, false
		}
		switch field {
		case fieldSystem:
			s.system = n
		case fieldStarted:
			s.started = n
		case fieldStartCode:
			s.startCode = n
		case fieldStartStack:
			s.startStack = n
		case fieldCPU:
			s.cpu = int(n & 0xffff)
		}
	}
	return s, true
}

// number parses a decimal number at the front of b, after one blank or minus.
func number(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	if len(b) > 0 && (b[0] == ' ' || b[0] == '-') {
		i = 1
	}
	first := i
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	return n, b[i:], i > first
}

// parseParent returns the fourth field of stat, 0 if there is none.
func parseParent(b []byte) uint64 {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 || len(b) < end+4 {
		return 0
	}
	n, _, _ := number(b[end+3:])
	return n
}

var voluntaryKey = []byte("\nvoluntary_ctxt_switches:\t")

// parseVoluntary returns how often a thread has given up the CPU by itself, mostly to wait in a
// call: /proc/PID/task/TID/status.
func parseVoluntary(b []byte) (n uint64, ok bool) {
	at := bytes.LastIndex(b, voluntaryKey)
	if at < 0 {
		return 0, false
	}
	n, _, ok = number(b[at+len(voluntaryKey):])
	return n, ok
}

var startKey = []byte("\nse.exec_start")

// parseStart returns when the scheduler last accounted a thread's time, in ns on the scheduler's
// clock: a line of /proc/PID/task/TID/sched, in ms with six decimals. The file exists with
// CONFIG_SCHED_DEBUG, and in Linux 6.15 and later.
func parseStart(b []byte) (ns uint64, ok bool) {
	at := bytes.Index(b, startKey)
	if at < 0 {
		return 0, false
	}
	b = b[at+len(startKey):]
	for len(b) > 0 && (b[0] == ' ' || b[0] == ':') {
		b = b[1:]
	}
	ms, b, ok := number(b)
	if !ok || len(b) < 7 || b[0] != '.' {
		return 0, false
	}
	rest, b, ok := number(b[1:7])
	return ms*1e6 + rest, ok && len(b) == 0
}
