package target

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// List lists all visible processes, by ascending PID, without kernel threads. Processes that end
// meanwhile are left out.
func List() ([]Summary, error) {
	f, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil && len(names) == 0 {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	l := lister{users: make(map[int]string), buf: make([]byte, 4096)}
	var out []Summary
	for _, n := range names {
		if n[0] < '0' || n[0] > '9' {
			continue
		}
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if s, ok := l.summary(pid); ok {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Summary) int { return a.PID - b.PID })
	return out, nil
}

// HaveChildren reports whether any of the processes has children that still run.
func HaveChildren(pids []int) bool {
	f, err := os.Open("/proc")
	if err != nil || len(pids) == 0 {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, n := range names {
		if n[0] < '0' || n[0] > '9' {
			continue
		}
		raw, err := os.ReadFile("/proc/" + n + "/stat")
		if err != nil {
			continue
		}
		if st, ok := parseStat(raw); ok && slices.Contains(pids, st.PPID) && st.State != 'Z' {
			return true
		}
	}
	return false
}

// Stopped reports whether a process is stopped by a signal (SIGSTOP, Ctrl-Z).
func Stopped(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	st, ok := parseStat(raw)
	return ok && st.State == 'T'
}

// lister holds what is reused from process to process.
type lister struct {
	users map[int]string
	buf   []byte
}

// summary reads one process; false if it is gone or a kernel thread.
func (l *lister) summary(pid int) (Summary, bool) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Summary{}, false
	}
	p := Process{PID: pid, uid: -1, sys: processSystem{dir: dir, pidfd: -1}}
	defer p.Close()
	s := Summary{PID: pid, UID: -1}
	raw, err := p.readSmall("stat", l.buf)
	if err != nil { // hidepid=1
		s.Reason = goneReason(err)
		return s, s.Reason == ReasonHidden
	}
	st, ok := parseStat(raw)
	if !ok || st.kernelThread() {
		return Summary{}, false
	}
	s.PPID, s.StartTime, s.Comm, s.Threads = st.PPID, st.StartTime, st.Comm, st.Threads
	if raw, err = p.readSmall("status", l.buf); err == nil {
		t := parseStatus(raw)
		s.UID, s.Namespaced = t.UID, len(t.NSpid) > 1
	}
	s.User = l.user(s.UID)
	if st.State == 'Z' && st.Threads <= 1 {
		s.Zombie, s.Reason = true, ReasonZombie
		return s, true
	}
	if raw, err := p.readFile("cmdline", maxCmdline); err == nil {
		s.Cmdline = splitCmdline(raw)
	}
	// Reading the link and opening maps need the same rights as reading the memory
	// (proc_pid_exe(5), ptrace(2)).
	exe, err := p.readlink("exe")
	s.Exe = exe
	if err == unix.EACCES || err == unix.EPERM {
		s.Reason = deniedReason(s.UID)
	}
	return s, true
}

// user returns the name of a user id.
func (l *lister) user(uid int) string {
	if uid < 0 {
		return "?"
	}
	if name, ok := l.users[uid]; ok {
		return name
	}
	name := strconv.Itoa(uid)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	l.users[uid] = name
	return name
}
