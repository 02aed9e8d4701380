package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

const source = `
#include <stdio.h>
int counter = 1;
__attribute__((noinline)) int twice(int n) { return n * 2 + counter; }
int main(int c, char **v) { return printf("%d", twice(c)); }
`

// programs compiles a program in several forms and returns the files' content by what is special about them.
func programs(t testing.TB) map[string][]byte {
	t.Helper()
	gcc, dir := fixture.Tool(t, "gcc"), t.TempDir()
	src := filepath.Join(dir, "t.c")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for name, args := range map[string][]string{
		"debug": {"-g", "-O1", "-Wl,--build-id"}, "packed": {"-g", "-gz=zlib"}, "stripped": {"-s", "-O1"},
		"library": {"-shared", "-fPIC", "-Wl,--hash-style=sysv"},
	} {
		out := filepath.Join(dir, name)
		if err := fixture.Compile(gcc, append(args, "-o", out, src)...); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = b
	}
	return all
}

// TestAgainstStandardLibrary compares the headers, the content of sections and the symbols of whole files with
// what debug/elf reads.
func TestAgainstStandardLibrary(t *testing.T) {
	all := programs(t)
	for _, name := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", os.Args[0]} {
		if b, err := os.ReadFile(name); err == nil {
			all[filepath.Base(name)] = b
		}
	}
	for name, b := range all {
		t.Run(name, func(t *testing.T) {
			want, err := elf.NewFile(bytes.NewReader(b))
			if err != nil {
				t.Skip(err) // the tests of another system
			}
			f, err := Open(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if f.Class != want.Class || f.Order != want.ByteOrder || f.Machine != want.Machine || f.Entry != want.Entry {
				t.Errorf("header: %v %v %v %#x", f.Class, f.Order, f.Machine, f.Entry)
			}
			compareLayout(t, f, want)
			for _, typ := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
				list := want.Symbols
				if typ == elf.SHT_DYNSYM {
					list = want.DynamicSymbols
				}
				compareSymbols(t, f, typ, list)
			}
		})
	}
}

func compareLayout(t *testing.T, f *File, want *elf.File) {
	t.Helper()
	if len(f.Segments) != len(want.Progs) || len(f.Sections) != len(want.Sections) {
		t.Fatalf("%d segments and %d sections, want %d and %d", len(f.Segments), len(f.Sections), len(want.Progs), len(want.Sections))
	}
	for i, p := range want.Progs {
		if s := (Segment{p.Type, p.Flags, p.Off, p.Vaddr, p.Filesz, p.Memsz}); f.Segments[i] != s {
			t.Errorf("segment %d is %+v, want %+v", i, f.Segments[i], s)
		}
	}
	for i, w := range want.Sections {
		s := &f.Sections[i]
		if got := (Section{w.Name, w.Type, w.Flags, w.Addr, w.Offset, w.FileSize, w.Link, w.Info, w.Entsize}); *s != got {
			t.Errorf("section %d is %+v, want %+v", i, *s, got)
		}
		if s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL {
			continue
		}
		content, err := w.Data()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Data(s, 1<<30); err != nil || !bytes.Equal(got, content) {
			t.Errorf("section %s: %d bytes, %v, want %d", s.Name, len(got), err, len(content))
		}
		if n := f.UnpackedSize(s); n != w.Size {
			t.Errorf("section %s: %d bytes unpacked, want %d", s.Name, n, w.Size)
		}
	}
}

func compareSymbols(t *testing.T, f *File, typ elf.SectionType, list func() ([]elf.Symbol, error)) {
	t.Helper()
	want, err := list()
	if errors.Is(err, elf.ErrNoSymbols) {
		if err := f.Symbols(typ, func(Symbol, []byte) bool { return true }); !errors.Is(err, ErrNoSymbols) {
			t.Errorf("%v: %v", typ, err)
		}
		return
	}
	i := -1 // the standard library leaves the first one out
	err = f.Symbols(typ, func(s Symbol, name []byte) bool {
		if i >= 0 && i < len(want) {
			w := want[i]
			if string(name) != w.Name || s.Value != w.Value || s.Size != w.Size || s.Info != w.Info || s.Section != w.Section {
				t.Fatalf("%v %d: %+v %q, want %+v", typ, i, s, name, w)
			}
		}
		i++
		return true
	})
	if err != nil || i != len(want) {
		t.Errorf("%v: %d symbols, %v, want %d", typ, i, err, len(want))
	}
}

