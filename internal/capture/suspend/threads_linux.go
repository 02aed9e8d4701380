package suspend

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/procsyscall"
)

// thread is one thread of a target. While it is in Engine.hot it may be touched by the holder of
// Engine.mu, or by the sampling thread that has set busy; otherwise by Run's goroutine.
type thread struct {
	proc *process
	tid  int

	schedFD int // schedstat, kept open
	// stat, sched, syscall, status and stack; unopened until they are needed and while the thread
	// is idle, -1 if that is not permitted.
	statFD, noteFD, placeFD, statusFD, kernelFD int

	seen    account
	sampled uint64 // ns of CPU time that samples or the beginning account for
	from    uint64 // the part of it that the beginning accounts for
	last    uint64 // ns that it had run when recording ended
	owed    uint64 // the part of its process's pending time that is its own
	exited  int64  // ns, when it was dropped because it had ended; 0: it was not
	final   final
	looked  final // the account when a sampling thread last read it
	// Clock ticks that it had run in the kernel when that was first read, unknownTime before, and
	// ns of CPU time that samples in calls account for since.
	system, inKernel uint64
	cpu              int   // where it last ran
	active           int64 // ns, when it was last seen to have run, or to want to
	ran              int64 // ns, when a sampling thread last saw that it had run

	// When to look next while it is idle, and how long to leave it alone after that, ns.
	next, pause int64

	// How often it had gone to sleep by itself, and its account right after that was read.
	slept      uint64
	sleptAt    account
	sleptKnown bool

	stack stackSpan
	base  uint64 // thread pointer as last seen, 0: not yet
	shown uint64 // number of the last sample that was handed over; used by Run's goroutine

	// For wall time.
	started uint64        // clock ticks after boot
	sleeper *sleeper      // belongs to the sleep scanner
	waited  atomic.Uint64 // ns of waiting for a CPU that samples, or the beginning, account for
	stood   atomic.Int64  // ns that it was stopped by candid, which the kernel counts as sleep
	told    int64         // the part of it that samples account for; used by the sampling thread that has set busy
	stops   atomic.Bool   // it is to stop, or is stopped, for candid
	idle    atomic.Bool   // it is in Engine.idle
	stirred atomic.Bool   // and has run since
	over    atomic.Bool   // it has ended, as the sleep scanner saw

	hot, busy, gone bool
	newborn         bool // no sample was taken yet, and its whole life was recorded
	spared          bool // one of its calls was interrupted once: never stop it again
}

// process is a target.
type process struct {
	pid        int
	dir        int // /proc/PID, O_PATH
	task       int // /proc/PID/task, O_PATH
	list       int // the same for listing; guarded by Engine.mu
	stat       int // /proc/PID/stat
	links      uint64
	listed     int64  // ns, when the threads were last listed
	ranThen    uint64 // CPU time before that, ns; 0: not read
	ranFirst   uint64 // the same at the first listing, until sampling begins
	asked      asked  // what the sleep scanner found
	started    uint64
	startCode  uint64
	startStack uint64
	threads    map[int]*thread // changed with Engine.mu held
	stacks     stackFinder
	memory     memory
	follow     atomic.Pointer[capture.Follow] // where its stacks go on; nil: nowhere else
	own        bool                           // a child of candid's
	child      bool                           // born during recording
	gone       bool
	ending     int // how often it appeared to have ended
	without    int // number of threads for which there was no descriptor

	ended   bool      // for certain
	total   uint64    // CPU time, ns, when the threads were last listed, or as of its end
	parting int       // how many threads have ended whose rests were not handed over
	lost    []*thread // threads that have ended since the threads were last listed

	// Guarded by Engine.mu, ns.
	clock   uint64 // CPU time when recording began
	given   uint64 // what samples account for
	pending uint64 // what threads that have ended ran, and is about to be handed over
	backlog uint64 // CPU time of threads that ended unsampled, for the next newborn's sample
	churned int64  // when threads last came or went
}

