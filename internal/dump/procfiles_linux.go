package dump

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/procsyscall"
	"github.com/candid-profiler/candid/internal/kallsyms"
)

// taskFiles reads the small files of a process's threads. It is used from one goroutine.
type taskFiles struct {
	dir  int // /proc/PID/task; tied to the process, even if its number is reused
	path [64]byte
	buf  [16 << 10]byte
}

func openTasks(pid int) (*taskFiles, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &taskFiles{dir: fd}, nil
}

func (f *taskFiles) close() { _ = unix.Close(f.dir) }

// These are raw system calls: the files never block, and there are thousands of them, and notifying
// Go's scheduler would take longer than each read.

// open opens a file of a thread; -1 if that fails.
func (f *taskFiles) open(tid int, name string) int {
	path := append(append(strconv.AppendInt(f.path[:0], int64(tid), 10), '/'), name...)
	path = append(path, 0)
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(f.dir), uintptr(unsafe.Pointer(&path[0])), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return -1
	}
	return int(fd)
}

// from reads an open file from its beginning. The result is valid until the next call; nil if it
// cannot be read.
func (f *taskFiles) from(fd int) []byte {
	if fd < 0 {
		return nil
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&f.buf[0])), uintptr(len(f.buf)), 0, 0, 0)
	if errno != 0 || n > uintptr(len(f.buf)) {
		return nil
	}
	return f.buf[:n]
}

func (f *taskFiles) shut(fd int) {
	if fd >= 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	}
}

// read returns a file of a thread, valid until the next call; nil if it cannot be
// read.
func (f *taskFiles) read(tid int, name string) []byte {
	fd := f.open(tid, name)
	b := f.from(fd)
	f.shut(fd)
	return b
}

// maxThreads bounds how many threads of a process are read.
const maxThreads = 1 << 17

// tids lists the threads, sorted.
func (f *taskFiles) tids() ([]int, error) {
	// A descriptor of its own, because reading moves its position.
	fd, err := unix.Openat(f.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(fd), "task")
	defer d.Close()
	names, err := d.Readdirnames(maxThreads)
	if err != nil && len(names) == 0 {
		return nil, err
	}
	tids := make([]int, 0, len(names))
	for _, n := range names {
		if tid, err := strconv.Atoi(n); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids, nil
}

// parseStat parses the name and the state in a thread's stat. The name is in parentheses and may
// itself contain some.
func parseStat(b []byte) (name string, state byte, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || len(b) < end+3 {
		return "", 0, false
	}
	return string(b[open+1 : end]), b[end+2], true
}

// callName returns the system call that a thread sleeps in, "" if it is in none.
func callName(pl procsyscall.Place) string {
	if pl.Call == procsyscall.NoCall {
		return ""
	}
	return kallsyms.SyscallName(pl.Call)
}

// parseRun parses the time that a thread has run, in ns, in its schedstat, and how often it was
// scheduled; 0 if the kernel does not count.
func parseRun(b []byte) (ns, turns uint64) {
	number := func() (n uint64) {
		i := 0
		for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
			n = n*10 + uint64(b[i]-'0')
		}
		b = b[min(i+1, len(b)):]
		return n
	}
	ns = number()
	number() // how long it waited for a CPU
	return ns, number()
}

const maxKernelFrames = 64

// parseKernelStack parses the functions in a thread's kernel stack, innermost first: lines like
// "[<0>] futex_wait_queue+0x63/0x90 [module]".
func parseKernelStack(b []byte) []Frame {
	var out []Frame
	for line := range bytes.Lines(b) {
		_, rest, ok := strings.Cut(strings.TrimSpace(string(line)), "] ")
		if !ok || len(out) == maxKernelFrames {
			continue
		}
		f := Frame{Kind: "kernel", Module: "[kernel]"}
		name, module, hasModule := strings.Cut(rest, " [")
		f.Function, _, _ = strings.Cut(name, "+")
		if hasModule {
			f.Module = "[" + module
		}
		if f.Function != "" {
			out = append(out, f)
		}
	}
	return out
}

// kernelFrames is parseKernelStack with a cache: most threads wait in the same place. The result is
// shared.
func (p *process) kernelFrames(b []byte) []Frame {
	l := &p.look
	out, ok := l.kernel[string(b)]
	if !ok {
		out = parseKernelStack(b)
		l.kernel[string(b)] = out
	}
	return out
}

// stateNames are the names of the kernel's letters for thread states (proc_pid_stat(5)).
var stateNames = map[byte]string{
	'R': "runnable", 'S': "sleeping", 'D': "uninterruptible", 'T': "stopped", 't': "traced",
	'Z': "ended", 'X': "ended", 'x': "ended", 'I': "idle", 'P': "parked", 'K': "wakekill", 'W': "waking",
}
