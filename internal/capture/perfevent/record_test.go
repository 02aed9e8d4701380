package perfevent

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"

	"github.com/candid-profiler/candid/internal/target"
)

// words encodes 64-bit words as bytes.
func words(ws ...uint64) []byte {
	var b []byte
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// withHeader puts a header before a body.
func withHeader(kind uint32, misc uint16, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, misc)
	b = binary.LittleEndian.AppendUint16(b, uint16(headerSize+len(body)))
	return append(b, body...)
}

func pair(lo, hi uint32) uint64 { return uint64(lo) | uint64(hi)<<32 }

const testMask = 0b1001_0000_0011

func sampleBytes(stack []byte) []byte {
	body := words(pair(10, 11), 12345, pair(3, 0), 999, 4, contextMarks+127, 0xffffffff81000010, 0xffffffff81000020, contextMarks+512, 2, 1, 2, 3, 4, uint64(len(stack)+8))
	body = append(body, stack...)
	body = append(body, make([]byte, 8)...)
	return withHeader(RecordSample, miscKernel, append(body, words(uint64(len(stack)))...))
}

var testLayout = Layout{Callchain: true, RegsMask: testMask}

func TestParseSample(t *testing.T) {
	var r Record
	stack := []byte("the bytes of a stack, 32 of them")
	if err := testLayout.Parse(sampleBytes(stack), &r); err != nil {
		t.Fatal(err)
	}
	if r.PID != 10 || r.TID != 11 || r.Time != 12345 || r.CPU != 3 || r.Period != 999 || !r.InKernel || r.ABI != 2 {
		t.Errorf("%+v", r)
	}
	if !slices.Equal(r.Kernel, []uint64{0xffffffff81000010, 0xffffffff81000020}) {
		t.Errorf("kernel chain %x", r.Kernel)
	}
	if r.Regs[0] != 1 || r.Regs[1] != 2 || r.Regs[8] != 3 || r.Regs[11] != 4 {
		t.Errorf("registers %v", r.Regs[:12])
	}
	if string(r.Stack) != string(stack) {
		t.Errorf("stack %q", r.Stack)
	}
}

func TestParseOthers(t *testing.T) {
	trailer := words(pair(7, 8), 555, 2)
	var r Record
	for _, c := range []struct {
		name string
		b    []byte
		ok   func() bool
	}{
		{"lost", withHeader(RecordLost, 0, append(words(1, 42), trailer...)), func() bool { return r.Lost == 42 && r.Time == 555 && r.CPU == 2 }},
		{"fork", withHeader(RecordFork, 0, append(words(pair(20, 10), pair(21, 11), 1), trailer...)), func() bool { return r.PID == 20 && r.Parent == 10 && r.TID == 21 }},
		{"exec", withHeader(RecordComm, miscCommExec, append(append(words(pair(5, 6)), "java\x00\x00\x00\x00"...), trailer...)), func() bool { return r.Exec && string(r.Comm) == "java" && r.PID == 5 && r.TID == 6 }},
		{"throttle", withHeader(RecordThrottle, 0, append(words(1, 2, 3), trailer...)), func() bool { return r.PID == 7 && r.TID == 8 }},
	} {
		if err := (Layout{}).Parse(c.b, &r); err != nil || !c.ok() {
			t.Errorf("%s: %v, %+v", c.name, err, r)
		}
	}
}

// mmap2 returns a record of a mapping as the kernel writes it.
func mmap2(prot, flags uint32, path string) []byte {
	body := words(pair(30, 31), 0x7f0000001000, 0x2000, 0x3000, pair(8, 5), 1234, 77, pair(prot, flags))
	body = append(body, path...)
	body = append(body, make([]byte, 8-len(path)%8)...)
	return withHeader(RecordMmap2, 2, append(body, words(pair(30, 31), 999, 1)...))
}

func TestMapping(t *testing.T) {
	var r Record
	var ps paths
	for _, c := range []struct {
		prot, flags uint32
		path        string
		want        target.Mapping
	}{
		{5, 2, "/usr/lib/libc.so.6", target.Mapping{Perm: target.PermRead | target.PermExec, Path: "/usr/lib/libc.so.6"}},
		{7, 1, "/memfd:jit (deleted)", target.Mapping{Perm: target.PermRead | target.PermWrite | target.PermExec | target.PermShared, Path: "/memfd:jit", Deleted: true}},
		{4, 2, "//anon", target.Mapping{Perm: target.PermExec}},
		{5, 0, "[vdso]", target.Mapping{Perm: target.PermRead | target.PermExec, Path: "[vdso]"}},
	} {
		if err := (Layout{}).Parse(mmap2(c.prot, c.flags, c.path), &r); err != nil {
			t.Fatal(err)
		}
		c.want.Start, c.want.End, c.want.Offset, c.want.Dev, c.want.Inode, c.want.Made = 0x7f0000001000, 0x7f0000003000, 0x3000, 8<<20|5, 1234, 999
		if got := ps.mapping(&r); got != c.want || r.PID != 30 || r.TID != 31 {
			t.Errorf("%q: %+v", c.path, got)
		}
	}
	// A mapping that wraps around, or whose record does not say which file it is, is ignored.
	r.Map.Len = ^uint64(0)
	if got := ps.mapping(&r); got.End != 0 {
		t.Errorf("%+v", got)
	}
	r.Map.Len, r.Type = 4096, RecordMmap
	if got := ps.mapping(&r); got.End != 0 {
		t.Errorf("%+v", got)
	}
	if n := testing.AllocsPerRun(10, func() { ps.mapping(&r) }); n != 0 {
		t.Errorf("%v allocations for a path that is known", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sampleBytes([]byte("12345678")), true, uint64(testMask))
	f.Add(withHeader(RecordFork, 0, make([]byte, 48)), false, uint64(0))
	f.Add(withHeader(RecordComm, miscCommExec, make([]byte, 40)), true, ^uint64(0))
	f.Add(mmap2(5, 2, "/usr/bin/program"), false, uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, chain bool, mask uint64) {
		r := Record{}
		l := Layout{Callchain: chain, RegsMask: mask}
		if l.Parse(b, &r) != nil {
			return
		}
		var ps paths
		if m := ps.mapping(&r); m.End < m.Start || len(r.Path) > len(b) {
			t.Errorf("mapping %+v", m)
		}
		if len(r.Stack) > len(b) || len(r.Comm) > len(b) || len(r.Kernel)*8 > len(b) {
			t.Errorf("more came out than went in: %+v", r)
		}
		if r.Type == RecordSample && mask != 0 && r.ABI != 0 && len(b) < 8*bits.OnesCount64(mask) {
			t.Error("registers from nowhere")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	record := sampleBytes(make([]byte, 16384))
	var r Record
	b.ReportAllocs()
	for b.Loop() {
		if err := testLayout.Parse(record, &r); err != nil {
			b.Fatal(err)
		}
	}
}
