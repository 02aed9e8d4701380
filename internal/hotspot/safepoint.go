package hotspot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// SafepointState is whether the VM stops its threads, or has.
type SafepointState uint8

// The states (8 share/vm/runtime/safepoint.hpp, the same since).
const (
	SafepointNone SafepointState = iota
	Synchronizing                // it waits for threads that are still in Java code
	Synchronized                 // all stand still
)

// String names the state for people.
func (s SafepointState) String() string {
	switch s {
	case Synchronizing:
		return "synchronizing"
	case Synchronized:
		return "synchronized"
	}
	return "none"
}

// Safepoint is what the VM's safepoint is at.
type Safepoint struct {
	State     SafepointState
	Began     int64  // ns, CLOCK_MONOTONIC; 0: not known
	Operation string // the VM's class for what is to be done: VM_G1CollectForAllocation; "" if not known
}

// safepointVars are where the VM's library has the variables that say so. The VM
// does not publish them, but distributions leave the symbols of their libraries
// in; up to 11 nothing there says when a safepoint began.
type safepointVars struct {
	state, began, operation uint64
	vtables                 map[uint64]string // address point to class, of VM operations
}

// Symbols of the library, as its compiler mangles them.
const (
	symState     = "_ZN20SafepointSynchronize6_stateE"
	symBegan     = "_ZN16SafepointTracing29_last_safepoint_begin_time_nsE"
	symOperation = "_ZN8VMThread17_cur_vm_operationE"
	symVTable    = "_ZTV"
)

// Safepoint reads what the VM's safepoint is at. The error says why that cannot
// be told; it is the same at each call.
func (vm *VM) Safepoint() (s Safepoint, err error) {
	v := &vm.safepoint
	if !vm.safepointTried {
		vm.safepointTried = true
		*v, vm.safepointErr = vm.findSafepoint()
	}
	if vm.safepointErr != nil {
		return s, vm.safepointErr
	}
	state, ok := vm.peek.u32(v.state)
	if !ok {
		return s, fmt.Errorf("read the VM's safepoint: %w", target.ErrMemory)
	}
	if s.State = SafepointState(state); s.State > Synchronized {
		s.State = SafepointNone
	}
	if s.State == SafepointNone {
		return s, nil
	}
	if v.began != 0 {
		s.Began, _ = vm.i64(v.began)
	}
	if v.operation != 0 {
		if op, ok := vm.peek.u64(v.operation); ok {
			if table, ok := vm.peek.u64(op); ok {
				s.Operation = v.vtables[table]
			}
		}
	}
	return s, nil
}

// Since is how long ago it began, by a clock of the same kind; 0 if that is not
// known or makes no sense (a container may have a clock of its own).
func (s Safepoint) Since(now int64) time.Duration {
	if s.Began <= 0 || s.Began > now || now-s.Began > int64(24*time.Hour) {
		return 0
	}
	return time.Duration(now - s.Began)
}

// findSafepoint looks the variables up.
func (vm *VM) findSafepoint() (v safepointVars, err error) {
	syms, strs, bias, err := vm.librarySymbols()
	if err != nil {
		return v, err
	}
	if v = scanSymbols(syms, strs, bias); v.state == 0 {
		return v, errors.New("the VM's library has no symbol that tells of its safepoint")
	}
	return v, nil
}

// scanSymbols looks through a symbol table in its raw form, which is much quicker
// than to decode all of its 70,000 symbols.
func scanSymbols(symbols, names []byte, bias uint64) (v safepointVars) {
	v.vtables = make(map[uint64]string)
	for ; len(symbols) >= symbolSize; symbols = symbols[symbolSize:] {
		at := binary.LittleEndian.Uint32(symbols)
		if uint64(at) >= uint64(len(names)) || !bytes.HasPrefix(names[at:], []byte("_Z")) {
			continue
		}
		name := names[at:min(len(names), int(at)+128)]
		name, _, _ = bytes.Cut(name, []byte{0})
		value := binary.LittleEndian.Uint64(symbols[8:]) + bias
		switch string(name) {
		case symState:
			v.state = value
		case symBegan:
			v.began = value
		case symOperation:
			v.operation = value
		default:
			// Objects point two words into the table of their class.
			if class, ok := operationClass(string(name)); ok {
				v.vtables[value+16] = class
			}
		}
	}
	return v
}

// operationClass gives the class of a VM operation's table of virtual functions:
// VM_Halt of _ZTV7VM_Halt.
func operationClass(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, symVTable)
	if !ok {
		return "", false
	}
	class := strings.TrimLeft(rest, "0123456789")
	return class, class != rest && strings.HasPrefix(class, "VM_")
}
