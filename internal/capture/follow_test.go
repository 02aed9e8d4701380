package capture

import (
	"encoding/binary"
	"testing"
)

// memory holds the words of a process, by address.
type memory map[uint64]uint64

func (m memory) load(b []byte, addr uint64) bool {
	for i := range b {
		at := addr + uint64(i)
		w, ok := m[at&^7]
		if !ok {
			return false
		}
		b[i] = byte(w >> (at & 7 * 8))
	}
	return true
}

// A list in the heap is followed from a register, and from thread-local storage if the register
// holds something else; what it leads to is copied, and a cycle ends.
func TestFollow(t *testing.T) {
	const stack, thread, first, second = 0x7000_0000, 0x10000, 0x20000, 0x30000
	m := memory{
		stack + 64: 1, thread: stack + 64, thread + 8: first / 8, 0x50000: thread,
		first: 11, first + 8: second/8 | second/8<<32, second: 22, second + 8: first / 8,
	}
	how := &Follow{Reference: Reference{Kind: NarrowReference, Shift: 3}, Steps: []Step{
		0:  {Op: OpRegister, Dst: 0, Arg: 3, No: 4},
		1:  {Op: OpLoad, Dst: 1, Src: 0, No: 4},
		2:  {Op: OpOnStack, Dst: 1, No: 4},
		3:  {Op: OpJump, No: 7},
		4:  {Op: OpThread, Dst: 0, No: StepsEnd},
		5:  {Op: OpLoad, Dst: 0, Src: 0, No: StepsEnd},
		6:  {Op: OpLoad, Dst: 1, Src: 0, No: StepsEnd},
		7:  {Op: OpSet, Dst: 3, Imm: 5},
		8:  {Op: OpReference, Dst: 2, Src: 0, Imm: 8, No: StepsEnd},
		9:  {Op: OpCopy, Dst: 2, Arg: 16, No: StepsEnd},
		10: {Op: OpCount, Dst: 3, No: StepsEnd},
		11: {Op: OpReference, Dst: 2, Src: 2, Imm: 8, No: StepsEnd},
		12: {Op: OpJump, No: 9},
	}}
	if err := how.Check(); err != nil {
		t.Fatal(err)
	}
	for _, register := range []uint64{thread, 0, stack, ^uint64(0)} {
		f := Followed{Load: m.load, Register: func(uint32) (uint64, bool) { return register, true }, Thread: 0x50000, SP: stack, Top: stack + 4096, Most: 1 << 10}
		for range 2 { // it can be used again
			f.Go(how)
			if len(f.Regions) != 6 {
				t.Fatalf("register %#x leads to %d regions", register, len(f.Regions))
			}
			for i, r := range f.Regions {
				want := [2]uint64{first, 11}
				if i%2 == 1 {
					want = [2]uint64{second, 22}
				}
				if r.Addr != want[0] || binary.LittleEndian.Uint64(r.Bytes) != want[1] {
					t.Errorf("region %d is at %#x: %x", i, r.Addr, r.Bytes)
				}
			}
		}
	}
	f := Followed{Load: m.load, Register: func(uint32) (uint64, bool) { return thread, true }, SP: stack, Most: 40}
	if f.Go(how); len(f.Regions) != 2 {
		t.Errorf("%d regions of 16 bytes where 40 are allowed", len(f.Regions))
	}
	if (&Follow{}).Check() == nil || (&Follow{Steps: make([]Step, MaxSteps+1)}).Check() == nil || (&Follow{Steps: []Step{{Op: numOps}}}).Check() == nil {
		t.Error("a way that makes no sense passes")
	}
}

// Whatever a process's memory holds, execution ends.
func FuzzFollow(f *testing.F) {
	f.Add([]byte{13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint64(1<<20))
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		how := &Follow{Reference: Reference{Kind: ReferenceKind(seed % 4), Shift: uint8(seed >> 8)}}
		for ; len(raw) >= 16 && len(how.Steps) < MaxSteps; raw = raw[16:] {
			how.Steps = append(how.Steps, Step{Op: Op(raw[0]) % numOps, Dst: raw[1] % Registers, Src: raw[2] % Registers, No: raw[3],
				Arg: binary.LittleEndian.Uint32(raw[4:]), Imm: binary.LittleEndian.Uint64(raw[8:])})
		}
		if how.Check() != nil {
			return
		}
		way := Followed{Most: 1 << 12, SP: seed, Thread: seed, Register: func(n uint32) (uint64, bool) { return seed * uint64(n), true },
			Load: func(b []byte, addr uint64) bool { clear(b); b[0] = byte(addr ^ seed); return addr&64 == 0 }}
		way.Go(how)
		sum := 0
		for _, r := range way.Regions {
			sum += len(r.Bytes)
		}
		if sum > 1<<12 || len(way.Regions) > 64 {
			t.Errorf("%d regions, %d bytes", len(way.Regions), sum)
		}
	})
}
