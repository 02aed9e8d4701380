package pgo

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// TestComponents checks the numbers that LLVM packs into discriminators, with values made by hand
// after its encoding: 1 bit for none, 7 bits for numbers below 32, 14 bits for larger ones.
func TestComponents(t *testing.T) {
	pack := func(numbers ...uint32) (d uint32) {
		shift := 0
		for _, n := range numbers {
			switch {
			case n == 0:
				d |= 1 << shift
				shift++
			case n < 32:
				d |= n << 1 << shift
				shift += 7
			default:
				d |= (n&0x1f | n&0xfe0<<1 | 0x20) << 1 << shift
				shift += 14
			}
		}
		return d
	}
	for _, c := range [][2]uint32{{0, 0}, {1, 0}, {3, 4}, {31, 8}, {32, 2}, {500, 1}, {0, 16}} {
		d := pack(c[0], c[1])
		if c[0] == 0 && c[1] == 0 {
			d = 0
		}
		if got := [2]uint32{component(d), component(nextComponent(d))}; got != c {
			t.Errorf("%#x holds %v, not %v", d, got, c)
		}
	}
}

// TestBlocks divides code with a loop, a call and a jump out.
func TestBlocks(t *testing.T) {
	code := []byte{
		0x55,             // 0: push rbp
		0x48, 0x89, 0xe5, // 1: mov rbp, rsp
		0xff, 0xd0, // 4: call rax
		0x48, 0x83, 0xe8, 0x01, // 6: sub rax, 1
		0x75, 0xf8, // a: jne 4
		0xc5, 0xf8, 0x77, // c: vzeroupper
		0xe8, 0x00, 0x10, 0x00, 0x00, // f: call 1014
		0x5d,       // 14: pop rbp
		0xff, 0xe0, // 15: jmp rax
		0x0f, 0x0b, // 17: ud2
	}
	insts := decode(AMD64, code, 0x1000, nil)
	var starts []uint64
	for _, b := range blocksOf(insts) {
		starts = append(starts, insts[b.first].addr-0x1000)
	}
	want := []uint64{0, 4, 0xc, 0x17}
	if len(starts) != len(want) {
		t.Fatalf("blocks start at %x, not %x", starts, want)
	}
	for i := range want {
		if starts[i] != want[i] {
			t.Errorf("blocks start at %x, not %x", starts, want)
		}
	}
	kinds := map[uint64]instKind{4: callsAny, 0xa: branch, 0xf: call, 0x15: jump, 0x17: jump, 0xc: plain}
	for _, in := range insts {
		if want, ok := kinds[in.addr-0x1000]; ok && in.kind != want {
			t.Errorf("the instruction at %x is of kind %d, not %d", in.addr-0x1000, in.kind, want)
		}
		if in.addr == 0x100f && in.target != 0x2014 {
			t.Errorf("the call goes to %x", in.target)
		}
	}
}

// TestBlocksARM does the same for arm64.
func TestBlocksARM(t *testing.T) {
	code := []byte{
		0x00, 0x00, 0x3f, 0xd6, // 0: blr x0
		0x21, 0x04, 0x00, 0xf1, // 4: subs x1, x1, 1
		0xc1, 0xff, 0xff, 0x54, // 8: b.ne 0
		0x41, 0x00, 0x00, 0xb4, // c: cbz x1, 14
		0xfc, 0x03, 0x00, 0x94, // 10: bl 1000
		0xc0, 0x03, 0x5f, 0xd6, // 14: ret
	}
	insts := decode(ARM64, code, 0, nil)
	want := []instKind{callsAny, plain, branch, branch, call, jump}
	for i, in := range insts {
		if in.kind != want[i] {
			t.Errorf("the instruction at %x is of kind %d, not %d", in.addr, in.kind, want[i])
		}
	}
	if insts[2].target != 0 || insts[3].target != 0x14 || insts[4].target != 0x1000 {
		t.Errorf("branches go to %x, %x, %x", insts[2].target, insts[3].target, insts[4].target)
	}
	if n := len(blocksOf(insts)); n != 4 {
		t.Errorf("%d blocks", n)
	}
}

// sample returns a tree with every part of a profile.
func sample() *Tree {
	main, callee := newFunction("main"), newFunction("small")
	main.head = 2
	main.at(location{1, 0}).count = 10
	b := main.at(location{2, 3})
	b.count, b.targets = 99.5, map[string]float64{"seldom": 0.25, "often": 90}
	callee.at(location{1, 0}).count = 7
	main.inlined[location{4, 0}] = map[string]*function{"small": callee}
	return &Tree{functions: map[string]*function{"main": main, "unused": newFunction("unused")}}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := sample().WriteLLVMText(&out); err != nil {
		t.Fatal(err)
	}
	want := "main:117:2\n 1: 10\n 2.3: 100 often:90 seldom:1\n 4: small:7\n  1: 7\n"
	if out.String() != want {
		t.Errorf("it is\n%s\nnot\n%s", out.String(), want)
	}
}

