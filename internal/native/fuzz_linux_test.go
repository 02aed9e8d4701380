package native

import (
	"encoding/binary"
	"os/exec"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// FuzzWalk walks synthetic stacks over the code of a real process: whatever they hold, a walk ends,
// and soon.
func FuzzWalk(f *testing.F) {
	cmd := exec.Command("sleep", "10000")
	if err := fixture.Spawn(cmd); err != nil {
		f.Skipf("no process to look at: %v", err)
	}
	f.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		f.Skipf("cannot look into a process here: %v", err)
	}
	f.Cleanup(func() { p.Close() })
	s, err := New(p, NewFiles())
	if err != nil {
		f.Fatal(err)
	}
	w := walk.New(cpu.AMD64, s)
	w.Add(s)
	f.Add([]byte("\x01\x10\x00\x00\x00\x00\x00\x00\x02\x20\x00\x00\x00\x00\x00\x00\x03\x00\x02\x00\x00\x00\x00\x00"), uint32(0x1234), uint32(0x77), int16(0), true)
	f.Add(make([]byte, 4096), uint32(0), uint32(8), int16(-1), false)
	var out walk.Stack
	f.Fuzz(func(t *testing.T, data []byte, pc, reg uint32, sp int16, top bool) {
		const base = 0x7ffd00000000
		// The lowest byte of a word selects what it is: an address in some code, one in the stack
		// itself, or arbitrary bytes.
		point := func(v uint64) uint64 {
			a := s.areas[int(v>>8&0xff)%len(s.areas)]
			switch v & 7 {
			case 1, 2, 3:
				return a.start + v>>16%(a.end-a.start)
			case 4, 5:
				return base + v>>16%uint64(len(data)+1)
			}
			return v
		}
		stack := make([]byte, 0, len(data))
		for ; len(data) >= 8; data = data[8:] {
			stack = binary.LittleEndian.AppendUint64(stack, point(binary.LittleEndian.Uint64(data)))
		}
		snap := capture.Snapshot{StackAddr: base, Stack: stack}
		if top {
			snap.StackTop = base + uint64(len(stack))
		}
		snap.Regs = cpu.Registers{Arch: cpu.AMD64, Known: 1<<16 - 1, PC: point(uint64(pc)<<8 | 1)}
		for i := range 16 {
			snap.Regs.R[i] = point(uint64(reg) * uint64(i+1))
		}
		snap.Regs.SetSP(base + uint64(int64(sp)))
		w.Walk(&snap, p.Memory(), &out)
		if len(out.Frames) > walk.DefaultMaxFrames || out.End >= walk.NumEnds {
			t.Fatalf("%d frames, end %d", len(out.Frames), out.End)
		}
		if len(out.Frames) > len(stack)/8+2 && !out.Stitched {
			t.Fatalf("%d frames from %d words", len(out.Frames), len(stack)/8)
		}
	})
}

// FuzzReading reads synthetic code.
func FuzzReading(f *testing.F) {
	f.Add([]byte("\x55\x48\x89\xe5\x53\x48\x83\xec\x18\xe8\x00\x00\x00\x00\x48\x8b\x5d\xf8\xc9\xc3"), uint8(0))
	f.Add([]byte("\x62\xf1\x7c\x48\x28\x04\x24\xeb\xf7\xc3"), uint8(0))
	var r codeReader
	f.Fuzz(func(t *testing.T, code []byte, at uint8) {
		mem := image{0x1000, code}
		pc := 0x1000 + uint64(at)
		if rule := r.rule(mem, pc, pc, 0x1000, 0x1000+uint64(len(code))); rule != nil {
			if rule.CFAReg != cpu.RSP && rule.CFAReg != cpu.RBP || rule.CFAReg == cpu.RSP && rule.CFAOff < 8 {
				t.Fatalf("%+v", rule)
			}
		}
		r.entered(cpu.AMD64, mem, 0x1000, pc)
	})
}

// image is memory that holds code at one place.
type image struct {
	base uint64
	code []byte
}

func (m image) Word(uint64) (uint64, bool) { return 0, false }
func (m image) Bytes(addr uint64, p []byte) bool {
	if addr < m.base || addr-m.base > uint64(len(m.code)) || uint64(len(m.code))-(addr-m.base) < uint64(len(p)) {
		return false
	}
	copy(p, m.code[addr-m.base:])
	return true
}
