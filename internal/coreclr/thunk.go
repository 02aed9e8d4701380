package coreclr

import (
	"bytes"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
)

// Code that jumps on with more on the stack than it was entered with: reading it up to the jump does
// not tell where its return address is. There are few kinds of it, and each has one form.

// pushedRules are the rules for code whose return address lies under so many words, by their number.
var pushedRules = func() (rules [3]*ehframe.Rule) {
	const kept = 1<<cpu.RBX | 1<<cpu.RBP | 1<<cpu.R12 | 1<<cpu.R13 | 1<<cpu.R14 | 1<<cpu.R15
	for words := range rules {
		rules[words] = &ehframe.Rule{CFAReg: cpu.RSP, CFAOff: int32(8*words + 8), RA: ehframe.Save{Reg: 16, How: ehframe.AtCFA, Off: -8}, Keep: kept}
	}
	return rules
}()

// thunkBefore and thunkAfter are how much code around an address pushed looks at, in bytes.
const (
	thunkBefore = 24
	thunkAfter  = 48
)

// pushed returns the rule of an address in one of these pieces of code, nil if it is in none:
//   - a thunk of an image that was compiled ahead of time, which leads to what finds a method at its
//     first call: it pushes the number of the import and the import's section
//     (src/coreclr/tools/aot/ILCompiler.ReadyToRun/Compiler/DependencyAnalysis/ReadyToRun/
//     Target_X64/ImportThunk.cs);
//   - a stub for an interface call of which nothing is known yet, which goes to the runtime with the
//     call's token pushed (LookupStub in src/coreclr/vm/amd64/virtualcallstubcpu.hpp);
//   - the end of a stub for an interface call on many types, which goes to chainCode with two
//     registers pushed (ResolveStub in the same file).
func (vm *VM) pushed(at uint64) *ehframe.Rule {
	var b [thunkBefore + thunkAfter]byte
	if !vm.mem.Bytes(at-thunkBefore, b[:thunkBefore]) {
		clear(b[:thunkBefore])
	}
	for n := thunkAfter; ; n /= 2 { // what follows may not be mapped
		if n < 2 {
			return nil
		}
		if vm.mem.Bytes(at, b[thunkBefore:thunkBefore+n]) {
			break
		}
		clear(b[thunkBefore:])
	}
	if words, ok := pushedAt(&b); ok {
		return pushedRules[words]
	}
	return nil
}

// pushedAt returns how many words the code at thunkBefore in b has pushed.
func pushedAt(b *[thunkBefore + thunkAfter]byte) (words int, ok bool) {
	const at, push, jump = thunkBefore, 0x35, 0x25
	constant := func(i, n int) bool { return n == 2 && b[i] == 0x6a || n == 5 && b[i] == 0x68 }
	through := func(i int, opcode byte) bool { return b[i] == 0xff && b[i+1] == opcode } // with an address relative to rip
	// A thunk may begin by telling in rax what is called: xor eax, eax; mov rax, r11; lea rax, [rip+x].
	first := 0
	switch {
	case b[at] == 0x33 && b[at+1] == 0xc0:
		first = 2
	case b[at] == 0x49 && b[at+1] == 0x8b && b[at+2] == 0xc3:
		first = 3
	case b[at] == 0x48 && b[at+1] == 0x8d && b[at+2] == 0x05:
		first = 7
	}
	for _, n := range []int{2, 5} {
		switch i := at + first; {
		case constant(i, n) && through(i+n, push) && through(i+n+6, jump):
			return 0, true
		case constant(at-n, n) && through(at, push) && through(at+6, jump):
			return 1, true
		case constant(at-6-n, n) && through(at-6, push) && through(at, jump):
			return 2, true
		}
	}
	for _, p := range stubParts {
		// push rax; mov rax, target; jmp rax
		i := at + p.push
		if b[i] == 0x50 && b[i+1] == 0x48 && b[i+2] == 0xb8 && b[i+11] == 0xff && b[i+12] == 0xe0 && b[i-10] == p.move[0] && b[i-9] == p.move[1] {
			return p.words, true
		}
	}
	return 0, false
}

// stubParts are the instructions at the ends of stubs for interface calls: how far behind each the
// push is with which the last part begins, the instruction before that, and how many words have been
// pushed.
var stubParts = func() (parts []stubPart) {
	token, cache := [2]byte{0x48, 0xb8}, [2]byte{0x49, 0xba} // mov rax, and mov r10
	for _, push := range []int{11, 10, 0} {
		parts = append(parts, stubPart{push, token, 0})
	}
	// mov rax, counter; add dword ptr [rax], -1; jge; or r11, 1; push rdx; mov r10, token
	for _, push := range []int{30, 20, 17, 15, 11} {
		parts = append(parts, stubPart{push, cache, 0})
	}
	return append(parts, stubPart{-1, token, 1}, stubPart{-11, token, 1},
		stubPart{10, cache, 1}, stubPart{0, cache, 1}, stubPart{-1, cache, 2}, stubPart{-11, cache, 2})
}()

type stubPart struct {
	push  int
	move  [2]byte
	words int
}

// chainCode is the runtime's own code to which stubs for interface calls go on when their cache has
// another type: ResolveWorkerChainLookupAsmStub in src/coreclr/vm/amd64/virtualcallstubamd64.S, the
// same from 3.1 to 10. It is entered with two registers pushed, of which its unwind information
// knows nothing. The zeros stand for an address.
var chainCode = []byte{
	0x48, 0xc7, 0xc0, 1, 0, 0, 0, 0x4c, 0x21, 0xd8, 0x58, 0x75, 0x36, 0x48, 0x8b, 0x40, 0x18, 0x48, 0x85, 0xc0, 0x74, 0x2d, 0x48, 0x3b, 0x10, 0x75, 0xf2,
	0x4c, 0x3b, 0x50, 0x08, 0x75, 0xec, 0x48, 0x8d, 0x15, 0, 0, 0, 0, 0x48, 0x83, 0x2a, 0x01, 0x7c, 0x07, 0x48, 0x8b, 0x40, 0x10, 0x5a, 0xff, 0xe0,
	0x48, 0xc7, 0x02, 0, 1, 0, 0, 0x49, 0x83, 0xcb, 0x02, 0x49, 0x89, 0xc2, 0x5a, 0x41, 0x52, 0xe9,
}

const (
	chainAddress = 0x24 // of the address in chainCode
	chainLength  = 0x4b // with the distance of the jump with which it ends
)

// chainWords are how many words have been pushed up to an offset in chainCode.
var chainWords = []struct {
	from  uint64
	words int
}{{0x46, 1}, {0x44, 0}, {0x35, 1}, {0x33, 0}, {0x0b, 1}, {0, 2}}

// FindChain returns the offset of chainCode in a piece of code, -1 if it is not there.
func FindChain(code []byte) int {
	for from := 0; ; {
		i := bytes.Index(code[from:], chainCode[:chainAddress])
		if i < 0 {
			return -1
		}
		at := from + i
		if rest := code[at:]; len(rest) >= chainLength && bytes.HasPrefix(rest[chainAddress+4:], chainCode[chainAddress+4:]) {
			return at
		}
		from = at + 1
	}
}

// inChain reports whether an address is in chainCode.
func (vm *VM) inChain(pc uint64) bool { return vm.chain != 0 && pc-vm.chain < chainLength }

// chainRule returns the rule of an address in chainCode.
func (vm *VM) chainRule(pc uint64) *ehframe.Rule {
	for _, w := range chainWords {
		if pc-vm.chain >= w.from {
			return pushedRules[w.words]
		}
	}
	return nil
}