// TestGCov compares a profile for gcc with its words.
func TestGCov(t *testing.T) {
	var out bytes.Buffer
	if err := sample().WriteGCov(&out); err != nil {
		t.Fatal(err)
	}
	le := func(words ...uint32) (b []byte) {
		for _, w := range words {
			b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
		}
		return b
	}
	text := func(s string) []byte { return append(le(uint32(len(s)+1)), s+"\x00"...) }
	want := bytes.Join([][]byte{
		le(gcovMagic, 2, 0, gcovNames, 1+3+3+3+3, 4), text("main"), text("often"), text("seldom"), text("small"),
		le(gcovFunctions, 0, 1, 2, 0), le(0, 2, 1),
		le(1<<16, 0, 10, 0), le(2<<16, 2, 100, 0, gcovIndirect, 1, 0, 90, 0, gcovIndirect, 2, 0, 1, 0),
		le(4 << 16), le(3, 1, 0), le(1<<16, 0, 7, 0), le(gcovModules, 1, 0),
	}, nil)
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("it is\n%x\nnot\n%x", out.Bytes(), want)
	}
}

// TestSamples adds a recording with inlined, kernel and guessed frames.
func TestSamples(t *testing.T) {
	b := profile.NewBuilder()
	p := b.Profile()
	p.Events = []profile.Event{{Name: "cpu", Unit: "nanoseconds", Period: 10}}
	frame := func(name, module string, kind walk.Kind, addr uint64, flags walk.FrameFlags, prov walk.Provenance) uint32 {
		return b.Frame(profile.Frame{Func: b.Func(profile.Func{Name: name, Module: module}), Kind: kind, Addr: addr, Flags: flags, Prov: prov, BCI: -1})
	}
	main := b.Node(profile.RootNode, frame("main", "app", walk.KindNative, 0x110, walk.ReturnAddress, walk.Exact))
	work := b.Node(main, frame("work", "app", walk.KindNative, 0x220, 0, walk.Exact))
	inlined := b.Node(work, frame("small", "app", walk.KindInlined, 0, 0, walk.Exact))
	other := b.Node(main, frame("write", "libc.so.6", walk.KindNative, 0x330, 0, walk.Exact))
	kernel := b.Node(other, frame("ksys_write", "[kernel]", walk.KindKernel, 0x440, 0, walk.Exact))
	guess := b.Node(b.Node(profile.RootNode, frame("main", "app", walk.KindNative, 0x118, walk.ReturnAddress, walk.Heuristic)), frame("work", "app", walk.KindNative, 0x228, 0, walk.Exact))
	thread := b.Thread(1, 1, "main")
	for node, n := range map[uint32]uint64{inlined: 30, kernel: 10, other: 20, guess: 40} {
		b.Add(profile.Sample{Weight: n, Node: node, Thread: thread})
	}
	b.Observe(profile.Observation{Kind: profile.NativeModule, Process: -1, Values: []profile.Value{profile.Text("app"), profile.Text("/bin/app"), profile.Text("abc")}})
	s := NewSamples()
	if n := s.Add(b.Finish(), 0, 2); n != 4 {
		t.Errorf("%d samples", n)
	}
	m := s.Largest()
	if m == nil || m.Name != "app" || m.Weight != 14 || m.Count != 2 || strings.Join(m.Files(), " ") != "/bin/app" {
		t.Fatalf("the largest module is %+v", m)
	}
	if m.Leaves[0x220] != 6 || m.Leaves[0x228] != 8 {
		t.Errorf("samples are at %v", m.Leaves)
	}
	direct := m.Calls[Call{Return: 0x110, Callee: Callee{Addr: 0x220}}]
	outside := m.Calls[Call{Return: 0x110, Callee: Callee{Name: "write", Module: "libc.so.6"}}]
	if direct != 6 || outside != 6 || len(m.Calls) != 2 {
		t.Errorf("calls are %v", m.Calls)
	}
	if libc := s.Modules["libc.so.6"]; math.Abs(libc.Weight-4) > 1e-9 {
		t.Errorf("libc has %v", libc.Weight)
	}
}

// FuzzDecode reads any bytes as code.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x55, 0xff, 0xd0, 0x75, 0xfc, 0xc3}, true)
	f.Add([]byte{0xc0, 0x03, 0x5f, 0xd6}, false)
	f.Fuzz(func(t *testing.T, code []byte, x86 bool) {
		machine := ARM64
		if x86 {
			machine = AMD64
		}
		insts := decode(machine, code, 1<<63, nil)
		at := uint64(1 << 63)
		for _, in := range insts {
			if in.addr != at || in.size == 0 {
				t.Fatalf("an instruction of %d bytes at %#x follows %#x", in.size, in.addr, at)
			}
			at += uint64(in.size)
		}
		last := 0
		for _, b := range blocksOf(insts) {
			if b.first != last || b.last <= b.first {
				t.Fatalf("a block from %d to %d follows %d", b.first, b.last, last)
			}
			last = b.last
		}
		if last != len(insts) {
			t.Fatalf("the blocks end at %d of %d", last, len(insts))
		}
	})
}
