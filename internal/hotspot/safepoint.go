package hotspot

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
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
		if vm.process == nil {
			vm.safepointErr = fmt.Errorf("look for the VM's safepoint: there is only an image of memory")
		} else {
			*v, vm.safepointErr = findSafepoint(vm.process, vm.file)
		}
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

// findSafepoint looks the variables up in the symbol table of the VM's library.
func findSafepoint(p *target.Process, file string) (v safepointVars, err error) {
	maps, err := p.Mappings()
	if err != nil {
		return v, fmt.Errorf("look for the VM's safepoint: %w", err)
	}
	for _, m := range maps {
		if m.Path != file || !m.FileBacked() {
			continue
		}
		f, err := p.OpenFile(m)
		if err != nil {
			return v, fmt.Errorf("look for the VM's safepoint: %w", err)
		}
		defer f.Close()
		e, err := elf.NewFile(f)
		if err != nil {
			return v, fmt.Errorf("look for the VM's safepoint in %s: %w", file, err)
		}
		bias, ok := loadBias(e, m, maps)
		if !ok {
			return v, fmt.Errorf("look for the VM's safepoint in %s: no mapping matches its segments", file)
		}
		return readSafepointVars(e, bias)
	}
	return v, fmt.Errorf("look for the VM's safepoint: %s is not mapped any more", file)
}

// maxSymbolTable bounds a symbol table; libjvm's has 1.6 MB, its names 4 MB.
const maxSymbolTable = 64 << 20

// readSafepointVars scans the symbols in their raw form, which is much quicker
// than to decode all 70,000.
func readSafepointVars(e *elf.File, bias uint64) (v safepointVars, err error) {
	none := fmt.Errorf("the VM's library has no symbols that tell of its safepoint")
	section := e.Section(".symtab")
	if section == nil || e.Class != elf.ELFCLASS64 || e.ByteOrder != binary.LittleEndian || int(section.Link) >= len(e.Sections) {
		return v, none
	}
	symbols, err := sectionBytes(section)
	if err != nil {
		return v, err
	}
	names, err := sectionBytes(e.Sections[section.Link])
	if err != nil {
		return v, err
	}
	v.vtables = make(map[uint64]string)
	const size = 24 // of an Elf64_Sym: name, info, other, section, value, size
	for ; len(symbols) >= size; symbols = symbols[size:] {
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
	if v.state == 0 {
		return v, none
	}
	return v, nil
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

func sectionBytes(s *elf.Section) ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.Size > maxSymbolTable {
		return nil, fmt.Errorf("the VM's library has a symbol table of %d bytes", s.Size)
	}
	b := make([]byte, s.Size)
	if _, err := io.ReadFull(s.Open(), b); err != nil {
		return nil, fmt.Errorf("read the symbols of the VM's library: %w", err)
	}
	return b, nil
}
