package bpfcopy

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/candid-profiler/candid/internal/capture"
)

// AddPID makes a process a target. It may be called while Run runs.
func (e *Engine) AddPID(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("sample process %d: a process id is above zero", pid)
	}
	t := captureTarget{}
	if e.opts.Children {
		t.Flags |= targetChildren
	}
	maps := e.progs.coll.Maps
	if err := maps["known"].Delete(uint32(pid)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("sample process %d: forget what had its number: %w", pid, err)
	}
	// As a child of another target it may be one already.
	if err := maps["targets"].Update(uint32(pid), t, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("sample process %d: make it a target of the BPF program: %w", pid, err)
	}
	e.targets.Add(uint32(pid))
	if err := e.waiter.AddProcess(pid); err != nil {
		return fmt.Errorf("sample process %d: %w", pid, err)
	}
	running := e.running.Load()
	if err := e.progs.points.addProcess(pid, e.opts, e.events, running); err != nil {
		return err
	}
	if running && e.progs.offCPU != nil {
		return e.progs.offCPU.each(func([]byte) {})
	}
	return nil
}

// begins notes which program a process runs from now on. If the other source has reported the Exec
// before (told), what was said since applies to that program.
func (e *Engine) begins(n *capture.ProcessEvent, told bool) {
	if len(e.begun) >= maxExeced {
		clear(e.begun)
	}
	e.begun[n.PID] = n.Time
	if k, ok := e.known[n.PID]; told && ok {
		_ = e.tell(n.PID, k) // if this fails, a second stack is looked for in vain, or not at all
		return
	}
	e.unknow(n.PID)
}

func (e *Engine) forget(pids []int) {
	for _, pid := range pids {
		e.targets.Forget(uint32(pid))
	}
}