func openProcess(pid int) (*process, error) {
	p := &process{pid: pid, dir: -1, task: -1, stat: -1, list: -1, memory: memory{fd: -1}, threads: map[int]*thread{}}
	root := "/proc/" + strconv.Itoa(pid)
	var err error
	if p.dir, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, processError(pid, err)
	}
	if p.task, err = unix.Openat(p.dir, "task", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		p.stat, err = unix.Openat(p.dir, "stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		p.list, err = unix.Openat(p.dir, "task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		p.close()
		return nil, processError(pid, err)
	}
	var r reader
	s, ok := r.status(p.stat)
	for range 20 {
		if s.state != 'Z' {
			break
		}
		// The process has ended, or a thread other than the first is in exec.
		time.Sleep(time.Millisecond)
		s, ok = r.status(p.stat)
	}
	if !ok {
		p.close()
		return nil, processError(pid, unix.ESRCH)
	}
	p.started, p.startCode, p.startStack = s.started, s.startCode, s.startStack
	p.memory = openMemory(p.dir)
	p.own = parentOf(strconv.Itoa(pid)) == os.Getpid()
	if s.state == 'Z' || s.state == 'X' {
		p.close()
		return nil, fmt.Errorf("sample process %d: it has ended: %w", pid, unix.ESRCH)
	}
	return p, nil
}

func processError(pid int, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("sample process %d: there is no such process: %w", pid, unix.ESRCH)
	}
	return fmt.Errorf("sample process %d: %w", pid, err)
}

func (p *process) close() {
	p.memory.close()
	for _, fd := range []int{p.dir, p.task, p.stat, p.list} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	p.dir, p.task, p.stat, p.list = -1, -1, -1, -1
}

// mayTrace returns why candid may not stop the process's threads, nil if it may.
func (p *process) mayTrace() error {
	if tracer := tracerOf(p.pid); tracer != 0 {
		return &TracedError{PID: p.pid, Tracer: tracer, Name: comm(tracer)}
	}
	// The kernel checks the same permission for reading memory as for ptrace, and checks it before
	// the address, which is one that no program has.
	var b [1]byte
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err := unix.ProcessVMReadv(p.pid, local, []unix.RemoteIovec{{Base: ^uintptr(0), Len: 1}}, 0)
	switch {
	case err == nil, errors.Is(err, unix.EFAULT):
		return nil
	case errors.Is(err, unix.ESRCH):
		return processError(p.pid, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("suspend threads of process %d: %w: %s: %w", p.pid, capture.ErrPermission, whyNot(p.pid), err)
	}
	return fmt.Errorf("suspend threads of process %d: %w: reading its memory is forbidden here: %w", p.pid, capture.ErrPermission, err)
}

// mayRead returns why candid may not see where the process's threads sleep, nil if it may.
func (p *process) mayRead() error {
	if procsyscall.MayRead(p.task, p.pid) {
		return nil
	}
	return fmt.Errorf("sample threads of process %d that sleep: %w: where they do is for its user to read (/proc/PID/task/TID/syscall); run candid as that user, or with CAP_DAC_READ_SEARCH, or with CAP_BPF and CAP_PERFMON, which takes another way",
		p.pid, capture.ErrPermission)
}

// whyNot returns what keeps candid from tracing a process, and what to do about it.
func whyNot(pid int) string {
	if st, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/"); err == nil {
		if uid, ok := ownerOf(st); ok && uid != os.Geteuid() && os.Geteuid() != 0 {
			return fmt.Sprintf("it belongs to uid %d or is not dumpable; run candid as that user, as root, or with CAP_SYS_PTRACE", uid)
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		switch scope := strings.TrimSpace(string(b)); scope {
		case "0":
		case "1":
			return "kernel.yama.ptrace_scope is 1: let candid start the program (candid record -- command), run with CAP_SYS_PTRACE, or set it to 0"
		case "2":
			return "kernel.yama.ptrace_scope is 2: run with CAP_SYS_PTRACE, or set it to 0"
		default:
			return "kernel.yama.ptrace_scope is " + scope + ": it forbids ptrace until the next boot"
		}
	}
	return "it holds more capabilities than candid, or a security rule forbids ptrace; run candid with CAP_SYS_PTRACE"
}

// TracedError says that another program already traces the target: a thread can have only one
// tracer.
type TracedError struct {
	PID, Tracer int
	Name        string // of the tracer, "" if unknown
}

// Error names the tracer.
func (e *TracedError) Error() string {
	name := e.Name
	if name != "" {
		name = " (" + name + ")"
	}
	return fmt.Sprintf("suspend threads of process %d: process %d%s traces it already; end that debugger or tracer first", e.PID, e.Tracer, name)
}

// Unwrap returns capture.ErrPermission.
func (e *TracedError) Unwrap() error { return capture.ErrPermission }

// tracerOf returns the process that traces a thread, 0 if there is none.
func tracerOf(tid int) int {
	tracer := statusNumber(tid, "TracerPid")
	if tracer == 0 {
		return 0
	}
	// The kernel names the thread that traces, not its process.
	return cmp.Or(statusNumber(tracer, "Tgid"), tracer)
}

// statusNumber returns a number in /proc/TID/status, 0 if it is not there.
func statusNumber(tid int, key string) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "\n"+key+":\t")
	if !ok {
		return 0
	}
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return n
}

