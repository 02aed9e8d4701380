package native

import (
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
)

func TestDepths(t *testing.T) {
	below := func(n int32) Depth { return Depth{Kind: DepthBytes, Bytes: n} }
	const gone = 4096 // the result after a frame's body is taken off, as n in the table
	cases := []struct {
		name string
		code []byte
		want map[uint64]Depth // at some offsets
	}{
		{"nothing pushed", []byte{0x90, 0x5d, 0xc3}, map[uint64]Depth{0: below(0), 1: below(0)}},
		{"push and pop", []byte{0x52, 0x90, 0x58, 0x90}, map[uint64]Depth{0: below(0), 1: below(8), 2: below(8), 3: below(0)}},
		// push rdx; je +3; pop rax; jmp +4; add rsp,8; nop: the way out of a string intrinsic,
		// where only a jump determines the depth.
		{"left by a jump", []byte{0x52, 0x74, 0x03, 0x58, 0xeb, 0x04, 0x48, 0x83, 0xc4, 0x08, 0x90},
			map[uint64]Depth{1: below(8), 3: below(8), 4: below(0), 6: below(8), 10: below(0)}},
		// jmp +2; pop rax; ret; push rdx; jmp -5: known only from a jump back.
		{"a jump back", []byte{0xeb, 0x02, 0x58, 0xc3, 0x52, 0xeb, 0xfb}, map[uint64]Depth{2: below(8), 3: below(0), 4: below(0), 5: below(8)}},
		// ret; push rbp; sub rsp,16; nop: a second entry makes the frame itself.
		{"a second entry", []byte{0xc3, 0x55, 0x48, 0x83, 0xec, 0x10, 0x90}, map[uint64]Depth{1: {}, 2: {}, 6: below(0)}},
		// ret; mov [rsp-0x14000],eax; push rbp; mov rbp,rsp; sub rsp,0x60; nop
		{"a second entry with a frame pointer", []byte{0xc3, 0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x60, 0x90},
			map[uint64]Depth{1: {}, 8: {}, 12: {}, 16: below(0)}},
		// ret; nop; nop; push rdx; jmp -4 to the second nop: padding says nothing.
		{"padding", []byte{0xeb, 0x02, 0x90, 0x90, 0x52, 0xeb, 0x01, 0x90, 0x58, 0x90}, map[uint64]Depth{5: below(8), 7: below(0), 8: below(8), 9: below(0)}},
		// je +1; push rdx; nop; ret: two depths at one place.
		{"a contradiction", []byte{0x74, 0x01, 0x52, 0x90, 0xc3}, map[uint64]Depth{2: below(0), 3: {}}},
		// mov rax,rsp; je +1; push rdx; push rax; nop; pop rsp; nop: a string
		// search intrinsic with its string on the stack.
		{"an old stack pointer", []byte{0x48, 0x8b, 0xc4, 0x74, 0x01, 0x52, 0x50, 0x51, 0x59, 0x5c, 0x90},
			map[uint64]Depth{5: below(0), 6: {Kind: DepthInRegister, Reg: cpu.RAX}, 7: {Kind: DepthOnStack}, 8: {Kind: DepthOnStack, Bytes: 8}, 9: {Kind: DepthOnStack}, 10: below(0)}},
		// mov rcx,rsp; je +7; sub rsp,16; mov rsi,rsp; push rcx; nop: the same, with
		// a register that points at the string.
		{"two old stack pointers", []byte{0x48, 0x8b, 0xcc, 0x74, 0x07, 0x48, 0x83, 0xec, 0x10, 0x48, 0x8b, 0xf4, 0x51, 0x90},
			map[uint64]Depth{12: {Kind: DepthInRegister, Reg: cpu.RCX}, 13: {Kind: DepthOnStack}}},
		// push rax; mov r10,rsp; and rsp,-16; push r10; push r11; call; pop r11; pop
		// rsp; pop rax: C1 finds its thread in a place that it patches.
		{"an old stack pointer of lowered code", []byte{0x50, 0x4c, 0x8b, 0xd4, 0x48, 0x83, 0xe4, 0xf0, 0x41, 0x52, 0x41, 0x53, 0xe8, 0, 1, 0, 0, 0x41, 0x5b, 0x5c, 0x58, 0x90},
			map[uint64]Depth{4: below(8), 8: {Kind: DepthInRegister, Reg: cpu.R10, Less: 8}, 17: {Kind: DepthOnStack, Bytes: 8, Less: 8}, 19: {Kind: DepthOnStack, Less: 8}, 20: below(8), 21: below(0)}},
		// mov rbx,rsp; and rsp,-16; mov rsp,rbx; nop
		{"aligned", []byte{0x48, 0x8b, 0xdc, 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x8b, 0xe3, 0x90},
			map[uint64]Depth{3: below(0), 7: {Kind: DepthInRegister, Reg: cpu.RBX}, 10: below(0)}},
		// hlt; call +0; sub [rsp],5; jmp away: a deoptimisation handler of C2.
		{"its own address", []byte{0xf4, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 5, 0xe9, 0, 1, 0, 0, 0xf4}, map[uint64]Depth{1: below(0), 6: below(8), 11: below(8), 16: below(0)}},
		// hlt; mov r10,imm64; push r10; jmp away: one of C1.
		{"an address pushed", []byte{0xf4, 0x49, 0xba, 0x79, 1, 0xc9, 0x98, 0xb4, 0x7f, 0, 0, 0x41, 0x52, 0xe9, 0x96, 0x90, 0x9b, 0xff, 0xf4}, map[uint64]Depth{1: below(0), 11: below(0), 13: below(8), 18: below(0)}},
		// and rsp,-16; xor eax,eax
		{"lost", []byte{0x48, 0x83, 0xe4, 0xf0, 0x31, 0xc0}, map[uint64]Depth{0: below(0), 4: {}}},
		// add rsp,0x1000; pop rbp; cmp rsp,[r15+0x28]; ja +1; ret; lea r10,[rip];
		// an epilogue, with the stub of its poll.
		{"an epilogue", []byte{0x48, 0x81, 0xc4, 0, 0x10, 0, 0, 0x5d, 0x49, 0x3b, 0x67, 0x28, 0x77, 0x01, 0xc3, 0x4c, 0x8d, 0x15, 0, 0, 0, 0},
			map[uint64]Depth{0: below(0), 7: below(-gone), 8: below(-gone - 8), 14: below(-gone - 8), 15: below(-gone - 8)}},
	}
	for _, c := range cases {
		var r Reader
		d, ok := r.Depths(c.code)
		if !ok {
			t.Errorf("%s: not followed", c.name)
			continue
		}
		for off, want := range c.want {
			got := d.At(off)
			if got.From = 0; got != want {
				t.Errorf("%s: %+v at %d, want %+v", c.name, got, off, want)
			}
		}
	}
}

