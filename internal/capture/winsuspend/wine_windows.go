package winsuspend

import (
	"encoding/binary"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/wine"
	"github.com/candid-profiler/candid/internal/winsys"
)

// mostAsked is how often a process is asked for Wine's dispatcher: Wine may still be starting.
const mostAsked = 8

// wineDispatcher returns the code through which the process makes its system calls if it runs in Wine,
// else nil.
func (p *process) wineDispatcher() *wine.Dispatcher {
	if p.dispatcher != nil || p.asked == mostAsked {
		return p.dispatcher
	}
	p.asked++
	var b [8]byte
	mem := processMemory(p.handle)
	if !mem.Bytes(wine.DispatcherPointer, b[:]) {
		return nil
	}
	code := make([]byte, wine.DispatcherBytes)
	if at := binary.LittleEndian.Uint64(b[:]); at != 0 && mem.Bytes(at, code) {
		p.dispatcher = wine.NewDispatcher(at, code)
	}
	return p.dispatcher
}

// betweenStacks reports whether Wine was returning from a system call when the thread was stopped: its
// stack pointer is on a stack of Wine's own then, for a few instructions.
func (th *thread) betweenStacks(t *taken) bool {
	regs := t.regs
	return th.proc.wineDispatcher().Undo(&regs, copiedMemory{processMemory(th.proc.handle), t}) == wine.BetweenStacks
}

// undoDispatch moves the registers of a thread that was stopped where Wine begins or ends a system call
// to that call, where Windows and Wine report a thread that is within one.
func (th *thread) undoDispatch(t *taken) {
	if d := th.proc.wineDispatcher(); d.Holds(t.regs.PC) {
		d.Undo(&t.regs, copiedMemory{processMemory(th.proc.handle), t})
	}
}

// processMemory is a process's memory.
type processMemory windows.Handle

// Bytes fills p from addr; false unless all of it could be read.
func (m processMemory) Bytes(addr uint64, p []byte) bool {
	return winsys.ReadMemory(windows.Handle(m), addr, p)
}

// copiedMemory is a process's memory, with the stack as it was copied.
type copiedMemory struct {
	processMemory
	t *taken
}

// Bytes implements wine.Memory.
func (m copiedMemory) Bytes(addr uint64, p []byte) bool {
	if off, n := addr-m.t.addr, uint64(len(m.t.stack)); off < n && n-off >= uint64(len(p)) {
		copy(p, m.t.stack[off:])
		return true
	}
	return m.processMemory.Bytes(addr, p)
}
