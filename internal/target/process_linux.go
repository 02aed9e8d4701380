package target

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// processSystem is what is held of an open process on Linux.
type processSystem struct {
	mu sync.Mutex
	// dir is /proc/PID. The kernel ties it to the process and not to the number: once the process
	// is gone nothing can be read through it, even if the number has been reused.
	dir int
	// pidfd is for asking whether the process has ended; -1 before Linux 5.3 and if it is not
	// permitted.
	pidfd int
	// view is the directory whose maps and memory stand for the process, relative to dir: "" or, if
	// the first thread has ended and others run on, that of a living thread ("task/TID/"). It
	// changes when the first thread ends.
	view string
	// access is how the process's memory is read; nil if there is no process to read.
	access *vmAccess
}

// holdNothing is for a process that was never looked at.
func (s *processSystem) holdNothing() { s.dir, s.pidfd = -1, -1 }

// at returns the path of one of the files that a whole process shares, relative to dir.
func (p *Process) at(name string) string {
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	return p.sys.view + name
}

// moveView makes another living thread stand for the process and returns its id; 0 if there is
// none.
func (p *Process) moveView() int {
	tid := p.livingThread()
	if tid == 0 {
		return 0
	}
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	p.sys.view = tidPath(tid)
	return tid
}

// Open opens a process. The errors are *AccessError and wrap ErrNoProcess, ErrPermission, ErrZombie
// or ErrKernelThread.
func Open(pid int) (*Process, error) {
	if pid <= 0 {
		return nil, &AccessError{PID: pid, Reason: ReasonNoProcess, UID: -1}
	}
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		reason := goneReason(err)
		if reason != ReasonFiles {
			reason = absentReason(pid)
		}
		return nil, &AccessError{PID: pid, Reason: reason, UID: -1}
	}
	p := &Process{PID: pid, uid: -1}
	p.sys.dir, p.sys.pidfd = dir, -1
	if err := p.load(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// absentReason returns why /proc has no entry for a pid.
func absentReason(pid int) Reason {
	if pid > math.MaxInt32 {
		return ReasonNoProcess // kill would see the lower 32 bits only, and 0 is candid's own group
	}
	// kill with signal 0 sends nothing; it only checks whether there is such a process.
	if err := unix.Kill(pid, 0); err == nil || err == unix.EPERM {
		return ReasonHidden
	}
	return ReasonNoProcess
}

// load reads what does not change and checks that the process may be examined.
func (p *Process) load() error {
	var buf [4096]byte
	raw, err := p.readSmall("stat", buf[:])
	if err != nil {
		reason := goneReason(err)
		if reason == ReasonNoProcess {
			reason = absentReason(p.PID) // hidepid=2 hides the files, but the directory can be opened
		}
		return &AccessError{PID: p.PID, Reason: reason, UID: -1}
	}
	st, ok := parseStat(raw)
	if !ok {
		return fmt.Errorf("/proc/%d/stat: %w", p.PID, ErrFormat)
	}
	p.StartTime, p.comm, p.program = st.StartTime, st.Comm, st.Program
	if raw, err = p.readSmall("status", buf[:]); err == nil {
		s := parseStatus(raw)
		if s.TGID > 0 && s.TGID != p.PID {
			// /proc/TID exists for every thread, though it is not listed.
			return fmt.Errorf("%d is a thread of process %d: %w", p.PID, s.TGID, ErrNoProcess)
		}
		p.uid, p.nspid = s.UID, s.NSpid
	}
	if st.kernelThread() {
		return &AccessError{PID: p.PID, Reason: ReasonKernelThread, UID: p.uid}
	}
	if st.State == 'X' || st.State == 'x' {
		return &AccessError{PID: p.PID, Reason: ReasonNoProcess, UID: p.uid}
	}
	tid := p.PID
	if st.State == 'Z' {
		if tid = p.moveView(); tid == 0 {
			return &AccessError{PID: p.PID, Reason: ReasonZombie, UID: p.uid}
		}
	}
	if fd, err := unix.PidfdOpen(p.PID, 0); err == nil {
		p.sys.pidfd = fd
		// The id may have been reused between opening dir and here.
		if _, err := p.readSmall("stat", buf[:]); err != nil {
			return &AccessError{PID: p.PID, Reason: ReasonNoProcess, UID: p.uid}
		}
	}
	if cmd, err := p.readFile(p.at("cmdline"), maxCmdline); err == nil {
		p.cmdline = splitCmdline(cmd)
	}
	p.exe, _ = p.readlink(p.at("exe"))
	src, reason := openAccess(p, tid)
	if reason != ReasonNone {
		return &AccessError{PID: p.PID, Reason: p.refine(reason), UID: p.uid}
	}
	p.mem, p.sys.access = newMemory(src), src
	return nil
}

// maxCmdline bounds a command line in bytes; the kernel's own limit on all arguments is 6 MiB by
// default.
const maxCmdline = 1 << 20

// goneReason converts the error of a failed read below /proc/PID to a reason.
func goneReason(err error) Reason {
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return ReasonFiles
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return ReasonHidden // hidepid=1 shows the directory, but not its files
	}
	return ReasonNoProcess
}

// livingThread finds a thread of a process whose first thread has ended.
func (p *Process) livingThread() int {
	tids, err := p.tids()
	if err != nil {
		return 0
	}
	var buf [1024]byte
	for _, tid := range tids {
		raw, err := p.readSmall(tidPath(tid)+"stat", buf[:])
		if err != nil {
			continue
		}
		if st, ok := parseStat(raw); ok && st.State != 'Z' && st.State != 'X' && st.State != 'x' {
			return tid
		}
	}
	return 0
}

