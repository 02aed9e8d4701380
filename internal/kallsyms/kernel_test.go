package kallsyms

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/walk"
)

const sample = `ffffffff81000000 T srso_alias_untrain_ret
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t helper.isra.0
ffffffff81000200 W __weak_one
ffffffff81000200 T strong_one
ffffffff81000300 t tcp_ack.part.0.llvm.1234
ffffffff81000400 D data
ffffffff81000500 R more_data
nonsense
ffffffff81000600
ffffffffc0201000 t ftrace_trampoline	[__builtin__ftrace]
ffffffffc0400000 t ext4_read	[ext4]
ffffffffc0400100 T ext4_write	[ext4]
ffffffffc0300000 t bpf_prog_6deef7357e7b4530_sd_fw	[bpf]
ffffffffc0310000 t bpf_trampoline_6442 [extra]	[bpf]
`

func TestLookup(t *testing.T) {
	s, err := Parse(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		addr         uint64
		name, module string
		off          uint64
	}{
		{0xffffffff81000000, "srso_alias_untrain_ret", image, 0},
		{0xffffffff810001ff, "helper.isra.0", image, 0xff},
		{0xffffffff81000200, "strong_one", image, 0},
		{0xffffffff810003ff, "tcp_ack.part.0.llvm.1234", image, 0xff},
		{0xffffffff81000400, "", "", 0}, // data
		{0xffffffff81000600, "", "", 0},
		{0xffffffff80ffffff, "", "", 0},
		{0, "", "", 0},
		{0xffffffffc0201010, "ftrace_trampoline", image, 0x10},
		{0xffffffffc0400000, "ext4_read", "[ext4]", 0},
		{0xffffffffc0400100 + maxGap - 1, "ext4_write", "[ext4]", maxGap - 1},
		{0xffffffffc0400100 + maxGap, "", "", 0},
		{0xffffffffc03fffff, "", "", 0}, // after the last BPF program, before ext4
		{0xffffffffc0300004, "bpf_prog_6deef7357e7b4530_sd_fw", "[bpf]", 4},
	} {
		name, module, off, ok := s.Lookup(c.addr)
		if name != c.name || module != c.module || off != c.off || ok != (c.name != "") {
			t.Errorf("%#x: %q %q +%#x %v", c.addr, name, module, off, ok)
		}
	}
	if a, ok := s.Address("ext4_write"); !ok || a != 0xffffffffc0400100 {
		t.Errorf("ext4_write at %#x, %v", a, ok)
	}
	if a, ok := s.Address("ext4_writ"); ok {
		t.Errorf("ext4_writ at %#x", a)
	}
}

func TestRestricted(t *testing.T) {
	_, err := Parse(strings.NewReader("0000000000000000 T _stext\n0000000000000000 T do_it\n"))
	if !errors.Is(err, ErrRestricted) {
		t.Errorf("%v", err)
	}
	for _, e := range []RestrictedError{{"2", "0"}, {"1", "2"}, {"", ""}} {
		if !errors.Is(&e, ErrRestricted) || !strings.Contains(e.Error(), "kernel.kptr_restrict="+e.KptrRestrict) {
			t.Error(e.Error())
		}
	}
	if _, err := Parse(strings.NewReader("")); err == nil || errors.Is(err, ErrRestricted) {
		t.Errorf("empty: %v", err)
	}
}

func resolve(t *testing.T, r *Resolver, f walk.Frame) symbol.Frame {
	t.Helper()
	f.Kind = walk.KindKernel
	out := r.Resolve(f, make([]symbol.Frame, 0, 1))
	if len(out) != 1 || out[0].Kind != walk.KindKernel || out[0].BCI != -1 || out[0].Addr != f.PC {
		t.Fatalf("%#x: %+v", f.PC, out)
	}
	return out[0]
}

