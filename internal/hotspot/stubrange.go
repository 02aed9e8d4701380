package hotspot

import "bytes"

// codeRange is the bounds of a piece of hand-made code, once it has been searched for.
type codeRange struct {
	looked int // blobs searched
	ids    [8]uint32
	lo, hi uint64
}

func (r *codeRange) contains(pc uint64) bool { return pc >= r.lo && pc < r.hi }

// search reports whether b is to be searched, and notes that it was.
func (r *codeRange) search(b *blob) bool {
	if r.lo != 0 || r.looked == len(r.ids) {
		return false
	}
	for _, id := range r.ids[:r.looked] {
		if id == b.id {
			return false
		}
	}
	r.ids[r.looked] = b.id
	r.looked++
	return true
}

var (
	callStubEntry = pat("55 48 8B EC")
	callStubExit  = pat("5D C3")

	// push -1; push rbp; mov rbp,rsp … jmp [rsp-8]
	barrierEntry = []byte{0x68, 0xFF, 0xFF, 0xFF, 0xFF, 0x55, 0x48, 0x8B, 0xEC}
	barrierExit  = []byte{0xFF, 0x64, 0x24, 0xF8}
)

const (
	maxCallStub = 1024
	maxBarrier  = 4096
	// callStubTail is how many bytes of the call stub follow its return address: they store the
	// other kinds of result.
	callStubTail = 17
)

// inCallStub reports whether pc in b is in the call stub. Only its return address is
// published.
func (vm *VM) inCallStub(b *blob, pc uint64) bool {
	r := &vm.stepping.callStub
	if b.contains(vm.callStubReturn) && r.search(b) {
		code := vm.codeOf(b)
		at := int(vm.callStubReturn - b.codeBegin)
		var lo uint64
		for i := at; i >= 0 && at-i < maxCallStub; i-- {
			if callStubEntry.at(code, i) {
				lo = b.codeBegin + uint64(i)
				break
			}
		}
		for i := at; i < len(code) && i-at < maxCallStub && lo != 0; i++ {
			if callStubExit.at(code, i) {
				r.lo, r.hi = lo, b.codeBegin+uint64(i+2+callStubTail)
				break
			}
		}
	}
	return r.contains(pc)
}

// inBarrier reports whether pc in b is in the stub that nmethods call at their entry
// to let the collector see them (17+, cpu/x86/stubGenerator_x86_64.cpp,
// generate_method_entry_barrier). Between its caller's return address and its
// frame it has a word for the VM to write a new stack pointer into.
func (vm *VM) inBarrier(b *blob, pc uint64) bool {
	if b.kind != blobStubRoutines {
		return false
	}
	r := &vm.stepping.barrier
	if r.search(b) {
		code := vm.codeOf(b)
		if i := bytes.Index(code, barrierEntry); i >= 0 {
			rest := code[i:min(len(code), i+maxBarrier)]
			if j := bytes.Index(rest, barrierExit); j >= 0 {
				r.lo = b.codeBegin + uint64(i)
				r.hi = r.lo + uint64(j+len(barrierExit))
			}
		}
	}
	return r.contains(pc)
}