// Close releases the process.
func (p *Process) Close() error {
	if p.mem != nil {
		p.mem.close()
	}
	p.sys.mu.Lock()
	defer p.sys.mu.Unlock()
	if p.sys.dir >= 0 {
		unix.Close(p.sys.dir)
		p.sys.dir = -1
	}
	if p.sys.pidfd >= 0 {
		unix.Close(p.sys.pidfd)
		p.sys.pidfd = -1
	}
	return nil
}

// Alive reports whether the process still runs. It is false once the process has ended, even if its
// parent has not waited for it yet, or its id has been reused.
func (p *Process) Alive() bool {
	p.sys.mu.Lock()
	if p.sys.dir < 0 || p.sys.pidfd >= 0 {
		alive := p.sys.dir >= 0 && !ended(p.sys.pidfd)
		p.sys.mu.Unlock()
		return alive
	}
	p.sys.mu.Unlock()
	var buf [1024]byte
	raw, err := p.readSmall("stat", buf[:])
	if err != nil {
		return false
	}
	st, ok := parseStat(raw)
	return ok && st.StartTime == p.StartTime && (st.State != 'Z' || p.livingThread() != 0)
}

// Replaced reports whether the process has executed another program since it was opened. An exec is
// not detected if address space randomisation is off.
func (p *Process) Replaced() bool {
	var buf [1024]byte
	raw, err := p.readSmall("stat", buf[:])
	if err != nil {
		return false
	}
	// The fields are not shown once the first thread has ended.
	st, ok := parseStat(raw)
	return ok && st.StartTime == p.StartTime && st.Program.stack != 0 && p.program.stack != 0 && st.Program != p.program
}

// ended asks a pidfd, which becomes readable when the whole thread group has ended.
func ended(pidfd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return err == nil && n == 1
}

// Mappings reads the process's current mappings, sorted by address. For a process that has ended it
// returns those in its Space, if it has one.
func (p *Process) Mappings() ([]Mapping, error) {
	maps, err := p.mappings()
	if err != nil && !p.Alive() {
		if known, ok := p.remembered(); ok {
			return known, nil
		}
	}
	if err == nil {
		p.avoidUnanswered(maps)
	}
	return maps, err
}

func (p *Process) mappings() ([]Mapping, error) {
	raw, err := p.readFile(p.at("maps"), maxMapsBytes)
	if len(raw) == 0 && p.moveView() != 0 { // its first thread has ended since
		raw, err = p.readFile(p.at("maps"), maxMapsBytes)
	}
	if err != nil {
		return nil, p.fileError("maps", err)
	}
	maps, err := parseMaps(raw)
	if err != nil {
		return maps, fmt.Errorf("/proc/%d/maps: %w", p.PID, err)
	}
	if len(maps) == 0 {
		return nil, &AccessError{PID: p.PID, Reason: ReasonZombie, UID: p.uid} // it has released its memory
	}
	return maps, nil
}

// maxMapsBytes bounds the text of /proc/PID/maps, in bytes.
const maxMapsBytes = 256 << 20

// fileError wraps an error of reading a file of /proc/PID.
func (p *Process) fileError(name string, err error) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("read /proc/%d/%s: %w (%v)", p.PID, name, ErrPermission, err)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESRCH), errors.Is(err, fs.ErrClosed), errors.Is(err, unix.EBADF):
		return fmt.Errorf("read /proc/%d/%s: %w", p.PID, name, ErrNoProcess)
	}
	return fmt.Errorf("read /proc/%d/%s: %w", p.PID, name, err)
}

// Threads reads the process's threads, by ascending TID. Threads that end
// meanwhile are left out.
func (p *Process) Threads() ([]Thread, error) {
	tids, err := p.tids()
	if err != nil {
		return nil, err
	}
	out := make([]Thread, 0, len(tids))
	for _, tid := range tids {
		if t, err := p.Thread(tid); err == nil {
			out = append(out, t)
		}
	}
	return out, nil
}

// Thread reads one thread; the error wraps ErrNoProcess if there is none.
func (p *Process) Thread(tid int) (Thread, error) {
	name, err := p.ThreadName(tid)
	if err != nil {
		return Thread{}, err
	}
	var buf [256]byte
	th := Thread{TID: tid, Name: name}
	th.CPU, _ = p.threadCPU(tid, buf[:])
	return th, nil
}

// ThreadName reads a thread's name; the error wraps ErrNoProcess if there is none.
func (p *Process) ThreadName(tid int) (string, error) {
	var buf [128]byte
	name := tidPath(tid) + "comm"
	b, err := p.readSmall(name, buf[:])
	if err != nil {
		return "", p.fileError(name, err)
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// tids lists the process's threads, sorted, at most maxThreads.
func (p *Process) tids() ([]int, error) {
	fd, err := p.openat("task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, p.fileError("task", err)
	}
	f := os.NewFile(uintptr(fd), "task")
	defer f.Close()
	var out []int
	for len(out) < maxThreads {
		names, err := f.Readdirnames(4096)
		for _, n := range names {
			if tid, err := strconv.Atoi(n); err == nil && tid > 0 {
				out = append(out, tid)
			}
		}
		if err != nil || len(names) == 0 {
			break
		}
	}
	slices.Sort(out)
	return out, nil
}

// maxThreads bounds the threads of a process: it is the kernel's own limit on all ids.
const maxThreads = 1 << 22
