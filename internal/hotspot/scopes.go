package hotspot

import (
	"encoding/binary"

	"github.com/candid-profiler/candid/internal/hotspot/metadata"
)

// Bounds on scopes.
const (
	maxScopes    = 4 << 20  // bytes of one nmethod's scopes
	maxAllScopes = 64 << 20 // bytes of all that are kept, including their metadata
	maxInlining  = 512      // depth; the compilers stop long before
	maxMetadata  = 1 << 16  // words of one nmethod's metadata; the largest seen have some 1,000
)

// scopeTable is an nmethod's scopes data.
type scopeTable struct {
	data    []byte
	inlines bool     // some pc stands for more than one method
	methods []uint64 // the first words of the nmethod's metadata, where scopes refer to, Method* for good
	// proved are the ids of the methods that those words point to, as far as they were read while
	// the nmethod was there. It keeps their classes loaded, so they hold as long as it does.
	proved []uint32
}

// keepMetadata appends words of the metadata.
func (vm *VM) keepMetadata(s *scopeTable, raw []byte) {
	vm.names.scopeBytes += len(raw)
	for ; len(raw) >= 8; raw = raw[8:] {
		s.methods = append(s.methods, binary.LittleEndian.Uint64(raw))
	}
}

// scopesSize returns how many bytes the scopes data has; 0 if it cannot be valid.
func (d *debugInfo) scopesSize() uint64 {
	if d.scopesLo == 0 || d.scopesHi <= d.scopesLo || d.scopesHi-d.scopesLo > maxScopes {
		return 0
	}
	return d.scopesHi - d.scopesLo
}

// scope is one method at a pc: the method itself or one that was inlined there.
type scope struct {
	method uint64 // Method*
	bci    int32  // -1: before the first bytecode
	word   uint32 // of the metadata, counted from 1
	id     uint32 // of the method; 0: not looked up
}

// scopesOf reads the scopes data of an nmethod on first need; nil if it cannot
// be read.
func (vm *VM) scopesOf(b *blob) *scopeTable {
	nm := b.nm
	if nm.scopes != nil {
		return nm.scopes
	}
	n := nm.debug.scopesSize()
	if b.dead || n == 0 {
		return nil
	}
	data := make([]byte, n)
	if !vm.Mem.Read(data, nm.debug.scopesLo) {
		return nil
	}
	nm.read = vm.Mem.Reads
	vm.keepScopes(nm, data)
	return nm.scopes
}

// keepScopes stores the scopes data of an nmethod whose pcs are known.
func (vm *VM) keepScopes(nm *nmethod, data []byte) {
	s := &scopeTable{data: data}
	if vm.names.scopeBytes += len(s.data); vm.names.scopeBytes > maxAllScopes {
		for _, o := range vm.code.blobs {
			if o != nil && o.nm != nil {
				o.nm.scopes = nil
			}
		}
		vm.names.scopeBytes = len(s.data)
	}
	bias := metadata.Unsigned5Bias(vm.Major)
	for i := range nm.pcs {
		if at := nm.pcs[i].scope; at > 0 && int(at) < len(s.data) {
			u := metadata.Unsigned5{Data: s.data, Pos: int(at), Bias: bias}
			if u.Next() != 0 && !u.Bad {
				s.inlines = true
				break
			}
		}
	}
	nm.scopes = s
}

// metadata returns a word of the nmethod's metadata, counted from 1; 0 if it has no such word or
// the word cannot be read.
func (vm *VM) metadata(nm *nmethod, index uint64) uint64 {
	s := nm.scopes
	if index == 0 || index > maxMetadata {
		return 0
	}
	if have := uint64(len(s.methods)); index > have {
		raw := make([]byte, 8*(index-have))
		if !vm.Mem.Read(raw, nm.debug.metadata+8*have) {
			return 0
		}
		nm.read = vm.Mem.Reads
		vm.keepMetadata(s, raw)
	}
	return s.methods[index-1]
}

// decodeScopes appends the chain of scopes that begins at offset at, innermost first
// (docs/hotspot.md, "Scopes"). The methods are indexes into the metadata, counted from 1; 0 is
// none. ok is false if the data is not a chain.
func decodeScopes(out []scope, data []byte, bias uint32, at int32) (_ []scope, ok bool) {
	for range maxInlining {
		if at <= 0 || int(at) >= len(data) {
			return out, false
		}
		u := metadata.Unsigned5{Data: data, Pos: int(at), Bias: bias}
		sender, method, bci := u.Next(), u.Next(), u.Next()
		if u.Bad || sender >= uint32(at) || bci > 1<<16 {
			return out, false // senders come first in the data
		}
		out = append(out, scope{method: uint64(method), bci: int32(bci) - 1})
		if sender == 0 {
			return out, true
		}
		at = int32(sender)
	}
	return out, false
}

// chain appends the scopes that element i of b's pcs stands for, innermost first, with Method
// pointers. It returns false, with out unchanged, unless the outermost method is the nmethod's own,
// as it must be.
func (vm *VM) chain(out []scope, b *blob, i int) ([]scope, bool) {
	start := len(out)
	if b.nm == nil || i < 0 || i >= len(b.nm.pcs) || b.nm.pcs[i].scope == 0 {
		return out, false
	}
	s := vm.scopesOf(b)
	if s == nil {
		return out, false
	}
	out, ok := decodeScopes(out, s.data, metadata.Unsigned5Bias(vm.Major), b.nm.pcs[i].scope)
	if !ok {
		return out[:start], false
	}
	for k := start; k < len(out); k++ {
		s := &out[k]
		s.word = uint32(s.method)
		s.method = vm.metadata(b.nm, s.method)
	}
	if out[len(out)-1].method != b.nm.method {
		return out[:start], false
	}
	return out, true
}

// proved returns the method of a scope of b if it was read while b was there; nil if it was not, or
// is not known any more.
func (vm *VM) proved(b *blob, s *scope) *method {
	t := b.nm.scopes
	if t == nil || s.word == 0 || int(s.word) > len(t.proved) || t.proved[s.word-1] == 0 {
		return nil
	}
	m := vm.methodAt(t.proved[s.word-1])
	if m == nil || m.ptr != s.method {
		return nil
	}
	m.used = vm.Batch
	return m
}

// prove keeps the methods of b's scopes, which were read while b was there.
func (vm *VM) prove(b *blob, chain []scope) {
	t := b.nm.scopes
	// Within a batch, methods count as unchanged without another look, and a blob that is new may
	// be younger than that look.
	if t == nil || b.born == vm.Batch {
		return
	}
	for i := range chain {
		s := &chain[i]
		if s.id == 0 || s.word == 0 || int(s.word) > len(t.methods) {
			continue
		}
		if n := len(t.methods) - len(t.proved); n > 0 {
			t.proved = append(t.proved, make([]uint32, n)...)
			vm.names.scopeBytes += 4 * n
		}
		t.proved[s.word-1] = s.id
	}
}
