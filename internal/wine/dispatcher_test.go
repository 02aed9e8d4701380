package wine

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
)

// memory is what a process holds, by address.
type memory map[uint64][]byte

func (m memory) Bytes(addr uint64, p []byte) bool {
	for at, b := range m {
		if off := addr - at; off < uint64(len(b)) && uint64(len(b))-off >= uint64(len(p)) {
			copy(p, b[off:])
			return true
		}
	}
	return false
}

func bytesOf(s string) (b []byte) {
	for _, w := range strings.Fields(s) {
		var v byte
		fmt.Sscanf(w, "%x", &v)
		b = append(b, v)
	}
	return b
}

func words(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// Where the parts of a process are that makes a system call.
const (
	dispatcherAt = 0x7f0000001000
	callerAt     = 0x140001000 // after the call of the stub
	stubAddr     = 0x170010000
	stubReturn   = stubAddr + 0x1f // of the stub's call
	atCall       = stubAddr + 0x14
	stackAt      = 0x20000 // of the stub, when it calls
)

// A dispatcher that saves the return address, the flags and two registers, switches the stack, and
// returns as Wine does.
var dispatcherCode = bytesOf(`65 48 8b 0c 25 28 03 00 00
	8f 41 70
	9c
	8f 81 80 00 00 00
	4c 89 71 60
	48 83 69 70 0b
	44 8b b1 b0 00 00 00
	48 8d a9 98 00 00 00
	48 89 cc
	90
	48 8d 61 70
	4c 8b 71 60
	48 8b a1 88 00 00 00
	48 8b 49 70
	41 53
	9d
	51
	c3
	cc`)

// process is the memory of the process; the stub has pushed nothing. call is the code before
// callerAt.
func process(call string) memory {
	b := bytesOf(call)
	return memory{
		callerAt - uint64(len(b)): b,
		stubAddr:                  bytesOf("4c 8b d1 b8 05 00 00 00 f6 04 25 08 03 fe 7f 01 75 03 0f 05 c3 eb 01 c3 ff 14 25 00 10 fe 7f c3"),
		stackAt - 24:              words(0x246, stubReturn, callerAt, 1, 2),
	}
}

const directCall = "90 90 90 e8 00 f0 00 30" // to stubAddr

func TestDispatcher(t *testing.T) {
	d := NewDispatcher(dispatcherAt, dispatcherCode)
	if d == nil {
		t.Fatal("it is not recognised")
	}
	const all = cpu.AllKnown
	const sp = stackAt - 8 // where the address is that the stub will return to
	for _, c := range []struct {
		at   uint64 // offset of the instruction
		sp   uint64
		stop Stop
		lost uint32
	}{
		{0, sp - 8, AtCall, 0},                               // mov rcx
		{9, sp - 8, AtCall, 0},                               // pop
		{12, sp, AtCall, 0},                                  // pushfq
		{13, sp - 8, AtCall, 0},                              // pop
		{19, sp, AtCall, 0},                                  // mov [rcx+60],r14
		{28, sp, AtCall, 0},                                  // mov r14d
		{35, sp, AtCall, 1 << cpu.R14},                       // lea rbp
		{42, sp, AtCall, 1<<cpu.R14 | 1<<cpu.RBP},            // mov rsp,rcx
		{45, 0x30000, BetweenStacks, 0},                      // nop
		{46, 0x30000, BetweenStacks, 0},                      // lea rsp
		{50, 0x30070, BetweenStacks, 0},                      // mov r14
		{54, 0x30070, BetweenStacks, 0},                      // mov rsp
		{61, sp, AtCall, 0},                                  // mov rcx
		{65, sp, AtCall, 0},                                  // push r11
		{67, sp - 8, AtCall, 0},                              // popfq
		{68, sp, AtCall, 0},                                  // push rcx
		{uint64(len(dispatcherCode) - 2), sp - 8, AtCall, 0}, // ret
		{uint64(len(dispatcherCode)), sp, Outside, 0},
	} {
		mem := process(directCall)
		if c.at == uint64(len(dispatcherCode)-2) {
			mem[stackAt-24] = words(0x246, atCall, callerAt, 1, 2)
		}
		regs := cpu.Registers{PC: dispatcherAt + c.at, Known: all, Arch: cpu.AMD64}
		regs.R[cpu.RSP], regs.R[cpu.RCX] = c.sp, atCall
		before := regs
		if stop := d.Undo(&regs, mem); stop != c.stop {
			t.Errorf("at %d: %d, not %d", c.at, stop, c.stop)
			continue
		}
		switch {
		case c.stop != AtCall && regs != before:
			t.Errorf("at %d: the registers were changed", c.at)
		case c.stop == AtCall && (regs.PC != atCall || regs.SP() != sp || all&^regs.Known&calleeSaved != c.lost):
			t.Errorf("at %d: pc %#x, sp %#x, not known %#x", c.at, regs.PC, regs.SP(), all&^regs.Known&calleeSaved)
		}
	}
}

const calleeSaved = 1<<cpu.RBX | 1<<cpu.RBP | 1<<cpu.RSI | 1<<cpu.RDI | 1<<cpu.R12 | 1<<cpu.R13 | 1<<cpu.R14 | 1<<cpu.R15

// The stub is found by the call of it, also through an import table.
func TestCalledStub(t *testing.T) {
	d := NewDispatcher(dispatcherAt, dispatcherCode)
	for _, c := range []struct {
		name, call string
		more       memory
		stop       Stop
	}{
		{"direct", directCall, nil, AtCall},
		{"import table", "90 90 ff 15 00 10 00 00", memory{callerAt + 0x1000: words(stubAddr)}, AtCall},
		{"a jump through it", "90 90 90 e8 00 20 00 00", memory{callerAt + 0x2000: bytesOf("ff 25 0a 00 00 00 90 90 90 90 90 90 90 90 90 90"), callerAt + 0x2010: words(stubAddr)}, AtCall},
		{"a function that ends with a jump to it", "90 90 90 e8 00 20 00 00", memory{callerAt + 0x2000: bytesOf("48 85 c9 74 05 48 83 ec 28 90 e9 f1 cf 00 30 c3")}, AtCall},
		{"a function that may jump to two", "90 90 90 e8 00 20 00 00", memory{
			callerAt + 0x2000: bytesOf("48 85 c9 74 05 e9 f6 cf 00 30 e9 11 d0 00 30 90"), stubAddr + 0x20: bytesOf("4c 8b d1 b8 06 00 00 00 f6 04 25 08 03 fe 7f 01")}, Outside},
		{"by a register", "90 90 90 90 90 90 ff d0", nil, Outside},
		{"another function", "90 90 90 e8 00 20 00 00", memory{callerAt + 0x2000: bytesOf("55 48 89 e5 90 90")}, Outside},
		{"nowhere", "90 90 90 e8 00 00 00 40", nil, Outside},
	} {
		mem := process(c.call)
		for at, b := range c.more {
			mem[at] = b
		}
		regs := cpu.Registers{PC: dispatcherAt + 19, Known: cpu.AllKnown, Arch: cpu.AMD64}
		regs.R[cpu.RSP] = stackAt - 8
		if stop := d.Undo(&regs, mem); stop != c.stop || stop == AtCall && regs.PC != atCall {
			t.Errorf("%s: %d, pc %#x", c.name, stop, regs.PC)
		}
	}
}

func FuzzDispatcher(f *testing.F) {
	f.Add(dispatcherCode, uint64(19), uint64(stackAt-8))
	f.Add(dispatcherCode, uint64(65), uint64(stackAt-8))
	f.Fuzz(func(t *testing.T, code []byte, off, sp uint64) {
		d := NewDispatcher(dispatcherAt, code[:min(len(code), DispatcherBytes)])
		if d == nil {
			return
		}
		regs := cpu.Registers{PC: dispatcherAt + off, Known: cpu.AllKnown, Arch: cpu.AMD64}
		regs.R[cpu.RSP] = sp
		if before := regs; d.Undo(&regs, process(directCall)) != AtCall && regs != before {
			t.Error("the registers were changed")
		}
	})
}