func TestResolve(t *testing.T) {
	now := time.Unix(1000, 0)
	text := sample
	loads := 0
	r := &Resolver{now: func() time.Time { return now }, load: func() (*Symbols, error) {
		loads++
		return Parse(strings.NewReader(text))
	}}
	for _, c := range []struct {
		f                     walk.Frame
		function, raw, module string
	}{
		{walk.Frame{PC: 0xffffffff81000180}, "helper", "helper.isra.0", image},
		{walk.Frame{PC: 0xffffffff81000200}, "strong_one", "", image},
		{walk.Frame{PC: 0xffffffff81000200, Flags: walk.ReturnAddress}, "helper", "helper.isra.0", image},
		{walk.Frame{PC: 0xffffffff81000301}, "tcp_ack", "tcp_ack.part.0.llvm.1234", image},
		{walk.Frame{PC: 0xffffffff81000450}, "[kernel]+0xffffffff81000450", "", image},
		{walk.Frame{PC: 0xffffffffff600401}, "time", "", "[vsyscall]"},
		{walk.Frame{PC: 0xffffffffc0310000}, "bpf_trampoline", "bpf_trampoline_6442 [extra]", "[bpf]"},
		{walk.Frame{}, "[kernel]+0x0", "", image},
		{walk.Frame{Flags: walk.ReturnAddress}, "[kernel]+0x0", "", image},
	} {
		got := resolve(t, r, c.f)
		if got.Function != c.function || got.Raw != c.raw || got.Module != c.module || got.NoName != strings.HasPrefix(c.function, "[") || got.Flags != c.f.Flags {
			t.Errorf("%+v: %+v", c.f, got)
		}
	}
	// A module that is loaded later is found, but the file is not read often.
	text += "ffffffffc0500000 t late	[late]\n"
	late := walk.Frame{PC: 0xffffffffc0500000}
	if got := resolve(t, r, late); !got.NoName || loads != 1 {
		t.Errorf("%+v after %d loads", got, loads)
	}
	now = now.Add(reloadAfter)
	if got := resolve(t, r, late); got.Function != "late" || got.Module != "[late]" || loads != 2 {
		t.Errorf("%+v after %d loads", got, loads)
	}
	for range 100 {
		now = now.Add(reloadAfter)
		resolve(t, r, walk.Frame{PC: 1<<64 - 1})
	}
	if loads != maxLoads {
		t.Errorf("read %d times", loads)
	}
}

func TestResolveWithoutSymbols(t *testing.T) {
	loads := 0
	r := &Resolver{now: time.Now, load: func() (*Symbols, error) { loads++; return nil, &RestrictedError{"1", "2"} }}
	if r.Err() != nil {
		t.Error("an error before the first frame")
	}
	for range 3 {
		if got := resolve(t, r, walk.Frame{PC: 0xffffffff81000000}); !got.NoName || got.Function != "[kernel]+0xffffffff81000000" {
			t.Errorf("%+v", got)
		}
	}
	if !errors.Is(r.Err(), ErrRestricted) || loads != 1 {
		t.Errorf("%v after %d loads", r.Err(), loads)
	}
}

// For the running kernel, Lookup agrees with the file.
func TestRunningKernel(t *testing.T) {
	s, err := Load()
	if errors.Is(err, ErrRestricted) || errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	byAddr := map[uint64]map[string]bool{}
	for line := range bytes.Lines(raw) {
		addr, kind, name, module, ok := parseLine(line)
		if !ok {
			t.Fatalf("%q is no symbol", line)
		}
		if bytes.IndexByte([]byte("tTwW"), kind) < 0 || len(module) > 0 {
			continue
		}
		if byAddr[addr] == nil {
			byAddr[addr] = map[string]bool{}
		}
		byAddr[addr][string(name)] = true
	}
	if len(byAddr) < 1000 {
		t.Fatalf("only %d functions", len(byAddr))
	}
	wrong := 0
	for addr, names := range byAddr {
		if name, module, off, ok := s.Lookup(addr); !ok || off != 0 || module != image || !names[name] {
			if wrong++; wrong < 5 {
				t.Errorf("%#x: %q %q +%d, want one of %v", addr, name, module, off, names)
			}
		}
	}
	if _, ok := s.Address("vfs_read"); !ok {
		t.Error("no vfs_read")
	}
}

