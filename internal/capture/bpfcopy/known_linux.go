package bpfcopy

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/candid-profiler/candid/internal/capture"
)

// maxFollows is how many processes' stacks are followed at a time.
const maxFollows = 256

// knowledge is what the BPF programs are told about a process's program.
type knowledge struct {
	goless bool
	follow uint32 // slot in follows plus 1, 0: none
}

var (
	_ capture.GoHinter     = (*Engine)(nil)
	_ capture.Follower     = (*Engine)(nil)
	_ capture.WakeupFilter = (*Engine)(nil)
)

// RunsGo sets whether a target runs Go code, until it runs another program; if it is not called,
// the target may. It applies to the program that the last notices reported, and to no other, even
// if another has begun meanwhile. It is called from the Sink, or before Run.
func (e *Engine) RunsGo(pid int, does bool) error {
	k := e.known[uint32(pid)]
	k.goless = !does
	if err := e.tell(uint32(pid), k); err != nil {
		return fmt.Errorf("tell the BPF program whether process %d runs Go code: %w", pid, err)
	}
	return nil
}

// Follow sets where the stacks of a target go on. It implements capture.Follower.
func (e *Engine) Follow(pid int, how *capture.Follow) error {
	if e.progs.variant != Exact {
		return fmt.Errorf("follow the stacks of process %d: %w: it takes Linux 6.16", pid, capture.ErrUnsupported)
	}
	k := e.known[uint32(pid)]
	if how == nil {
		e.giveUp(k.follow)
		k.follow = 0
		return e.tell(uint32(pid), k)
	}
	value, err := program(how)
	if err != nil {
		return fmt.Errorf("follow the stacks of process %d: %w", pid, err)
	}
	if k.follow == 0 {
		for i, used := range e.follows {
			if !used {
				k.follow = uint32(i) + 1
				break
			}
		}
		if k.follow == 0 {
			return fmt.Errorf("follow the stacks of process %d: those of %d processes are followed already", pid, maxFollows)
		}
	}
	if err := e.progs.coll.Maps["follows"].Put(k.follow-1, value); err != nil {
		return fmt.Errorf("follow the stacks of process %d: %w", pid, err)
	}
	e.follows[k.follow-1] = true
	if err := e.tell(uint32(pid), k); err != nil {
		return fmt.Errorf("follow the stacks of process %d: %w", pid, err)
	}
	return nil
}

// Plain sets whether the code of a program's file is all in files. It implements
// capture.WakeupFilter.
func (e *Engine) Plain(dev, inode uint64, is bool) error {
	m, key := e.progs.coll.Maps["plain"], captureProgramFile{Dev: dev, Inode: inode}
	if !is {
		if err := m.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("tell the BPF program that a file is not plain: %w", err)
		}
		return nil
	}
	if err := m.Put(key, uint32(1)); err != nil {
		return fmt.Errorf("tell the BPF program that a file is plain: %w", err)
	}
	return nil
}

// giveUp frees a slot.
func (e *Engine) giveUp(slot uint32) {
	if slot != 0 {
		e.follows[slot-1] = false
	}
}

// unknow forgets what was known about a process's program.
func (e *Engine) unknow(pid uint32) {
	e.giveUp(e.known[pid].follow)
	delete(e.known, pid)
}

// tell passes what is known about the program that a process runs to the BPF programs, and
// remembers it.
func (e *Engine) tell(pid uint32, k knowledge) error {
	if !e.targets.Has(pid) {
		e.giveUp(k.follow)
		return nil
	}
	program, begun := e.begun[pid]
	if e.opts.All && (!begun || program == 0) {
		program = someProgram // until it runs another, which on_exec detects
	}
	known := e.progs.coll.Maps["known"]
	var err error
	if k == (knowledge{}) {
		delete(e.known, pid)
		if err = known.Delete(pid); errors.Is(err, ebpf.ErrKeyNotExist) {
			err = nil
		}
		return err
	}
	value := captureKnown{Program: program, Follow: k.follow}
	if k.goless {
		value.Goless = 1
	}
	e.known[pid] = k
	return known.Put(pid, value)
}

// someProgram is SOME_PROGRAM of bpf/copy.h.
const someProgram = ^uint64(0)

// program converts a description to the form of the BPF programs.
func program(how *capture.Follow) (*captureFollow, error) {
	if err := how.Check(); err != nil {
		return nil, err
	}
	out := &captureFollow{
		Count: uint32(len(how.Steps)), Ref: uint32(how.Reference.Kind),
		RefShift: uint32(how.Reference.Shift), RefBase: how.Reference.Base,
	}
	for i, s := range how.Steps {
		arg := s.Arg
		if s.Op == capture.OpRegister {
			at := registerWord(arg)
			if at < 0 {
				return nil, fmt.Errorf("there is no register %d", arg)
			}
			arg = uint32(at)
		}
		to := &out.Steps[i]
		to.Op, to.Dst, to.Src, to.No, to.Arg, to.Imm = uint8(s.Op), s.Dst, s.Src, s.No, arg, s.Imm
	}
	return out, nil
}
