package dump

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/asleep"
	"github.com/candid-profiler/candid/internal/kernel"
)

// taskFiles reads the small files of a process's threads. It belongs to one
// goroutine.
type taskFiles struct {
	dir int // /proc/PID/task; tied to the process, whoever has its number later
	buf [16 << 10]byte
}

func openTasks(pid int) (*taskFiles, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &taskFiles{dir: fd}, nil
}

func (f *taskFiles) close() { _ = unix.Close(f.dir) }

// read gives a file of a thread, valid until the next call; nil if it cannot be
// read.
func (f *taskFiles) read(tid int, name string) []byte {
	fd, err := unix.Openat(f.dir, strconv.Itoa(tid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	n, err := unix.Read(fd, f.buf[:])
	_ = unix.Close(fd)
	if err != nil || n < 0 {
		return nil
	}
	return f.buf[:n]
}

// maxThreads bounds how many threads of a process are looked at.
const maxThreads = 1 << 17

// tids lists the threads, sorted.
func (f *taskFiles) tids() ([]int, error) {
	// A descriptor of its own: reading moves its position.
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

// parseStat takes the name and the state out of a thread's stat. The name stands
// in parentheses and may hold some itself.
func parseStat(b []byte) (name string, state byte, ok bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open || len(b) < end+3 {
		return "", 0, false
	}
	return string(b[open+1 : end]), b[end+2], true
}

// callName is the system call that a thread sleeps in, "" if it is in none.
func callName(pl asleep.Place) string {
	if pl.Call == asleep.NoCall {
		return ""
	}
	return kernel.SyscallName(pl.Call)
}

// parseRun takes the time that a thread has run, in ns, out of its schedstat.
func parseRun(b []byte) uint64 {
	first, _, _ := strings.Cut(string(b), " ")
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

const maxKernelFrames = 64

// parseKernelStack takes the functions out of a thread's kernel stack, innermost
// first: lines like "[<0>] futex_wait_queue+0x63/0x90 [module]".
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

// stateNames are the kernel's letters for what a thread does (proc_pid_stat(5)).
var stateNames = map[byte]string{
	'R': "runnable", 'S': "sleeping", 'D': "uninterruptible", 'T': "stopped", 't': "traced",
	'Z': "ended", 'X': "ended", 'x': "ended", 'I': "idle", 'P': "parked", 'K': "wakekill", 'W': "waking",
}
