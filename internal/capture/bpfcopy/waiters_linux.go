package bpfcopy

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// Waiters finds where a process's threads entered the kernel, for callers that may not read
// /proc/PID/task/TID/syscall: that file is only for the process's user and for users who may read
// any file, whatever else they may trace. No thread notices. A Waiters belongs to one goroutine.
type Waiters struct {
	pid    uint32
	kernel *btf.Cache
}

// Waiter is a thread that was in the kernel. If it has run meanwhile, none of the values is valid.
type Waiter struct {
	TID  uint32
	Call int // system call number, -1 for none
	Regs cpu.Registers
}

// OpenWaiters checks whether the program can be loaded. It requires CAP_BPF and CAP_PERFMON; the
// errors are those of Open.
func OpenWaiters(pid int) (*Waiters, error) {
	w := &Waiters{pid: uint32(pid), kernel: btf.NewCache()}
	return w, w.Each(func(Waiter) {})
}

// Each calls f with every thread of the process that sleeps.
func (w *Waiters) Each(f func(Waiter)) error {
	// The program's record of a thread is right only the first time, because nothing reports
	// context switches here: so a program is loaded anew for each look.
	a, err := w.load()
	if err != nil {
		return err
	}
	defer a.close()
	le := binary.LittleEndian
	return a.each(func(b []byte) {
		if word(b[offLookSince:]) == 0 {
			return
		}
		t := Waiter{TID: le.Uint32(b[offLookTID:]), Call: int(le.Uint32(b[offLookSyscall:])) - 1}
		decodeRegs(b[offLookRegs:offLookKernel], &t.Regs)
		f(t)
	})
}

func (w *Waiters) load() (*offcpu, error) {
	spec, err := loadOffcpu()
	if err != nil {
		return nil, fmt.Errorf("read the BPF programs built into candid: %w", err)
	}
	if err := configure(spec, capture.Options{}, 4096); err != nil {
		return nil, err
	}
	for name := range spec.Programs {
		if name != "each" {
			delete(spec.Programs, name)
		}
	}
	for _, unused := range []string{"ring", "scratch"} {
		delete(spec.Maps, unused)
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: w.kernel})
	if err != nil {
		return nil, loadError(err)
	}
	a := &offcpu{coll: coll}
	if err := coll.Maps["targets"].Put(w.pid, captureTarget{}); err != nil {
		a.close()
		return nil, fmt.Errorf("tell the BPF program of process %d: %w", w.pid, err)
	}
	if a.all, err = link.AttachIter(link.IterOptions{Program: coll.Programs["each"]}); err != nil {
		a.close()
		return nil, loadError(fmt.Errorf("attach each: %w", err))
	}
	return a, nil
}
