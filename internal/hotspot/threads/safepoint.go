package threads

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// SafepointState says whether the VM is stopping its threads, or has stopped them.
type SafepointState uint8

// The states (8 share/vm/runtime/safepoint.hpp, the same since).
const (
	SafepointNone SafepointState = iota
	Synchronizing                // it waits for threads that are still in Java code
	Synchronized                 // all threads are stopped
)

// String returns the name of the state for display.
func (s SafepointState) String() string {
	switch s {
	case Synchronizing:
		return "synchronizing"
	case Synchronized:
		return "synchronized"
	}
	return "none"
}

// Safepoint is the state of the VM's safepoint.
type Safepoint struct {
	State     SafepointState
	Began     int64  // ns, CLOCK_MONOTONIC; 0: not known
	Operation string // the VM's class for the operation: VM_G1CollectForAllocation; "" if not known
}

// safepointVars are the addresses of the variables that say so in the VM's library. The VM does not
// publish them, but distributions leave the symbols in their libraries. If they do not, the page
// that compiled code polls is published up to 9.
type safepointVars struct {
	state, began, operation uint64
	timer, zero             uint64            // up to 12: when it began, counted from zero
	vtables                 map[uint64]string // address point to class, of VM operations
	page                    uint64            // address of the pointer to the page, if there is no state
}

// Symbols of the library, as its compiler mangles them.
const (
	symState     = "_ZN20SafepointSynchronize6_stateE"
	symBegan     = "_ZN16SafepointTracing29_last_safepoint_begin_time_nsE"
	symTimer     = "_ZN14RuntimeService16_safepoint_timerE" // 8 share/vm/services/runtimeService.cpp: set when one begins,
	symZero      = "_ZL18initial_time_count"                // to os::elapsed_counter(): CLOCK_MONOTONIC less this (os_linux.cpp)
	symOperation = "_ZN8VMThread17_cur_vm_operationE"
	symVTable    = "_ZTV"
)

// Safepoint reads the state of the VM's safepoint. The error says why that is not possible; it is
// the same at each call.
func (ts *Threads) Safepoint() (s Safepoint, err error) {
	v := &ts.safepoint
	if !ts.safepointTried {
		ts.safepointTried = true
		*v, ts.safepointErr = ts.findSafepoint()
	}
	if ts.safepointErr != nil {
		return s, ts.safepointErr
	}
	if v.page != 0 {
		return ts.safepointByPage()
	}
	state, ok := ts.vm.Mem.U32(v.state)
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
		s.Began, _ = ts.i64(v.began)
	} else if v.timer != 0 && v.zero != 0 {
		at, ok1 := ts.i64(v.timer)
		zero, ok2 := ts.i64(v.zero)
		if ok1 && ok2 {
			s.Began = at + zero
		}
	}
	if v.operation != 0 {
		if op, ok := ts.vm.Mem.U64(v.operation); ok {
			if table, ok := ts.vm.Mem.U64(op); ok {
				s.Operation = v.vtables[table]
			}
		}
	}
	return s, nil
}

// safepointByPage detects a safepoint by the page that compiled code polls: the page is unreadable
// from when the safepoint is to begin until it ends (8 share/vm/runtime/safepoint.cpp). As long as
// threads are in Java code or in the VM, the safepoint is not reached.
func (ts *Threads) safepointByPage() (s Safepoint, err error) {
	page, ok := ts.vm.Mem.U64(ts.safepoint.page)
	if !ok {
		return s, fmt.Errorf("read the VM's safepoint: %w", target.ErrMemory)
	}
	maps, err := ts.vm.Process.Mappings()
	if err != nil {
		return s, fmt.Errorf("read the VM's safepoint: %w", err)
	}
	i := slices.IndexFunc(maps, func(m target.Mapping) bool { return m.Start <= page && page < m.End })
	if i < 0 || maps[i].Perm&target.PermRead != 0 {
		return s, nil
	}
	if s.State = Synchronized; len(ts.DumpThreads().InJava()) > 0 {
		s.State = Synchronizing
	}
	return s, nil
}

// Since returns how long ago it began, by a clock of the same kind; 0 if that is not known or makes
// no sense (a container may have a clock of its own).
func (s Safepoint) Since(now int64) time.Duration {
	if s.Began <= 0 || s.Began > now || now-s.Began > int64(24*time.Hour) {
		return 0
	}
	return time.Duration(now - s.Began)
}

// findSafepoint looks up the variables.
func (ts *Threads) findSafepoint() (v safepointVars, err error) {
	syms, strs, bias, err := ts.vm.LibrarySymbols()
	if err == nil {
		if v = scanSymbols(syms, strs, bias); v.state != 0 {
			return v, nil
		}
		err = errors.New("the VM's library has no symbol that tells of its safepoint")
	}
	// From 10 on each thread may have its own page.
	page := ts.vm.Field("os::_polling_page")
	if apart, _ := ts.vm.Flag("ThreadLocalHandshakes"); page.OK && apart != "true" && ts.vm.Process != nil {
		return safepointVars{page: page.Addr}, nil
	}
	return v, err
}

// scanSymbols scans a symbol table in its raw form, which is much faster than decoding all of its
// 70,000 symbols.
func scanSymbols(symbols, names []byte, bias uint64) (v safepointVars) {
	v.vtables = make(map[uint64]string)
	for ; len(symbols) >= vmstructs.SymbolSize; symbols = symbols[vmstructs.SymbolSize:] {
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
		case symTimer:
			v.timer = value
		case symZero:
			v.zero = value
		case symOperation:
			v.operation = value
		default:
			// Objects point two words into the vtable of their class.
			if class, ok := operationClass(string(name)); ok {
				v.vtables[value+16] = class
			}
		}
	}
	return v
}

// operationClass returns the class of a VM operation's table of virtual functions: VM_Halt for
// _ZTV7VM_Halt.
func operationClass(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, symVTable)
	if !ok {
		return "", false
	}
	class := strings.TrimLeft(rest, "0123456789")
	return class, class != rest && strings.HasPrefix(class, "VM_")
}
