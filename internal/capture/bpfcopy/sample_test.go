package bpfcopy

import (
	"encoding/binary"
	"testing"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/walk"
)

// sampleRecord returns a record as the program writes it, with two kernel frames.
func sampleRecord(stack int) []byte {
	b := make([]byte, sampleSize+16+stack)
	le := binary.LittleEndian
	le.PutUint32(b, kindSample)
	le.PutUint32(b[offFlags:], uint32(capture.InKernel))
	le.PutUint64(b[offTime:], 1234)
	le.PutUint32(b[offPID:], 10)
	le.PutUint32(b[offTID:], 11)
	le.PutUint32(b[offKernelLen:], 2)
	le.PutUint64(b[offStackAddr:], 0x7000)
	le.PutUint64(b[offStackTop:], 0x7000+uint64(stack))
	le.PutUint32(b[offStackLen:], uint32(stack))
	le.PutUint32(b[offStackOff:], sampleSize+16)
	for i := range regWords {
		le.PutUint64(b[offRegs+8*i:], uint64(100+i))
	}
	return b
}

func TestDecodeSample(t *testing.T) {
	var s capture.Snapshot
	if err := decodeSample(sampleRecord(64), &s); err != nil {
		t.Fatal(err)
	}
	if s.PID != 10 || s.TID != 11 || s.Time != 1234 || len(s.Kernel) != 2 || len(s.Stack) != 64 || s.StackAddr != 0x7000 || s.Flags != capture.InKernel {
		t.Errorf("%+v", s)
	}
	if s.Regs.PC == 0 || s.Regs.SP() == 0 || s.Regs.PC == s.Regs.SP() {
		t.Errorf("pc %d, sp %d", s.Regs.PC, s.Regs.SP())
	}
}

// A kernel thread has only the kernel's chain: no stack counts as unread, and its walk is complete.
func TestDecodeKernelThread(t *testing.T) {
	b := sampleRecord(0)
	binary.LittleEndian.PutUint32(b[offFlags:], uint32(capture.InKernel|capture.NoUser|capture.StackUnread))
	var s capture.Snapshot
	if err := decodeSample(b, &s); err != nil {
		t.Fatal(err)
	}
	var stack walk.Stack
	walk.New(cpu.AMD64, nil).Walk(&s, nil, &stack)
	if s.Flags != capture.InKernel|capture.NoUser || stack.End != walk.EndComplete || len(stack.Frames) != len(s.Kernel) {
		t.Errorf("flags %b, %d frames of %d, end %v", s.Flags, len(stack.Frames), len(s.Kernel), stack.End)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sampleRecord(64))
	f.Add(make([]byte, noticeSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s capture.Snapshot
		if decodeSample(b, &s) == nil && (len(s.Stack) > len(b) || 8*len(s.Kernel) > len(b)) {
			t.Errorf("more came out than went in")
		}
		var n capture.ProcessEvent
		if _, err := decodeNotice(b, &n); err == nil && len(n.Comm) > 16 {
			t.Errorf("a name of %d bytes", len(n.Comm))
		}
	})
}

func BenchmarkDecodeSample(b *testing.B) {
	record := sampleRecord(8192)
	var s capture.Snapshot
	b.ReportAllocs()
	for b.Loop() {
		if err := decodeSample(record, &s); err != nil {
			b.Fatal(err)
		}
	}
}
