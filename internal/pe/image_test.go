package pe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// synthetic returns a small image: code, exports, two functions and a CodeView entry, in one section
// that lies at 0x400 in the file and at 0x1000 in memory.
func synthetic() []byte {
	b := make([]byte, 0x1000)
	le := binary.LittleEndian
	copy(b, "MZ")
	le.PutUint32(b[0x3c:], 0x80)
	h := b[0x80:]
	copy(h, "PE\x00\x00")
	le.PutUint16(h[4:], MachineAMD64)
	le.PutUint16(h[6:], 1)
	le.PutUint32(h[8:], 0x65432100)
	le.PutUint16(h[20:], optionalFixed+8*directories)
	le.PutUint16(h[22:], 0x2000)
	opt := h[24:]
	le.PutUint16(opt, 0x20b)
	le.PutUint32(opt[16:], 0x1010)
	le.PutUint64(opt[24:], 0x180000000)
	le.PutUint32(opt[56:], 0x2000)
	le.PutUint32(opt[60:], 0x400)
	le.PutUint32(opt[108:], directories)
	dir := func(i int, rva, size uint32) {
		le.PutUint32(opt[112+8*i:], rva)
		le.PutUint32(opt[116+8*i:], size)
	}
	dir(dirExport, 0x1100, 0x100)
	dir(dirException, 0x1200, 24)
	dir(dirDebug, 0x1300, debugEntry)
	s := opt[optionalFixed+8*directories:]
	copy(s, ".text")
	le.PutUint32(s[8:], 0xd00)
	le.PutUint32(s[12:], 0x1000)
	le.PutUint32(s[16:], 0xc00)
	le.PutUint32(s[20:], 0x400)
	le.PutUint32(s[36:], SectionCode|SectionExecute)
	at := func(rva uint32) []byte { return b[rva-0x1000+0x400:] }
	e := at(0x1100)
	for i, v := range []uint32{12: 0x1180, 16: 5, 20: 4, 24: 2, 28: 0x1128, 32: 0x1140, 36: 0x1150} {
		if v != 0 {
			le.PutUint32(e[i:], v)
		}
	}
	copy(at(0x1180), "lib.dll\x00first\x00second\x00")
	for i, v := range []uint32{0x1010, 0x1020, 0x1110, 0x1030} { // the third is a forwarder
		le.PutUint32(at(0x1128)[4*i:], v)
	}
	le.PutUint32(at(0x1140), 0x1188)
	le.PutUint32(at(0x1144), 0x118e)
	le.PutUint16(at(0x1152), 1)
	for i, v := range []uint32{0x1010, 0x1020, 0x1400, 0x1020, 0x1050, 0x1404} {
		le.PutUint32(at(0x1200)[4*i:], v)
	}
	d := at(0x1300)
	le.PutUint32(d[12:], debugCodeView)
	le.PutUint32(d[16:], 24+8)
	le.PutUint32(d[20:], 0x1320)
	copy(at(0x1320), "RSDS\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x1f\x00\x00\x00lib.pdb")
	return b
}

// mapped returns the image as it lies in memory.
func mapped(file []byte) []byte {
	b := make([]byte, 0x2000)
	copy(b, file[:0x400])
	copy(b[0x1000:], file[0x400:])
	return b
}

// memory is a process in which an image is loaded.
type memory struct {
	base uint64
	b    []byte
}

func (m memory) Bytes(addr uint64, p []byte) bool {
	off := addr - m.base
	return off <= uint64(len(m.b)) && uint64(len(m.b))-off >= uint64(len(p)) && copy(p, m.b[off:]) == len(p)
}

func TestImage(t *testing.T) {
	file, err := Open(bytes.NewReader(synthetic()))
	if err != nil {
		t.Fatal(err)
	}
	const base = 0x7ff800000000
	loaded, err := Load(memory{base, mapped(synthetic())}, base)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Image{file, loaded} {
		if m.Entry != 0x1010 || m.Base != 0x180000000 || !m.DLL || m.SizeOfImage != 0x2000 || len(m.Sections) != 1 || m.Loaded() != (m == loaded) {
			t.Errorf("%+v", m)
		}
		exports, err := m.Exports()
		if err != nil || len(exports) != 3 {
			t.Fatalf("exports: %v, %v", exports, err)
		}
		for i, want := range []Export{{"first", 0x1010}, {"second", 0x1020}, {"#8", 0x1030}} {
			if exports[i] != want {
				t.Errorf("export %d is %v, not %v", i, exports[i], want)
			}
		}
		if m.Name() != "lib.dll" {
			t.Errorf("name %q", m.Name())
		}
		p, err := m.PDB()
		if err != nil || p.ID() != "0403020106050807090A0B0C0D0E0F101F" || p.Path != "lib.pdb" {
			t.Errorf("PDB %s %q, %v", p.ID(), p.Path, err)
		}
		f, err := m.Functions()
		if err != nil || f.Len() != 2 {
			t.Fatalf("functions: %v, %v", f, err)
		}
		for rva, unwind := range map[uint32]uint32{0x100f: 0, 0x1010: 0x1400, 0x101f: 0x1400, 0x1020: 0x1404, 0x104f: 0x1404, 0x1050: 0} {
			fn, ok := f.Lookup(rva)
			if ok != (unwind != 0) || ok && fn.Unwind != unwind {
				t.Errorf("function of %#x: %v, %v", rva, fn, ok)
			}
		}
		if fn, ok := f.Before(0x1060); !ok || fn.Begin != 0x1020 {
			t.Errorf("function before 0x1060: %v, %v", fn, ok)
		}
	}
	if rva, ok := file.AtOffset(0x410); !ok || rva != 0x1010 {
		t.Errorf("offset 0x410 is at %#x, %v", rva, ok)
	}
	b := make([]byte, 16)
	if !file.ReadRVA(b, 0x1bf8) || file.ReadRVA(b, 0x1cf8) {
		t.Error("memory behind the file's part is 0, and ends with the section")
	}
}

