package emulate

import (
	"encoding/binary"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
)

// image is a space of code and data, both of which the fuzzer chooses.
type image struct{ code, data []byte }

const (
	codeAt = 0x10000
	dataAt = 0x20000
)

func (s *image) Code(pc uint64, p []byte) int {
	if pc < codeAt || pc-codeAt >= uint64(len(s.code)) {
		return 0
	}
	return copy(p, s.code[pc-codeAt:])
}

func (s *image) Bytes(addr uint64, p []byte) bool {
	if addr < dataAt || addr-dataAt > uint64(len(s.data)) || uint64(len(s.data))-(addr-dataAt) < uint64(len(p)) {
		return false
	}
	copy(p, s.data[addr-dataAt:])
	return true
}

func (s *image) Fixed(addr uint64) bool { return addr&0x100 == 0 }

// FuzzTrace executes any code: it must end, in bounds.
func FuzzTrace(f *testing.F) {
	f.Add([]byte{0x48, 0x01, 0xd8, 0x75, 0xfb, 0xc3}, []byte("data"), uint64(1))
	f.Add([]byte{0xf3, 0xa4, 0x48, 0xf7, 0xf1, 0xff, 0x20, 0xeb, 0xfe}, []byte{0, 0, 1, 0, 0, 0, 0, 0}, uint64(0x20000))
	f.Add([]byte{0xe8, 0xfb, 0xff, 0xff, 0xff}, []byte{}, uint64(0))
	// vmovdqu ymm0, [rsi]; vpcmpeqb ymm1, ymm0, [rsi+32]; vpmovmskb eax, ymm1; vzeroupper; tzcnt eax, eax; cvtsi2sd xmm2, rax
	f.Add([]byte("\xc5\xfe\x6f\x06\xc5\xfd\x74\x4e\x20\xc5\xfd\xd7\xc1\xc5\xf8\x77\xf3\x0f\xbc\xc0\xf2\x48\x0f\x2a\xd0"), make([]byte, 128), uint64(3))
	// vpcmpeqb k1{k2}, ymm16, [rdi]; kortestd k1, k1; movups [rsi], xmm0; mulsd xmm0, xmm1; loop
	f.Add([]byte("\x62\xf1\x7d\x22\x74\x0f\xc4\xe1\xf9\x98\xc9\x0f\x11\x06\xf2\x0f\x59\xc1\xe2\xfe"), []byte("0123456789abcdef"), uint64(5))
	m, near := &Machine{}, NewNearby()
	f.Fuzz(func(t *testing.T, code, data []byte, seed uint64) {
		s := &image{code, data}
		snap := &capture.Snapshot{Stack: data, StackAddr: dataAt + 0x800}
		snap.Regs = cpu.Registers{PC: codeAt, Known: uint32(seed>>7) | 0xff, Arch: cpu.AMD64, Flags: seed, FlagsKnown: seed&1 != 0}
		for i := range snap.Regs.R {
			snap.Regs.R[i] = dataAt + seed*uint64(i)%0x1000
			if len(data) >= 8 && i%3 == 0 {
				snap.Regs.R[i] = binary.LittleEndian.Uint64(data)
			}
		}
		m.Trace(snap, NewCode(), s, near)
		if m.Steps > MaxInstructions || len(m.Branches) > MaxBranches {
			t.Fatalf("%d steps and %d branches", m.Steps, len(m.Branches))
		}
		near.Learn(m)
		var kept Trace
		m.Keep(&kept)
		if n := len(kept.Confirm(s, near)); n > len(m.Branches) {
			t.Fatalf("%d branches of %d are confirmed", n, len(m.Branches))
		}
		if how := near.Follow(); how != nil {
			if err := how.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
