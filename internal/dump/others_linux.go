package dump

import (
	"errors"
	"fmt"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/bpfcopy"
	"github.com/candid-profiler/candid/internal/capture/procsyscall"
	"github.com/candid-profiler/candid/internal/kallsyms"
)

// waiting is a thread that waits in the kernel, seen by a BPF program.
type waiting struct {
	account string // of its running, just before
	place   bpfcopy.Waiter
}

// openOthers sets up the BPF program if the files cannot be read.
func (p *process) openOthers() {
	if procsyscall.MayRead(p.files.dir, p.pid) {
		return
	}
	p.kept = "where it sleeps cannot be read: /proc/PID/task/TID/syscall is for the process's user; run as that user, or with CAP_DAC_READ_SEARCH, or with CAP_BPF and CAP_PERFMON"
	if w, err := bpfcopy.OpenWaiters(p.pid); err == nil {
		p.waiters = w
	} else if !errors.Is(err, capture.ErrPermission) {
		p.kept += " (" + err.Error() + ")"
	}
}

// lookAtOthers makes a BPF program report where threads wait, because files cannot.
func (p *process) lookAtOthers(tids []int) error {
	if p.waiters == nil {
		return nil
	}
	accounts := make(map[uint32]string, len(tids))
	for _, tid := range tids {
		accounts[uint32(tid)] = p.account(tid)
	}
	if p.look.others == nil {
		p.look.others = make(map[int]waiting, len(tids))
	}
	err := p.waiters.Each(func(w bpfcopy.Waiter) {
		if a := accounts[w.TID]; a != "" {
			p.look.others[int(w.TID)] = waiting{a, w}
		}
	})
	if err != nil {
		return fmt.Errorf("see where threads of process %d wait: %w", p.pid, err)
	}
	return nil
}

// account returns the kernel's count of a thread's running, "" if it is running or runnable. As
// long as it stays the same the thread has not run.
func (p *process) account(tid int) string {
	if _, state, ok := parseStat(p.files.read(tid, "stat")); !ok || state == 'R' {
		return ""
	}
	return string(p.files.read(tid, "schedstat"))
}

// waits reads a sleeping thread as asleep does, from what a BPF program saw.
func (p *process) waits(t *Thread) bool {
	for try := range tries {
		account := p.account(t.TID)
		t.CPU, _ = parseRun(p.files.read(t.TID, "schedstat"))
		if account == "" || t.State == "stopped" && p.stopper != nil {
			return false
		}
		w := p.look.others[t.TID]
		if try > 0 {
			p.fresh()
		}
		if w.account != account {
			if p.lookAtOthers([]int{t.TID}) != nil {
				return false
			}
			w = p.look.others[t.TID]
		}
		t.Syscall = ""
		if w.place.Call >= 0 {
			t.Syscall = kallsyms.SyscallName(w.place.Call)
		}
		p.walkWaiting(t, &capture.Snapshot{PID: uint32(p.pid), TID: uint32(t.TID), Flags: capture.InKernel, Regs: w.place.Regs})
		p.java(t)
		if w.account != "" && p.account(t.TID) == w.account {
			t.Read, p.look.accounts[t.TID] = ReadAsleep, account
			if t.State == "runnable" {
				t.State = "sleeping"
			}
			return true
		}
	}
	return false
}
