package hotspot

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/candid-profiler/candid/internal/hotspot/vmstructs"
	"github.com/candid-profiler/candid/internal/target"
)

// The blobs called StubRoutines hold dozens of stubs each: copies, checksums, ciphers. A static
// variable of class StubRoutines holds the begin of each. The VM publishes some of these variables;
// its library's symbol table names the others.

// maxStubStarts bounds how many variables are kept.
const maxStubStarts = 4096

// stubStart is the begin of a stub.
type stubStart struct {
	addr uint64
	name string
}

// notStubs are parts of names of variables that hold the address of data, or of a place in the
// middle of a stub.
var notStubs = []string{"mask", "table", "adr", "addr", "return_address", "shuf", "sign_flip", "double_s", "float_s", "count", "one_", "fixup", "_L", "constant", "iota", "perm"}

// stubNameAt names the stub in b, a blob of StubRoutines, that pc lies in.
func (vm *VM) stubNameAt(b *blob, pc uint64) string {
	n := &vm.names
	if vm.inCallStub(b, pc) {
		return "StubRoutines::call_stub" // on nearly every stack
	}
	if n.stubs == nil || n.stubsMissed != vm.Batch && vm.stubBefore(b, pc) == nil {
		// Some stubs are made after the VM has started, so a miss is worth another look in the next
		// batch.
		n.stubsMissed = vm.Batch
		n.stubs = vm.readStubs()
	}
	if s := vm.stubBefore(b, pc); s != nil && (n.stubsAll || vm.withinStub(b, s.addr, pc)) {
		return "StubRoutines::" + s.name
	}
	return stubName(b)
}

// stubBefore returns the last stub of b that begins at or before pc.
func (vm *VM) stubBefore(b *blob, pc uint64) *stubStart {
	all := vm.names.stubs
	i, _ := slices.BinarySearchFunc(all, pc+1, func(s stubStart, at uint64) int { return cmp.Compare(s.addr, at) })
	if i == 0 || !b.contains(all[i-1].addr) {
		return nil
	}
	return &all[i-1]
}

// stubAlignment is the minimum alignment of stubs, in bytes.
const stubAlignment = 32

// withinStub reports whether pc lies in the stub that begins at start, if not all stubs are known:
// there must be no return in between that is followed by the begin of another stub. Stubs with
// several returns have no name in their later parts.
func (vm *VM) withinStub(b *blob, start, pc uint64) bool {
	code := vm.codeOf(b)
	if start < b.codeBegin || pc-b.codeBegin > uint64(len(code)) {
		return false
	}
	for at := start; at < pc; at++ {
		if next := (at + stubAlignment) &^ (stubAlignment - 1); code[at-b.codeBegin] == 0xC3 && next <= pc {
			return false
		}
	}
	return true
}

// readStubs reads where the stubs begin, by address.
func (vm *VM) readStubs() []stubStart {
	if vm.names.stubVars == nil {
		vm.names.stubVars = vm.stubVariables()
	}
	vars := vm.names.stubVars
	values := make([]byte, 8*len(vars))
	reqs := make([]target.Read, len(vars))
	for i := range vars {
		reqs[i] = target.Read{Addr: vars[i].addr, Buf: values[8*i:][:8]}
	}
	vm.Mem.ReadV(reqs)
	out := make([]stubStart, 0, len(vars))
	for i := range vars {
		v := binary.LittleEndian.Uint64(values[8*i:])
		if b := vm.find(v); reqs[i].OK && b != nil && b.kind == blobStubRoutines && b.contains(v) {
			out = append(out, stubStart{v, vars[i].name})
		}
	}
	// Several variables may hold one address; the shortest name is the most general.
	slices.SortFunc(out, func(a, b stubStart) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	return slices.CompactFunc(out, func(a, b stubStart) bool { return a.addr == b.addr })
}

// stubVariables lists the variables that hold the begin of a stub.
func (vm *VM) stubVariables() []stubStart {
	seen := make(map[uint64]bool)
	out := []stubStart{}
	add := func(addr uint64, name string) {
		name = strings.TrimSuffix(strings.TrimLeft(name, "_"), "_entry")
		for _, part := range notStubs {
			if strings.Contains(name, part) {
				return
			}
		}
		if name != "" && !seen[addr] && len(out) < maxStubStarts {
			seen[addr] = true
			out = append(out, stubStart{addr, name})
		}
	}
	for name, f := range vm.Tables.Fields {
		if s, ok := strings.CutPrefix(name, "StubRoutines::"); ok && f.Addr != 0 {
			add(vm.Tables.Here(f).Addr, s[strings.LastIndexByte(s, ':')+1:])
		}
	}
	var symbols []stubStart
	if syms, strs, bias, err := vm.LibrarySymbols(); err == nil {
		symbols = stubSymbols(syms, strs, bias)
	}
	vm.names.stubsAll = len(symbols) > 0
	for _, s := range symbols {
		add(s.addr, s.name)
	}
	return out
}

// stubSymbols selects the variables of StubRoutines from a symbol table.
func stubSymbols(syms, strs []byte, bias uint64) []stubStart {
	var out []stubStart
	for ; len(syms) >= vmstructs.SymbolSize && len(out) < maxStubStarts; syms = syms[vmstructs.SymbolSize:] {
		at := binary.LittleEndian.Uint32(syms)
		if elf.ST_TYPE(syms[4]) != elf.STT_OBJECT || uint64(at) >= uint64(len(strs)) || binary.LittleEndian.Uint64(syms[16:]) != 8 {
			continue
		}
		name := strs[at:]
		if len(name) < len(stubPrefix) || string(name[:len(stubPrefix)]) != stubPrefix {
			continue
		}
		end := slices.Index(name[:min(len(name), vmstructs.MaxString)], 0)
		if end < 0 {
			continue
		}
		if last := lastPart(string(name[len(stubPrefix):end])); last != "" {
			out = append(out, stubStart{binary.LittleEndian.Uint64(syms[8:]) + bias, last})
		}
	}
	return out
}

// stubPrefix is how C++ mangles the names of the members of StubRoutines: it is followed by the
// length and text of each further part, then E.
const stubPrefix = "_ZN12StubRoutines"

// lastPart returns the last part of such a name.
func lastPart(s string) string {
	last := ""
	for s != "E" {
		digits := 0
		for digits < len(s) && digits < 4 && s[digits] >= '0' && s[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(s[:digits])
		if err != nil || n > len(s)-digits {
			return ""
		}
		last, s = s[digits:digits+n], s[digits+n:]
	}
	return last
}