// The build id is what readelf finds; a file without section headers has it in a segment.
func TestBuildID(t *testing.T) {
	b := programs(t)["debug"]
	f, err := Open(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	id := f.BuildID()
	content, err := f.Raw(f.Section(".note.gnu.build-id"), 1<<10)
	if err != nil || len(id) < 16 || id != NoteBuildID(content, binary.LittleEndian) {
		t.Fatalf("%q, %v", id, err)
	}
	clear(b[0x28:0x30]) // e_shoff
	clear(b[0x3a:0x40]) // e_shentsize, e_shnum, e_shstrndx
	bare, err := Open(bytes.NewReader(b))
	if err != nil || len(bare.Sections) != 0 || bare.BuildID() != id {
		t.Errorf("without section headers: %v", err)
	}
	if d := bare.Dynamic(); d[elf.DT_STRTAB] == 0 || d[elf.DT_STRSZ] == 0 {
		t.Errorf("dynamic section: %v", d)
	}
}

// Claims that the file's size disproves are not believed, and cost no memory.
func TestFalseClaims(t *testing.T) {
	f := &File{r: bytes.NewReader(make([]byte, 100)), size: 100, Order: binary.LittleEndian, Class: elf.ELFCLASS64}
	for _, c := range []struct {
		off, n, limit uint64
		err           error
	}{
		{0, 100, 100, nil}, {100, 0, 100, nil}, {0, 101, 1 << 40, io.ErrUnexpectedEOF}, {101, 0, 100, io.ErrUnexpectedEOF},
		{1 << 63, 1 << 63, 1 << 63, io.ErrUnexpectedEOF}, {50, ^uint64(0) - 10, ^uint64(0), io.ErrUnexpectedEOF}, {0, 100, 99, ErrTooLarge},
	} {
		if b, err := f.Range(c.off, c.n, c.limit); !errors.Is(err, c.err) || err == nil && uint64(len(b)) != c.n {
			t.Errorf("%#x+%#x of at most %#x: %d bytes, %v", c.off, c.n, c.limit, len(b), err)
		}
	}
	for _, b := range [][]byte{nil, []byte("\x7fELF"), make([]byte, 64), append([]byte("\x7fELF\x03\x01"), make([]byte, 64)...)} {
		if _, err := Open(bytes.NewReader(b)); !errors.Is(err, ErrNotELF) {
			t.Errorf("% x: %v", b, err)
		}
	}
	name, crc, ok := ParseDebugLink([]byte("a.debug\x00\x01\x02\x03\x04"), binary.LittleEndian)
	if name != "a.debug" || crc != 0x04030201 || !ok {
		t.Errorf("%q %#x %v", name, crc, ok)
	}
	for _, b := range []string{"", "../a\x00\x00\x00\x00\x01\x02\x03\x04", "a.debug\x00\x01", "..\x00\x00\x01\x02\x03\x04"} {
		if name, _, ok := ParseDebugLink([]byte(b), binary.LittleEndian); ok {
			t.Errorf("%q names %q", b, name)
		}
	}
}

// try reads everything that a file has.
func try(t *testing.T, b []byte) {
	f, err := Open(bytes.NewReader(b))
	if err != nil {
		if !errors.Is(err, ErrNotELF) {
			t.Fatal(err)
		}
		return
	}
	const limit = 1 << 20
	for i := range f.Sections {
		s := &f.Sections[i]
		if got, err := f.Data(s, limit); err == nil && len(got) > limit {
			t.Fatalf("%d bytes of a section", len(got))
		}
		f.UnpackedSize(s)
		_, _ = f.SectionReader(s).ReadAt(make([]byte, 16), 0)
		f.Linked(s)
	}
	for i := range f.Segments {
		s := &f.Segments[i]
		_, _ = f.SegmentReader(s).ReadAt(make([]byte, 16), 0)
		f.Offset(s.Vaddr)
		_, _ = f.BytesAt(s.Vaddr+s.Filesz/2, 16)
	}
	for _, typ := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		n := 0
		_ = f.Symbols(typ, func(s Symbol, name []byte) bool {
			n++
			return n < 1000
		})
	}
	exports := f.Exports()
	for _, name := range []string{"twice", "main", "printf", ""} {
		exports.Lookup(name)
	}
	f.BuildID()
	f.DebugLink()
	f.Dynamic()
	_, _ = f.Arch()
}

// FuzzFile changes words of real programs, and reads whatever the fuzzer makes up.
func FuzzFile(f *testing.F) {
	var all [][]byte
	for _, b := range programs(f) {
		all = append(all, b)
	}
	f.Add(uint8(0), uint32(40), uint64(0), uint32(64), uint64(1<<40), []byte{})
	f.Add(uint8(3), uint32(54), uint64(1<<63), uint32(60), uint64(0xffff), []byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, which uint8, at1 uint32, v1 uint64, at2 uint32, v2 uint64, own []byte) {
		try(t, own)
		b := bytes.Clone(all[int(which)%len(all)])
		n := uint64(len(b))
		binary.LittleEndian.PutUint64(b[uint64(at1)%(n-7):], v1)
		binary.LittleEndian.PutUint64(b[uint64(at2)%(n-7):], v2)
		try(t, b)
	})
}

// TestDamagedFiles changes bytes of the headers at random.
func TestDamagedFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, whole := range programs(t) {
		f, err := Open(bytes.NewReader(whole))
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			b := bytes.Clone(whole)
			for range 1 + rng.IntN(5) {
				at := rng.IntN(64 + 56*len(f.Segments))
				if rng.IntN(2) == 0 {
					at = len(b) - 1 - rng.IntN(64*len(f.Sections))
				}
				b[at] = byte(rng.Uint32())
			}
			try(t, b[:len(b)-rng.IntN(2)*rng.IntN(len(b))])
		}
	}
}

// BenchmarkOpen opens a large library, and for comparison by the standard library.
func BenchmarkOpen(b *testing.B) {
	file, err := os.Open(fixture.JDK(b, 21) + "/lib/server/libjvm.so")
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	b.Run("objfile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Open(file); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("debug-elf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := elf.NewFile(file); err != nil {
				b.Fatal(err)
			}
		}
	})
}
