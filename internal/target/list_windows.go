package target

import (
	"errors"
	"slices"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/winsys"
)

// List lists all processes but the kernel's own, by ascending PID.
func List() ([]Summary, error) {
	var s winsys.Snapshot
	if err := s.Take(); err != nil {
		return nil, err
	}
	var out []Summary
	for i := range s.Processes {
		info := &s.Processes[i]
		if info.PID == 0 || info.PID == 4 || len(info.Threads) == 0 && info.Name() == "" {
			continue
		}
		out = append(out, summary(info))
	}
	slices.SortFunc(out, func(a, b Summary) int { return a.PID - b.PID })
	return out, nil
}

func summary(info *winsys.ProcessInfo) Summary {
	s := Summary{
		PID: int(info.PID), PPID: int(info.Parent), UID: -1, User: "?", StartTime: sinceBoot(info.Created),
		Comm: info.Name(), Threads: len(info.Threads),
	}
	h, reason := openProcess(s.PID)
	if reason == ReasonNone {
		defer windows.CloseHandle(h)
		if command, _ := winsys.Started(h); command != "" {
			s.Cmdline = splitCommand(command)
		}
	} else {
		s.Reason, s.Zombie = reason, reason == ReasonZombie
		var err error
		if h, err = windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, info.PID); err != nil {
			return s
		}
		defer windows.CloseHandle(h)
	}
	s.Exe = winsys.ImagePath(h)
	if owner := winsys.Owner(h); owner != "" {
		s.User = owner
	}
	return s
}

// HaveChildren reports whether any of the processes has children that still run.
func HaveChildren(pids []int) bool {
	var s winsys.Snapshot
	if len(pids) == 0 || s.Take() != nil {
		return false
	}
	for i := range s.Processes {
		c := &s.Processes[i]
		if slices.Contains(pids, int(c.Parent)) && IsChild(&s, c) {
			return true
		}
	}
	return false
}

// Stopped returns false: here, threads are suspended and not processes.
func Stopped(int) bool { return false }

// IsChild reports whether the process that c names as its parent is the one that started it: the id
// may have become another process's since, which is then younger.
func IsChild(s *winsys.Snapshot, c *winsys.ProcessInfo) bool {
	parent := s.Process(c.Parent)
	return parent != nil && parent.Created <= c.Created
}

// Existing reports whether there is a process with this id, whoever owns it.
func Existing(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err == nil {
		defer windows.CloseHandle(h)
		return !hasEnded(h)
	}
	return errors.Is(err, windows.ERROR_ACCESS_DENIED)
}
