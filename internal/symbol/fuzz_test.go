package symbol

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/candid-profiler/candid/internal/dwarfline"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/hostinfo"
)

const tinySource = `
#include <stdlib.h>
static inline int in(int a) { return a * 3 + (a >> 2); }
__attribute__((noinline)) int out(int a) { int r = 0; for (int i = 0; i < a; i++) r += in(i); return r; }
int main(int c, char **v) { return out(c) + abs(c); }
`

// seeds are small programs of several kinds.
func seeds(t testing.TB) [][]byte {
	var all [][]byte
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.c"), []byte(tinySource), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-g", "-O2", "-gdwarf-5"}, {"-g", "-O2", "-gdwarf-4", "-gz=zlib"}, {"-g", "-O2", "-gdwarf-4"}, {"-s", "-O2"}, {"-shared", "-fPIC", "-O1"},
	} {
		run(t, dir, "gcc", append(args, "-o", "p", "t.c")...)
		b, err := os.ReadFile(filepath.Join(dir, "p"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// tryFile calls everything that reads a file, whatever it holds.
func tryFile(t *testing.T, b []byte) {
	start := hostinfo.OwnCPU()
	f, err := OpenReader(bytes.NewReader(b), int64(len(b)), Options{})
	if err != nil {
		return
	}
	defer f.Close()
	var places []dwarfline.Place
	ask := func(addr uint64) {
		if s, ok := f.Symbol(addr); ok && !s.NoName && (s.Name == "" || !utf8.ValidString(s.Name) || len(s.Name) > maxName+8) {
			t.Errorf("%#x: name %q", addr, s.Name)
		}
		places = f.Lines(addr, places[:0])
	}
	for i := range f.table.syms {
		if i > 200 {
			break
		}
		ask(f.table.syms[i].addr)
		ask(f.table.syms[i].addr + 5)
	}
	for _, e := range f.m.exec[:min(len(f.m.exec), 16)] {
		ask(e.lo)
		ask(e.lo + (e.hi-e.lo)/2)
		ask(e.hi - 1)
	}
	f.BuildID()
	if d := hostinfo.OwnCPU() - start; d > 5*time.Second {
		t.Errorf("took %v of CPU for %d bytes", d, len(b))
	}
}

// FuzzFile changes words of real programs. (The fuzzer controls where and to what, not the files:
// it would spend its time on making them smaller.)
func FuzzFile(f *testing.F) {
	all := seeds(f)
	for i := range all {
		f.Add(uint8(i), uint32(40), uint64(0), uint32(64), uint64(1<<40), uint16(0), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, at1 uint32, v1 uint64, at2 uint32, v2 uint64, at3 uint16, part []byte) {
		b := bytes.Clone(all[int(which)%len(all)])
		n := uint64(len(b))
		binary.LittleEndian.PutUint64(b[uint64(at1)%(n-7):], v1)
		binary.LittleEndian.PutUint64(b[uint64(at2)%(n-7):], v2)
		copy(b[min(uint64(at3), n):], part)
		tryFile(t, b)
	})
}

func FuzzMiniDebug(f *testing.F) {
	f.Add([]byte("\xfd7zXZ\x00\x00\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = unpackMiniDebug(b)
	})
}

func FuzzPerfMap(f *testing.F) {
	f.Add([]byte("1000 20 a b\n1010 8 c\nzz 1 d\n0x2000 0x10 LazyCompile:*f /x.js:1:2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &perfMap{}
		if n := p.parse(bytes.NewReader(b)); n > int64(len(b)) {
			t.Fatalf("read %d of %d", n, len(b))
		}
		for i := 1; i < len(p.sorted); i++ {
			if a, c := p.sorted[i-1], p.sorted[i]; a.addr+uint64(a.size) > c.addr {
				t.Fatalf("%+v overlaps %+v", a, c)
			}
		}
	})
}

func FuzzDemangle(f *testing.F) {
	f.Add("_ZNSt6vectorIiSaIiEE9push_backERKi")
	f.Add("_RNvMs4_NtCsgY6Mt91CT9J_14rustc_demangle2v0NtB6_7Printer10print_type")
	f.Add("a\x00\xff\n.cold.part.")
	f.Add("_D4work4growFiZCQo4Node")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > maxRawName {
			return
		}
		d := Demangle(s)
		if !utf8.ValidString(d) || strings.ContainsAny(d, "\x00\n\x1b") || len(d) > maxName+8 {
			t.Fatalf("%q", d)
		}
	})
}

func FuzzGoTable(f *testing.F) {
	f.Add([]byte("\xf1\xff\xff\xff\x00\x00\x01\x08"), uint64(0x401000))
	f.Fuzz(func(t *testing.T, b []byte, addr uint64) {
		file := withSection(".gopclntab", b)
		m, err := openImage(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		g := openGoTable(m, func() *table { return nil })
		g.function(addr)
		g.line(addr)
	})
}

// withSection returns an ELF file with one section.
func withSection(name string, content []byte) []byte {
	const header, entry, sections = 64, 64, 3
	names := "\x00" + name + "\x00"
	b := make([]byte, header+sections*entry, header+sections*entry+len(names)+len(content))
	le := binary.LittleEndian
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[18:], uint16(elf.EM_X86_64))
	le.PutUint64(b[40:], header)
	le.PutUint16(b[58:], entry)
	le.PutUint16(b[60:], sections)
	le.PutUint16(b[62:], 1)
	put := func(i int, name uint32, typ elf.SectionType, off, size int) {
		s := b[header+i*entry:]
		le.PutUint32(s, name)
		le.PutUint32(s[4:], uint32(typ))
		le.PutUint64(s[24:], uint64(off))
		le.PutUint64(s[32:], uint64(size))
	}
	put(1, 0, elf.SHT_STRTAB, len(b), len(names))
	put(2, 1, elf.SHT_PROGBITS, len(b)+len(names), len(content))
	return append(append(b, names...), content...)
}

// TestDamagedFiles changes words and bytes of real programs at random, mostly in
// their headers and debug sections, where it matters.
func TestDamagedFiles(t *testing.T) {
	fixture.Tool(t, "gcc")
	if testing.Short() {
		t.Skip("-short leaves out 8 s of damaged files")
	}
	rng := rand.New(rand.NewPCG(7, 8))
	all := seeds(t)
	begun, end := hostinfo.OwnCPU(), time.Now().Add(8*time.Second)
	n := 0
	for ; n < 20000 && (time.Now().Before(end) || n < 50 && hostinfo.OwnCPU()-begun < 20*time.Second); n++ {
		b := bytes.Clone(all[n%len(all)])
		m, err := openImage(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(6) {
			lo, hi := 0, len(b)-8
			switch s := m.Sections[rng.IntN(len(m.Sections))]; rng.IntN(4) {
			case 0:
				hi = 64
			case 1:
				lo = len(b) - 64*len(m.Sections)
			default:
				if s.Offset+s.Size < uint64(len(b)-8) && s.Size > 0 && s.Type != 8 {
					lo, hi = int(s.Offset), int(s.Offset+s.Size)
				}
			}
			at := lo + rng.IntN(max(hi-lo, 1))
			at = min(at, len(b)-8)
			switch rng.IntN(3) {
			case 0:
				b[at] = byte(rng.Uint32())
			case 1:
				binary.LittleEndian.PutUint64(b[at:], rng.Uint64()>>rng.IntN(64))
			default:
				b[at] = 0xff
			}
		}
		if rng.IntN(10) == 0 {
			b = b[:rng.IntN(len(b))]
		}
		start := hostinfo.OwnCPU()
		tryFile(t, b)
		if d := hostinfo.OwnCPU() - start; d > time.Second {
			t.Logf("%d: %v", n, d)
		}
	}
	t.Logf("%d files", n)
	if n < 50 {
		t.Errorf("only %d files in 20 s of CPU", n)
	}
}
