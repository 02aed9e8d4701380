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

// Waiters tells where a process's threads entered the kernel, for who may not read
// /proc/PID/task/TID/syscall: that file is only for the process's user and for
// whoever may read any file, whatever they may trace. No thread notices. It belongs to one
// goroutine.
type Waiters struct {
	pid    uint32
	kernel *btf.Cache
}

// Waiter is a thread that was in the kernel. If it ran meanwhile, nothing of it is true.
type Waiter struct {
	TID  uint32
	Call int // the system call's number, -1 for none
	Regs cpu.Registers
}

// OpenWaiters sees whether the program can be loaded. It takes CAP_BPF and CAP_PERFMON;
// the errors are Open's.
func OpenWaiters(pid int) (*Waiters, error) {
	w := &Waiters{pid: uint32(pid), kernel: btf.NewCache()}
	return w, w.Each(func(Waiter) {})
}

// Each calls f with every thread of the process that sleeps.
func (w *Waiters) Each(f func(Waiter)) error {
	// What the program keeps of a thread is right only the first time, as nothing
	// tells it of switches here: so each look is another program's first.
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

func (w *Waiters) load() (*away, error) {
	spec, err := loadAway()
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
	a := &away{coll: coll}
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
