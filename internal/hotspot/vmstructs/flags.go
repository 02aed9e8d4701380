package vmstructs

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

const maxFlags = 1 << 13 // a product VM has about 700 to 1,300

// jvmFlag is one of the VM's -XX flags.
type jvmFlag struct {
	addr uint64 // counted from Tables.base
	kind string // type, as the VM calls it; "" if the VM holds it as a number (17+)
}

// flagTable holds the flags that a VM has, by name, the same in all VMs of a library. It does not
// change.
type flagTable struct{ byName map[string]jvmFlag }

// flag returns a flag with its address in this VM.
func (vm *VM) flag(name string) (jvmFlag, bool) {
	if vm.flags == nil {
		return jvmFlag{}, false
	}
	f, ok := vm.flags.byName[name]
	f.addr += vm.Tables.base
	return f, ok
}

// readFlags finds the flags by name, and who set each of them (an index into flagOrigins). Their
// values are read on request.
func (vm *VM) readFlags() (flags *flagTable, from map[string]uint8, err error) {
	t := vm.Tables
	class := "JVMFlag"
	if !t.Field("JVMFlag::flags").OK {
		class = "Flag" // 8
	}
	table, ok1 := vm.Mem.Static(t.Field(class + "::flags"))
	count, ok2 := vm.Mem.Static(t.Field(class + "::numFlags"))
	origin := t.Field(class + "::_flags")
	size, name, addr, kind := t.Sizes[class], t.Field(class+"::_name"), t.Field(class+"::_addr"), t.Field(class+"::_type")
	flags, from = &flagTable{make(map[string]jvmFlag)}, make(map[string]uint8)
	if !ok1 || !ok2 || size < 16 || size > 256 || !name.OK || !addr.OK {
		vm.Note("the VM does not publish its flags: the collector is unknown")
		return flags, from, nil
	}
	if table == 0 || count == 0 {
		return nil, nil, fmt.Errorf("the VM's flags are not set up: %w", ErrNotReady)
	}
	count = min(count, maxFlags)
	raw := make([]byte, count*size)
	if vm.Mem.Reader.ReadAt(raw, table) != nil {
		vm.Note("the VM's flags cannot be read: the collector is unknown")
		return flags, from, nil
	}
	kinds := make(map[string]string) // each read once
	texts := chunked{r: vm.Mem.Reader, chunks: make(map[uint64][]byte)}
	for ; len(raw) >= int(size); raw = raw[size:] {
		s, ok := texts.cstring(name.Load(raw))
		if !ok || s == "" {
			continue
		}
		f := jvmFlag{addr: addr.Load(raw) - t.base}
		if kind.Width == 8 {
			kind, _ := texts.cstring(kind.Load(raw))
			if known, ok := kinds[kind]; ok {
				kind = known
			} else {
				kinds[kind] = kind
			}
			f.kind = kind
		} else {
			f.kind = flagKinds[uint32(kind.Load(raw))]
		}
		if origin.OK {
			from[s] = uint8(origin.Load(raw) & originMask)
		}
		flags.byName[s] = f
	}
	return flags, from, nil
}

// originMask selects the bits of a flag that say who set it, and flagOrigins names the origins (17
// share/runtime/flags/jvmFlag.hpp, JVMFlagOrigin; 8 share/runtime/globals.hpp), in the words of the
// Flight Recorder.
const originMask = 15

var flagOrigins = []string{
	"Default", "Command line", "Environment variable", "Config file", "Management", "Ergonomic", "Attach on demand", "Internal", "JImage resource",
}

// SetFlag is a flag that was not left at its default.
type SetFlag struct {
	Name   string
	Kind   string // type, as the VM calls it
	Value  string
	Origin string // who set it: "Command line"
}

// SetFlags returns the flags that the user or the VM itself has set, by name.
func (vm *VM) SetFlags() []SetFlag {
	_, origins, err := vm.readFlags()
	if err != nil {
		return nil
	}
	var out []SetFlag
	for name, from := range origins {
		f, ok := vm.flag(name)
		if !ok || from == 0 || int(from) >= len(flagOrigins) {
			continue
		}
		s := SetFlag{Name: name, Kind: f.kind, Origin: flagOrigins[from]}
		if f.kind == "ccstr" || f.kind == "ccstrlist" {
			var at uint64
			if at, ok = vm.Mem.U64(f.addr); ok && at != 0 {
				s.Value, ok = vm.Mem.CString(at, MaxString)
			}
		} else {
			s.Value, ok = vm.Flag(name)
		}
		if ok {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b SetFlag) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// flagKinds names the types of flags in the releases that number them (17
// share/runtime/flags/jvmFlag.hpp, in the order of its list of types).
var flagKinds = map[uint32]string{
	0: "bool", 1: "int", 2: "uint", 3: "intx", 4: "uintx", 5: "uint64_t", 6: "size_t", 7: "double", 8: "ccstr", 9: "ccstrlist",
}

// Flag returns the value of the VM's -XX flag as text: true, 65536. ok is false if there is no such
// flag or it cannot be read; flags that are strings are not read.
func (vm *VM) Flag(name string) (value string, ok bool) {
	f, ok := vm.flag(name)
	if !ok {
		return "", false
	}
	var b [8]byte
	switch f.kind {
	case "bool":
		if vm.Mem.Reader.ReadAt(b[:1], f.addr) != nil {
			return "", false
		}
		return strconv.FormatBool(b[0] != 0), true
	case "int", "uint":
		if vm.Mem.Reader.ReadAt(b[:4], f.addr) != nil {
			return "", false
		}
		v := binary.LittleEndian.Uint32(b[:])
		if f.kind == "int" {
			return strconv.Itoa(int(int32(v))), true
		}
		return strconv.FormatUint(uint64(v), 10), true
	case "double":
		if vm.Mem.Reader.ReadAt(b[:], f.addr) != nil {
			return "", false
		}
		return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(b[:])), 'g', -1, 64), true
	case "intx", "uintx", "uint64_t", "size_t":
		if vm.Mem.Reader.ReadAt(b[:], f.addr) != nil {
			return "", false
		}
		v := binary.LittleEndian.Uint64(b[:])
		if f.kind == "intx" {
			return strconv.FormatInt(int64(v), 10), true
		}
		return strconv.FormatUint(v, 10), true
	}
	return "", false
}

// HasFlag reports whether the VM has a flag of this name.
func (vm *VM) HasFlag(name string) bool {
	_, ok := vm.flag(name)
	return ok
}

// FlagSet reports whether the VM has the bool flag and it is true.
func (vm *VM) FlagSet(name string) bool {
	f, ok := vm.flag(name)
	if !ok {
		return false
	}
	v, ok := vm.Mem.U8(f.addr)
	return ok && v != 0
}

// GC returns the name of the collector, "" if it is not a known one.
func (vm *VM) GC() string {
	for _, c := range []struct{ flag, name string }{
		{"UseG1GC", "G1"}, {"UseParallelGC", "Parallel"}, {"UseParallelOldGC", "Parallel"}, {"UseZGC", "ZGC"}, {"UseShenandoahGC", "Shenandoah"},
		{"UseConcMarkSweepGC", "CMS"}, {"UseEpsilonGC", "Epsilon"}, {"UseSerialGC", "Serial"},
	} {
		if vm.FlagSet(c.flag) {
			return c.name
		}
	}
	return ""
}
