package vmstructs

import (
	"errors"
	"fmt"
	"sort"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
)

// VM is a Java VM in another process, as it describes itself: its memory, its tables, its flags
// and its version. The rooms of package hotspot read the VM through it, all from one goroutine.
type VM struct {
	Mem     Memory          // the process itself
	Process *target.Process // nil if only a memory image is read
	File    string          // path of the VM's library in the target

	*Tables
	Arch    cpu.Arch
	Major   int    // feature release of the JDK: 8 to 27
	release string // the VM's own release string: 17.0.15+6-Debian-1

	// Batch is the number of the current batch of samples. Whoever keeps what was read compares it
	// with the process before its first use in a batch.
	Batch uint32

	flags *flagTable
	notes map[string]bool
}

// Open finds the Java VM in p. known may be nil. The error wraps ErrNotHotSpot if there is no
// VM and ErrNotReady if it is still starting. maps are the process's mappings.
func Open(p *target.Process, known *Finder) (vm *VM, maps []target.Mapping, err error) {
	symbols, file, maps, err := Find(p, known)
	if err != nil {
		return nil, nil, fmt.Errorf("open the Java VM of process %d: %w", p.PID, err)
	}
	vm, err = OpenReader(p.Memory(), symbols, known)
	if errors.Is(err, ErrNotHotSpot) {
		// While a library is being loaded, its code lies for a moment where its data will be.
		if _, table := readTables(p.Memory(), symbols); table != nil {
			err = fmt.Errorf("its tables are not in place: %v: %w", table, ErrNotReady)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open the Java VM of process %d (%s): %w", p.PID, file, err)
	}
	vm.File, vm.Process, vm.Arch = file, p, p.Arch()
	return vm, maps, nil
}

// OpenReader reads the VM's tables from memory; symbols holds the addresses of the exported
// gHotSpotVM* variables. known, which may be nil, holds what other VMs have in common with it.
func OpenReader(r target.Reader, symbols map[string]uint64, known *Finder) (*VM, error) {
	t, err := readTables(r, symbols)
	if err != nil {
		return nil, err
	}
	t.Published = known.published(t.Published)
	vm := &VM{Mem: Memory{Reader: r}, Tables: t, Arch: cpu.Host()}
	if err := vm.readVersion(); err != nil {
		return nil, err
	}
	flags, _, err := vm.readFlags()
	if err != nil {
		return nil, err
	}
	vm.flags = known.flags(flags)
	return vm, nil
}

// Note stores a sentence about something that does not work with this VM.
func (vm *VM) Note(s string) {
	if vm.notes == nil {
		vm.notes = make(map[string]bool)
	}
	if len(vm.notes) < 64 {
		vm.notes[s] = true
	}
}

// Missing notes that a feature does not work because the VM does not publish a field.
func (vm *VM) Missing(field, feature string) {
	vm.Note(fmt.Sprintf("the VM does not publish %s: no %s", field, feature))
}

// Notes returns what does not work with this VM, and why, one sentence each.
func (vm *VM) Notes() []string {
	out := make([]string, 0, len(vm.notes))
	for s := range vm.notes {
		out = append(out, s)
	}
	sort.Strings(out)
	return out
}

// readVersion finds the JDK's version. Up to 21 JDK_Version holds it; there
// Abstract_VM_Version may be HotSpot's own number (25 in JDK 8).
func (vm *VM) readVersion() error {
	if f := vm.Field("JDK_Version::_current"); f.OK {
		w, ok := vm.Mem.U32(f.Addr)
		if !ok {
			return errors.New("read the JDK's version: memory cannot be read")
		}
		vm.Major = int(w & 0xff)
	} else if f := vm.Field("Abstract_VM_Version::_vm_major_version"); f.OK {
		v, _ := vm.Mem.Static(f)
		vm.Major = int(v)
	}
	if vm.Major == 0 {
		return fmt.Errorf("the JDK's version is not filled in: %w", ErrNotReady)
	}
	if vm.Major < 8 || vm.Major > 99 {
		return fmt.Errorf("JDK %d is not supported, 8 and later are: %w", vm.Major, ErrNotHotSpot)
	}
	// Release strings look like 25.512-b08, 17.0.15+6-Debian-1 or 25.0.3+9-LTS.
	if p, ok := vm.Mem.Static(vm.Field("Abstract_VM_Version::_s_vm_release")); ok {
		vm.release, _ = vm.Mem.CString(p, MaxString)
	}
	return nil
}

// Release returns the VM's own release string: "17.0.15+6-Debian-1".
func (vm *VM) Release() string { return vm.release }

// Version returns the JDK's version as users write it: "17.0.15". For JDK 8 only the update is
// known: "8.0.512".
func (vm *VM) Version() string {
	s := vm.release
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && c != '.' {
			s = s[:i]
			break
		}
	}
	if vm.Major == 8 {
		// HotSpot numbered itself 25.x for JDK 8 update x.
		if len(s) > 3 && s[:3] == "25." {
			return "8.0." + s[3:]
		}
		return "8"
	}
	if s == "" {
		return fmt.Sprint(vm.Major)
	}
	return s
}
