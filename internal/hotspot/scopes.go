package hotspot

// Bounds on scopes.
const (
	maxScopes    = 4 << 20  // bytes of one nmethod's scopes
	maxAllScopes = 64 << 20 // bytes of all that are kept
	maxInlining  = 512      // depth; the compilers stop long before
)

// scopeTable is an nmethod's scopes data.
type scopeTable struct {
	data    []byte
	inlines bool // some pc stands for more than one method
}

// scope is one method at a pc: itself or one that was inlined there.
type scope struct {
	method uint64 // Method*
	bci    int32  // -1: before the first bytecode
}

// scopesOf reads the scopes data of an nmethod on first need; nil if it cannot
// be read.
func (vm *VM) scopesOf(b *blob) *scopeTable {
	nm := b.nm
	if nm.scopes != nil {
		return nm.scopes
	}
	d := &nm.debug
	if b.dead || d.scopesLo == 0 || d.scopesHi <= d.scopesLo || d.scopesHi-d.scopesLo > maxScopes {
		return nil
	}
	s := &scopeTable{data: make([]byte, d.scopesHi-d.scopesLo)}
	if vm.peek.r.ReadAt(s.data, d.scopesLo) != nil {
		return nil
	}
	if vm.names.scopeBytes += len(s.data); vm.names.scopeBytes > maxAllScopes {
		for _, o := range vm.code.blobs {
			if o != nil && o.nm != nil {
				o.nm.scopes = nil
			}
		}
		vm.names.scopeBytes = len(s.data)
	}
	bias := unsigned5Bias(vm.major)
	for i := range nm.pcs {
		if at := nm.pcs[i].scope; at > 0 && int(at) < len(s.data) {
			u := unsigned5{data: s.data, pos: int(at), bias: bias}
			if u.next() != 0 && !u.bad {
				s.inlines = true
				break
			}
		}
	}
	nm.scopes = s
	return s
}

// decodeScopes appends the chain of scopes that begins at offset at, innermost
// first (FACTS B.6). The methods are indexes into the metadata, from 1; 0 is
// none. ok is false if the data is not a chain.
func decodeScopes(out []scope, data []byte, bias uint32, at int32) (_ []scope, ok bool) {
	for range maxInlining {
		if at <= 0 || int(at) >= len(data) {
			return out, false
		}
		u := unsigned5{data: data, pos: int(at), bias: bias}
		sender, method, bci := u.next(), u.next(), u.next()
		if u.bad || sender >= uint32(at) || bci > 1<<16 {
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

// chain appends what element i of b's pcs stands for, innermost first, with
// Method pointers. It is false, and out is as it was, unless the outermost
// method is the nmethod's own, as it must be.
func (vm *VM) chain(out []scope, b *blob, i int) ([]scope, bool) {
	start := len(out)
	if b.nm == nil || i < 0 || i >= len(b.nm.pcs) || b.nm.pcs[i].scope == 0 {
		return out, false
	}
	s := vm.scopesOf(b)
	if s == nil {
		return out, false
	}
	out, ok := decodeScopes(out, s.data, unsigned5Bias(vm.major), b.nm.pcs[i].scope)
	if !ok {
		return out[:start], false
	}
	for k := start; k < len(out); k++ {
		index := out[k].method
		if out[k].method = 0; index == 0 || index > 1<<24 {
			continue
		}
		out[k].method, _ = vm.peek.u64(b.nm.debug.metadata + 8*(index-1))
	}
	if out[len(out)-1].method != b.nm.method {
		return out[:start], false
	}
	return out, true
}