func comm(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// maxThreads bounds how many threads of a process are followed.
const maxThreads = 1 << 17

// tids returns the TIDs of the process's threads.
func (p *process) tids() ([]int, error) {
	fd, err := unix.Openat(p.dir, "task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "task")
	defer f.Close()
	names, err := f.Readdirnames(maxThreads)
	if err != nil && len(names) == 0 {
		return nil, err
	}
	tids := make([]int, 0, len(names))
	for _, n := range names {
		if tid, err := strconv.Atoi(n); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

// openThread starts to follow a thread.
func (p *process) openThread(tid int, r *reader) (*thread, error) {
	th := newThread(p, tid)
	return th, th.follow(r)
}

// openIdle starts to follow a thread that most likely sleeps: where it last ran is not read until
// it runs.
func (p *process) openIdle(tid int, r *reader) (*thread, error) {
	th := newThread(p, tid)
	return th, th.openAccount(r)
}

func newThread(p *process, tid int) *thread {
	return &thread{proc: p, tid: tid, system: unknownTime, schedFD: -1, statFD: unopened, noteFD: unopened, placeFD: unopened, statusFD: unopened, kernelFD: unopened}
}

// follow opens what is needed to see a thread run. It closes all of the thread's files if it fails.
func (th *thread) follow(r *reader) error {
	if err := th.openAccount(r); err != nil {
		return err
	}
	s, ok := th.status(r)
	if !ok {
		th.close()
		return unix.ESRCH
	}
	th.cpu, th.started = s.cpu, s.started
	return nil
}

// spareFiles is how many descriptors threads' accounts leave for other uses: listing threads,
// reading what a sample needs and writing the recording.
const spareFiles = 64

// mostFiles returns the limit below which the descriptors of threads' accounts must be.
func mostFiles() int {
	n := allowedFiles()
	return n - min(spareFiles, n/2)
}

// allowedFiles returns how many files candid may have open.
func allowedFiles() int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil || lim.Cur > 1<<30 {
		return 1 << 30
	}
	return int(lim.Cur)
}

// openAccount opens a thread's account and reads it. It closes all of the thread's files if it
// fails.
func (th *thread) openAccount(r *reader) (err error) {
	th.schedFD, err = unix.Openat(th.proc.task, strconv.Itoa(th.tid)+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil && th.schedFD >= mostFiles() {
		err = unix.EMFILE
	}
	if err != nil {
		th.close()
		return err
	}
	a, late, ok := r.accountAndDelay(th.schedFD)
	if !ok {
		th.close()
		return unix.ESRCH
	}
	th.seen = a
	th.waited.Store(late)
	return nil
}

// unknownTime is a value that no amount of time has.
const unknownTime = 1<<64 - 1

// unopened marks a file that has not been tried yet.
const unopened = -2

// close closes all of a thread's files.
func (th *thread) close() {
	th.rest()
	if th.schedFD >= 0 {
		_ = unix.Close(th.schedFD)
	}
	th.schedFD = -1
}

// rest closes the files that are not needed while the thread is idle.
func (th *thread) rest() {
	for _, fd := range []*int{&th.statFD, &th.noteFD, &th.placeFD, &th.statusFD, &th.kernelFD} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
		}
		*fd = unopened
	}
}
