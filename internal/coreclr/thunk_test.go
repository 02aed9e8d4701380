package coreclr

import (
	"encoding/binary"
	"slices"
	"testing"
)

// The runtime's code that is entered with two registers pushed, as 8.0.30 has it, with what is on
// the stack at each of its instructions.
func TestChainCode(t *testing.T) {
	code := slices.Clone(chainCode)
	binary.LittleEndian.PutUint32(code[chainAddress:], 0x445c63)
	code = append(code, 0xf8, 0xfe, 0xff, 0xff)
	if at := FindChain(append(make([]byte, 100), code...)); at != 100 {
		t.Errorf("found at %d", at)
	}
	broken := slices.Clone(code)
	broken[0x33] = 0x90
	if at := FindChain(broken); at != -1 {
		t.Errorf("other code found at %d", at)
	}
	vm := &VM{chain: 0x1000}
	for off, words := range map[uint64]int{0: 2, 7: 2, 10: 2, 11: 1, 13: 1, 0x1f: 1, 0x2e: 1, 0x32: 1, 0x33: 0, 0x35: 1, 0x3c: 1, 0x40: 1, 0x43: 1, 0x44: 0, 0x46: 1} {
		if r := vm.chainRule(0x1000 + off); !vm.inChain(0x1000+off) || r != pushedRules[words] {
			t.Errorf("at %#x: %+v, not %d words", off, r, words)
		}
	}
	if vm.inChain(0xfff) || vm.inChain(0x1000+chainLength) || (&VM{}).inChain(8) {
		t.Error("other addresses are in it")
	}
}

// The words that thunks have pushed at each of their instructions.
func TestPushed(t *testing.T) {
	imm := make([]byte, 8)
	thunk := []byte{0x33, 0xc0, 0x6a, 1, 0xff, 0x35, 0x72, 0xa0, 4, 0, 0xff, 0x25, 0x84, 0xa0, 4, 0}
	long := []byte{0x33, 0xc0, 0x68, 1, 2, 3, 4, 0xff, 0x35, 0x72, 0xa0, 4, 0, 0xff, 0x25, 0x84, 0xa0, 4, 0}
	lookup := slices.Concat([]byte{0x90, 0x48, 0xb8}, imm, []byte{0x50, 0x48, 0xb8}, imm, []byte{0xff, 0xe0})
	resolve := slices.Concat([]byte{0x48, 0xb8}, imm, []byte{0x83, 0x00, 0xff, 0x7d, 0xac, 0x49, 0x83, 0xcb, 1, 0x52, 0x49, 0xba}, imm,
		[]byte{0x50, 0x48, 0xb8}, imm, []byte{0xff, 0xe0})
	for _, c := range []struct {
		code []byte
		at   int
		want int // -1: none
	}{
		{thunk, 0, 0}, {thunk, 1, -1}, {thunk, 2, 0}, {thunk, 4, 1}, {thunk, 10, 2},
		{slices.Concat([]byte{0x49, 0x8b, 0xc3}, thunk[2:]), 0, 0}, {slices.Concat([]byte{0x48, 0x8d, 0x05, 1, 2, 3, 4}, long[2:]), 0, 0},
		{long, 0, 0}, {long, 2, 0}, {long, 7, 1}, {long, 13, 2},
		{lookup, 0, 0}, {lookup, 1, 0}, {lookup, 11, 0}, {lookup, 12, 1}, {lookup, 22, 1},
		{resolve, 0, 0}, {resolve, 10, 0}, {resolve, 13, 0}, {resolve, 15, 0}, {resolve, 19, 0},
		{resolve, 20, 1}, {resolve, 30, 1}, {resolve, 31, 2}, {resolve, 41, 2}, {resolve, 2, -1}, {resolve[31:], 0, -1},
		{[]byte{0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25}, 0, -1},
	} {
		var b [thunkBefore + thunkAfter]byte
		for i, x := range c.code {
			if at := thunkBefore - c.at + i; at >= 0 && at < len(b) {
				b[at] = x
			}
		}
		words, ok := pushedAt(&b)
		if !ok {
			words = -1
		}
		if words != c.want {
			t.Errorf("%x at %d: %d words, not %d", c.code, c.at, words, c.want)
		}
	}
}