func TestParseAnswer(t *testing.T) {
	const addr = 0xffffffff81000010
	for _, c := range []struct {
		text string
		want answer
		ok   bool
	}{
		{"vfs_read+0x10/0x200", answer{"vfs_read", image, addr - 0x10, addr + 0x1f0}, true},
		{"ext4_read+0x0/0x8 [ext4]", answer{"ext4_read", "[ext4]", addr, addr + 8}, true},
		{"bpf_trampoline_6442 [extra]+0x1/0x80 [bpf]", answer{"bpf_trampoline_6442 [extra]", "[bpf]", addr - 1, addr + 0x7f}, true},
		{"ftrace_trampoline+0x1/0x80 [__builtin__ftrace]", answer{"ftrace_trampoline", image, addr - 1, addr + 0x7f}, true},
		{"bpf_prog_6deef7357e7b4530_sd_fw+0x1/0x80", answer{"bpf_prog_6deef7357e7b4530_sd_fw", "[bpf]", addr - 1, addr + 0x7f}, true},
		{"bpf_trampoline_6442+0x1/0x80", answer{"bpf_trampoline_6442", "[bpf]", addr - 1, addr + 0x7f}, true},
		{"bpf_prog_load+0x1/0x80", answer{"bpf_prog_load", image, addr - 1, addr + 0x7f}, true},
		{"bpf_trampoline_link_prog+0x1/0x80", answer{"bpf_trampoline_link_prog", image, addr - 1, addr + 0x7f}, true},
		{"0xffffffff81000010", answer{}, false},
		{"", answer{}, false},
		{"+0x1/0x80", answer{}, false},
		{"f+0x80/0x80", answer{}, false},
		{"f+0x1", answer{}, false},
		{"f+0xffffffffffffffff/0xffffffffffffffff", answer{}, false},
	} {
		if got, ok := parseAnswer(c.text, addr); got != c.want || ok != c.ok {
			t.Errorf("%q: %+v %v", c.text, got, ok)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add("ext4_read+0x0/0x8 [ext4]", uint64(0xffffffffc0400000))
	f.Add("bpf_trampoline_6442 [extra]+0x1/0x80 [bpf]", uint64(1))
	f.Fuzz(func(t *testing.T, s string, addr uint64) {
		if a, ok := parseAnswer(s, addr); ok && (a.name == "" || a.from > addr || a.to <= addr) {
			t.Errorf("%q at %#x: %+v", s, addr, a)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("0000000000000000 T _stext\n"))
	f.Add([]byte("ffffffff81000000 T " + strings.Repeat("x", 5000) + "\nffffffff81000001 t y"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(bytes.NewReader(b))
		if err != nil {
			return
		}
		for i, a := range s.addrs {
			if i > 0 && a <= s.addrs[i-1] {
				t.Fatal("not sorted")
			}
			for _, addr := range []uint64{a - 1, a, a + 1, a + maxGap} {
				if name, _, _, ok := s.Lookup(addr); ok && (name == "" || strings.Contains(name, "\x00")) {
					t.Fatalf("name %q", name)
				}
			}
		}
		s.Lookup(0)
		s.Lookup(1<<64 - 1)
	})
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(); err != nil {
			b.Skip(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	r := &Resolver{load: Load, now: time.Now}
	r.Resolve(walk.Frame{PC: 1<<64 - 1}, nil)
	if r.syms == nil {
		b.Skip(r.Err())
	}
	out := make([]symbol.Frame, 0, 1)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r.Resolve(walk.Frame{PC: r.syms.addrs[i%1000*17%r.syms.Len()]}, out[:0])
		i++
	}
}

func TestBelowScheduler(t *testing.T) {
	syms, err := Parse(strings.NewReader(`ffffffff81000000 T _stext
ffffffff81000100 t __schedule
ffffffff81000200 T schedule
ffffffff81000300 t futex_do_wait
ffffffff81000400 T do_syscall_64
ffffffff81000500 T _etext
ffffffffc0000000 t bpf_prog_e2df0bc52715fd03_back_exact	[bpf]
ffffffffc0000100 t other	[bpf]
`))
	if err != nil {
		t.Fatal(err)
	}
	r := &Resolver{load: func() (*Symbols, error) { return syms, nil }, now: time.Now}
	waits := []uint64{0xffffffff81000310, 0xffffffff81000410}
	for _, chain := range [][]uint64{
		append([]uint64{0xffffffffc0000010, 0xffffffff81000110, 0xffffffff81000210}, waits...),
		waits,
	} {
		if got := r.BelowScheduler(chain); !slices.Equal(got, waits) {
			t.Errorf("BelowScheduler(%x) = %x", chain, got)
		}
	}
	if got := r.BelowScheduler(nil); len(got) != 0 {
		t.Errorf("of nothing it makes %x", got)
	}
}