func TestThreeByteLength(t *testing.T) {
	for _, b := range [][]byte{
		{0x0f, 0x38, 0xcb, 0xd1},                                     // sha256rnds2
		{0x0f, 0x3a, 0xcc, 0xc1, 0x03},                               // sha1rnds4
		{0x66, 0x4c, 0x0f, 0x38, 0xf6, 0xc8},                         // adcx r9,rax
		{0xf3, 0x4c, 0x0f, 0x38, 0xf6, 0x54, 0x24, 0x10},             // adox r10,[rsp+16]
		{0x0f, 0x38, 0xc8, 0x84, 0x88, 0x00, 0x01, 0x00, 0x00},       // sha1nexte xmm0,[rax+rcx*4+256]
		{0x66, 0x0f, 0x3a, 0x0f, 0x05, 0x00, 0x01, 0x00, 0x00, 0x08}, // palignr xmm0,[rip+256],8
	} {
		if n := threeByteLength(append(b, 0x90, 0x90, 0x90, 0x90)); n != len(b) {
			t.Errorf("% x: %d bytes", b, n)
		}
	}
	if n := threeByteLength([]byte{0x0f, 0x10, 0xc1, 0x90}); n != 0 {
		t.Errorf("movups: %d bytes", n)
	}
}

func FuzzDepths(f *testing.F) {
	f.Add([]byte{0x52, 0x74, 0x03, 0x58, 0xeb, 0x04, 0x48, 0x83, 0xc4, 0x08, 0x90})
	f.Add([]byte{0x48, 0x8b, 0xc4, 0x74, 0x01, 0x52, 0x50, 0x51, 0x59, 0x5c, 0x90})
	f.Fuzz(func(t *testing.T, code []byte) {
		var r Reader
		d, _ := r.Depths(code)
		for i := range d {
			if d[i].Bytes > maxDepth || i > 0 && d[i].From <= d[i-1].From || int(d[i].From) >= len(code) {
				t.Fatalf("%v", d)
			}
		}
	})
}

// BenchmarkDepths follows 10,000 instructions.
func BenchmarkDepths(b *testing.B) {
	piece := []byte{0x48, 0x8b, 0x44, 0x24, 0x10, 0x48, 0x3b, 0xc1, 0x74, 0x04, 0x52, 0x58, 0x90, 0x90, 0x8b, 0x48, 0x08, 0x03, 0xca}
	var code []byte
	for n := 0; n < 10000; n += 9 {
		code = append(code, piece...)
	}
	var r Reader
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := r.Depths(code); !ok {
			b.Fatal("not followed")
		}
	}
}
