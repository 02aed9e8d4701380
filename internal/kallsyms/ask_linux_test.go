package kallsyms

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/candid-profiler/candid/internal/walk"
)

// openOrSkip skips the test if this user may not ask.
func openOrSkip(t *testing.T) *asker {
	t.Helper()
	a, err := openAsker()
	if errors.Is(err, ErrRestricted) || errors.Is(err, ErrUnsupported) || errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

// The kernel's answers agree with its file: one of an address's names, and the function's begin.
func TestAskRunningKernel(t *testing.T) {
	a := openOrSkip(t)
	raw, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	byAddr := map[uint64][]string{}
	for line := range bytes.Lines(raw) {
		if addr, kind, name, module, ok := parseLine(line); ok && bytes.IndexByte([]byte("tTwW"), kind) >= 0 && len(module) == 0 {
			byAddr[addr] = append(byAddr[addr], string(name))
		}
	}
	asked, other, ends := 0, 0, 0
	syms, err := Parse(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for addr, names := range byAddr {
		if addr>>4%16 != 0 && !strings.HasPrefix(names[0], "bpf_") {
			continue // some of them are enough, and those that are named like BPF programs
		}
		got, ok := a.ask(addr)
		if !ok && !slices.ContainsFunc(names, func(name string) bool { return name != "_etext" && name != "_einittext" }) {
			// The first byte after a part of the kernel's code. Whether a kernel names it depends
			// on the range that it takes for its own (is_ksym_addr in linux/kallsyms.h).
			ends++
			continue
		}
		asked++
		if !ok || got.from != addr || got.module != image || !strings.Contains(strings.Join(names, " ")+" ", got.name+" ") {
			t.Errorf("%#x: %+v %v, want one of %v", addr, got, ok, names)
		}
		if name, _, _, _ := syms.Lookup(addr); name != got.name {
			other++
		}
		if got, ok := a.ask(got.to - 1); !ok || got.from != addr {
			t.Errorf("the end of %v: %+v %v", names, got, ok)
		}
	}
	t.Logf("%d functions, %d of them by another of their names than in the file; %d ends of the code without a name", asked, other, ends)
	if asked < 1000 || other > asked/100 {
		t.Errorf("%d functions, %d by another name", asked, other)
	}
	if got, ok := a.ask(1<<64 - 1); ok {
		t.Errorf("the last address is %+v", got)
	}
}

// A BPF program that is loaded during a recording is named, and asking does not read the whole
// file.
func TestResolveLaterProgram(t *testing.T) {
	openOrSkip(t)
	r := NewResolver()
	defer r.Close()
	r.load = func() (*Symbols, error) {
		t.Error("the file was read")
		return nil, ErrUnsupported
	}
	r.Resolve(walk.Frame{PC: 0xffffffff81000000, Kind: walk.KindKernel}, nil)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "came_later", Type: ebpf.SocketFilter, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	raw, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for line := range bytes.Lines(raw) {
		addr, _, name, _, ok := parseLine(line)
		if !ok || !strings.HasPrefix(string(name), "bpf_prog_") || !strings.HasSuffix(string(name), "_came_later") {
			continue
		}
		found = true
		got := resolve(t, r, walk.Frame{PC: addr + 1})
		if got.Function != string(name) || got.Module != bpfModule || got.NoName {
			t.Errorf("%s at %#x: %+v", name, addr, got)
		}
	}
	if !found {
		t.Error("the kernel does not list the program")
	}
}

func BenchmarkAsk(b *testing.B) {
	a, err := openAsker()
	if err != nil {
		b.Skip(err)
	}
	defer a.close()
	syms, err := Load()
	if err != nil {
		b.Fatal(err)
	}
	addr, _ := syms.Address("vfs_read")
	b.ReportAllocs()
	for b.Loop() {
		a.ask(addr)
	}
}

func BenchmarkOpenAsker(b *testing.B) {
	for b.Loop() {
		a, err := openAsker()
		if err != nil {
			b.Skip(err)
		}
		a.close()
	}
}