// Images that are cut off or damaged give errors of their kind.
func TestDamaged(t *testing.T) {
	whole := synthetic()
	for n := range len(whole) {
		m, err := Open(bytes.NewReader(whole[:n]))
		if err == nil {
			use(m)
		} else if !errors.Is(err, ErrNotPE) && !errors.Is(err, ErrFormat) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	whole[0x84], whole[0x85] = 0x4c, 0x01
	if _, err := Open(bytes.NewReader(whole)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a 32-bit image: %v", err)
	}
}

// use calls everything that reads an image.
func use(m *Image) (functions []uint32) {
	_, _ = m.Exports()
	_, _ = m.PDB()
	_ = m.Name()
	_ = m.Symbols(func(i, _ uint32, _ bool) { _ = m.SymbolName(i) })
	for i := range m.Sections {
		_, _ = m.SectionData(m.SectionName(&m.Sections[i]), 1<<16)
	}
	f, err := m.Functions()
	if err != nil {
		return nil
	}
	for _, rva := range []uint32{0, 0x1010, 0x1fff, 1 << 31} {
		f.Lookup(rva)
		if fn, ok := f.Before(rva); ok {
			functions = append(functions, f.Primary(fn).Begin)
		}
	}
	return functions
}

func FuzzImage(f *testing.F) {
	f.Add(synthetic(), false)
	f.Add(mapped(synthetic()), true)
	f.Fuzz(func(t *testing.T, b []byte, loaded bool) {
		m, err := Open(bytes.NewReader(b))
		if loaded {
			m, err = Load(memory{0x10000, b}, 0x10000)
		}
		if err == nil {
			use(m)
		}
	})
}

// The reader and binutils agree on what is in a library.
func TestObjdump(t *testing.T) {
	objdump := fixture.Tool(t, "x86_64-w64-mingw32-objdump")
	path := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "lib.dll", `
#include <stdlib.h>
__declspec(dllexport) int first(int n) { return n * abs(n); }
__declspec(dllexport) int second(int n) { int v[2000]; for (int i = 0; i < 2000; i++) v[i] = first(i + n); return v[n % 2000]; }
__declspec(dllexport) int variable = 3;
static __attribute__((noinline)) int hidden_function_with_a_long_name(int n) { return second(n) + 1; }
__declspec(dllexport) int third(int n) { return hidden_function_with_a_long_name(n) * 2; }`, "-shared", "-O2")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-p", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	fns, err := m.Functions()
	if err != nil {
		t.Fatal(err)
	}
	hex := func(s string) uint32 {
		v, _ := strconv.ParseUint(s, 16, 64)
		return uint32(v - m.Base)
	}
	n := 0
	for _, l := range regexp.MustCompile(`(?m)^ [0-9a-f]{16}:\s+([0-9a-f]{16}) ([0-9a-f]{16}) ([0-9a-f]{16})\r?$`).FindAllStringSubmatch(string(out), -1) {
		fn, ok := fns.At(n)
		n++
		if !ok || fn.Begin != hex(l[1]) || fn.End != hex(l[2]) || fn.Unwind != hex(l[3]) {
			t.Errorf("%+v, %v; objdump: %s", fn, ok, l[0])
		}
	}
	if n == 0 || n != fns.Len() {
		t.Errorf("%d functions, %d of objdump", fns.Len(), n)
	}
	out, err = exec.Command(objdump, "-t", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	symbols := map[string]uint32{}
	if err := m.Symbols(func(i, rva uint32, _ bool) { symbols[m.SymbolName(i)] = rva }); err != nil {
		t.Fatal(err)
	}
	text := m.Sections[0].RVA
	checked := 0
	for _, l := range regexp.MustCompile(`(?m)\(sec  1\)\(fl 0x00\)\(ty   20\).* 0x([0-9a-f]{16}) (\S+)\r?$`).FindAllStringSubmatch(string(out), -1) {
		v, _ := strconv.ParseUint(l[1], 16, 32)
		if symbols[l[2]] != text+uint32(v) && strings.Count(string(out), " "+l[2]+"\n") == 1 {
			t.Errorf("%s is at %#x, objdump: %#x", l[2], symbols[l[2]], text+uint32(v))
		}
		checked++
	}
	if checked < 10 || symbols["hidden_function_with_a_long_name"] == 0 {
		t.Errorf("%d symbols", checked)
	}
	exports, err := m.Exports()
	if err != nil || len(exports) != 4 {
		t.Errorf("exports: %v, %v", exports, err)
	}
	for _, e := range exports {
		if e.Name != "variable" && symbols[e.Name] != e.RVA {
			t.Errorf("%s is exported at %#x, and at %#x", e.Name, e.RVA, symbols[e.Name])
		}
	}
}
