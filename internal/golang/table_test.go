package golang

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/ehframe"
	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/objfile"
	"github.com/candid-profiler/candid/internal/pe"
)

const program = `package main

import ("fmt"; "os"; "time")

func main() {
	fmt.Fprintln(os.Stderr, time.Now())
}
`

// build compiles a program for linux.
func build(t testing.TB, arch string, flags ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	src, exe := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(src, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", exe, src)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %v for %s: %v\n%s", flags, arch, err, out)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t testing.TB, image []byte) (*elf.File, *Table) {
	t.Helper()
	e, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	f, err := objfile.Open(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	table, err := Open(f)
	if err != nil {
		t.Fatal(err)
	}
	return e, table
}

// TestSizes compares the size of every frame at every instruction with the same program's DWARF
// table, and the sizes in stripped programs with those in the same program unstripped.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what builds Go programs for two processors")
	}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, mode := range []string{"exe", "pie"} {
			if !fixture.Full(t) && (arch == "amd64") != (mode == "exe") {
				continue // each processor with one set of flags, each set on one processor
			}
			t.Run(arch+" "+mode, func(t *testing.T) {
				whole := build(t, arch, "-buildmode="+mode)
				e, table := open(t, whole)
				stripped := build(t, arch, "-buildmode="+mode, "-ldflags=-s -w")
				_, bare := open(t, stripped)
				clear(stripped[0x28:0x30]) // e_shoff
				clear(stripped[0x3a:0x40]) // e_shentsize, e_shnum, e_shstrndx
				_, headless := open(t, stripped)
				f, err := objfile.Open(bytes.NewReader(whole))
				if err != nil {
					t.Fatal(err)
				}
				dwarf, err := ehframe.Open(f)
				if err != nil {
					t.Fatal(err)
				}
				ra := int32(0)
				if arch == "amd64" {
					ra = 8
				}
				seen, described := 0, 0
				symbols, err := e.Symbols()
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range symbols {
					if elf.ST_TYPE(s.Info) != elf.STT_FUNC {
						continue
					}
					for at := s.Value; at < s.Value+s.Size; at += table.step {
						r, want := table.Lookup(at), dwarf.Lookup(at)
						if b := bare.Lookup(at); (b == nil) != (r == nil) || r != nil && *b != *r {
							t.Fatalf("%s+%#x: %+v, stripped %+v", s.Name, at-s.Value, r, b)
						}
						if h := headless.Lookup(at); (h == nil) != (r == nil) || r != nil && *h != *r {
							t.Fatalf("%s+%#x: %+v, without section headers %+v", s.Name, at-s.Value, r, h)
						}
						if want == nil || want.CFAExpr != nil {
							continue
						}
						seen++
						if r == nil && want.CFAOff < ra {
							continue // code that moves the stack in ways that neither table can express
						}
						if r == nil {
							t.Fatalf("%s+%#x: no rule, in DWARF %d", s.Name, at-s.Value, want.CFAOff)
						}
						if r.Role == First || r.Role == Trampoline || r.Role == Popped {
							continue
						}
						described++
						if r.Size+ra != want.CFAOff {
							t.Fatalf("%s+%#x: %+v, in DWARF %d", s.Name, at-s.Value, r, want.CFAOff)
						}
					}
				}
				if described < 100000 {
					t.Errorf("only %d of %d instructions compared", described, seen)
				}
				t.Logf("%d places compared", described)
			})
		}
	}
}

// TestRoles checks that the functions that walks depend on are recognised.
func TestRoles(t *testing.T) {
	want := map[string]Role{
		"runtime.goexit": First, "runtime.mstart": First, "runtime.rt0_go": First, "_rt0_amd64_linux": First,
		"runtime.systemstack": Switch, "runtime.mcall": Leave, "runtime.morestack": Leave, "gogo": Enter,
		"runtime.sigtramp": Plain, "runtime.sigpanic": Injected, "runtime.asyncPreempt": Injected,
		"runtime.schedule": Away, "runtime.clone": Start, "main.main": Plain, "runtime.nanotime1": Switch,
	}
	e, table := open(t, build(t, "amd64"))
	symbols, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, s := range symbols {
		name, _ := bytes.CutSuffix([]byte(s.Name), []byte(".abi0"))
		role, ok := want[string(name)]
		if !ok || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		found[string(name)] = true
		if r := table.Lookup(s.Value); r == nil || r.Role != role {
			t.Errorf("%s: %+v, want role %d", s.Name, r, role)
		}
	}
	for name := range want {
		if !found[name] {
			t.Errorf("the program has no %s", name)
		}
	}
}

// TestOldFormat reads a table of Go 1.15 that Go's own tests use.
func TestOldFormat(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("the go command does not say where its sources are: %v", err)
	}
	f, err := os.Open(filepath.Join(strings.TrimSpace(string(root)), "src/debug/gosym/testdata/pcln115.gz"))
	if err != nil {
		t.Fatalf("no old table: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	table, err := read(bytes.NewReader(b), int64(len(b)), cpu.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	want, err := gosym.NewTable(nil, gosym.NewLineTable(b, 0x1001000))
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Funcs) != table.n || table.n < 1000 {
		t.Fatalf("%d functions, want %d", table.n, len(want.Funcs))
	}
	named, sizes, lines := 0, 0, 0
	for _, fn := range want.Funcs {
		i, ok := table.function(fn.Entry)
		fields, ok2 := table.fields(table.r, table.r, i)
		start, ok3 := table.start(table.r, i)
		if !ok || !ok2 || !ok3 || start != fn.Entry {
			t.Fatalf("%s at %#x is not found", fn.Name, fn.Entry)
		}
		if name := table.string(table.r, table.names+int64(fields.name), 1000); name != "" {
			if named++; name != fn.Name {
				t.Fatalf("%s at %#x has the name %s", fn.Name, fn.Entry, name)
			}
		}
		if name, start, ok := table.Function(fn.End-1, 1000); !ok || name != fn.Name || start != fn.Entry {
			t.Fatalf("%s at %#x is called %s at %#x", fn.Name, fn.Entry, name, start)
		}
		for _, at := range []uint64{fn.Entry, fn.Entry + (fn.End-fn.Entry)/2, fn.End - 1} {
			file, line, _ := want.PCToLine(at)
			if f, l, ok := table.Line(at); ok != (line > 0) || ok && (f != file || int(l) != line) {
				t.Fatalf("%s: %#x is %s:%d, want %s:%d", fn.Name, at, f, l, file, line)
			} else if ok {
				lines++
			}
		}
		if r := table.Lookup(fn.Entry); r != nil && r.Role != First {
			if sizes++; r.Size != 0 {
				t.Errorf("%s has %d bytes of frame at its start", fn.Name, r.Size)
			}
		}
	}
	if named < table.n*9/10 || sizes < table.n*9/10 || lines < table.n {
		t.Errorf("only %d names, %d sizes and %d lines of %d", named, sizes, lines, table.n)
	}
}

func TestNoTable(t *testing.T) {
	b, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip("no /bin/sh")
	}
	f, err := objfile.Open(bytes.NewReader(b))
	if err != nil {
		t.Skip("/bin/sh is no ELF file")
	}
	if _, err := Open(f); !errors.Is(err, ErrNoTable) {
		t.Errorf("got %v", err)
	}
}

// versions are the formats that made writes.
var versions = []uint32{0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1}

// made returns a table of two functions, runtime.goexit at 0x1000 and f at 0x1010, as a version of
// Go writes it for a 64-bit program, as a seed for the fuzzer. Each function has line 7 of a.go,
// then line 9 of b.go.
func made(version uint32) []byte {
	le := binary.LittleEndian
	names := []byte("\x00runtime.goexit\x00f\x00a.go\x00b.go\x00")
	nameOf := func(name string) uint32 { return uint32(bytes.Index(names, []byte("\x00"+name+"\x00"))) + 1 }
	// Frame sizes: none for 4 bytes, then 8 for 12; files and lines likewise.
	values := []byte{0, 2, 4, 16, 12, 0, 4, 4, 2, 12, 0, 16, 4, 4, 12, 0}
	const sizes, files, lines = 1, 6, 11
	words, old := 8, version == 0xfffffffb
	if version == 0xfffffffa {
		words = 7
	}
	if old {
		words = 1
		values[files] = 4 // files are counted from 1
	} else {
		values[files] = 2
	}
	b := le.AppendUint64(append(le.AppendUint32(nil, version), 0, 0, 1, 8), 2)[:8]
	head := make([]uint64, words)
	head[0] = 2
	at := uint64(8 + 8*words)
	part := func(i int, size int) {
		if i > 0 {
			head[i] = at
		}
		at += uint64(size)
	}
	var body []byte
	units := le.AppendUint32(le.AppendUint32(nil, nameOf("a.go")), nameOf("b.go"))
	base := uint32(0) // of what old tables count from their own start
	if !old {
		first := words - 5 // names, units, files, values, records
		part(first, len(names))
		part(first+1, len(units))
		part(first+2, len(names))
		part(first+3, len(values))
		part(first+4, 0)
		body = append(append(append(append(body, names...), units...), names...), values...)
		if words == 8 {
			head[2] = 0x1000
		}
	}
	entry, text := 4, uint64(0)
	if version == 0xfffffffb || version == 0xfffffffa {
		entry, text = 8, 0x1000
	}
	put := func(b []byte, v uint64) []byte {
		if entry == 8 {
			return le.AppendUint64(b, v)
		}
		return le.AppendUint32(b, uint32(v))
	}
	const size = 56 // of a record, at least
	index := 5 * entry
	recordAt := uint64(index + 4) // from the records' start
	if old {
		base = uint32(at) + uint32(index) + 4 + 2*size // where the names and values of old tables are put
		recordAt += at
	}
	for i := range uint64(2) {
		body = put(put(body, text+16*i), recordAt+size*i)
	}
	body = put(body, text+0x20)
	valuesAt := uint32(0)
	if old {
		valuesAt = base + uint32(len(names))
		body = le.AppendUint32(body, valuesAt+uint32(len(values))) // the files
	} else {
		body = le.AppendUint32(body, 0)
	}
	for i, name := range []string{"runtime.goexit", "f"} {
		r := put(nil, text+16*uint64(i))
		for _, v := range []uint32{base + nameOf(name), 0, 0, valuesAt + sizes, valuesAt + files, valuesAt + lines, 0, 0, 0, 0} {
			r = le.AppendUint32(r, v)
		}
		r = append(r, make([]byte, size-len(r))...)
		if i == 0 && !old {
			r[entry+map[uint32]int{0xfffffffa: 33, 0xfffffff0: 33, 0xfffffff1: 37}[version]] = 1
		}
		body = append(body, r...)
	}
	if old {
		body = append(append(body, names...), values...)
		for _, v := range []uint32{3, base + nameOf("a.go"), base + nameOf("b.go")} {
			body = le.AppendUint32(body, v)
		}
	}
	for _, w := range head {
		b = le.AppendUint64(b, w)
	}
	return append(append(b, body...), make([]byte, 64)...)
}

func TestMade(t *testing.T) {
	for _, version := range versions {
		b := made(version)
		table, err := read(bytes.NewReader(b), int64(len(b)), cpu.AMD64)
		if err != nil {
			t.Fatalf("%#x: %v", version, err)
		}
		if r := table.Lookup(0x1000); r == nil || r.Role != First {
			t.Errorf("%#x: the first function: %+v", version, r)
		}
		for at, size := range map[uint64]int32{0x1010: 0, 0x1013: 0, 0x1014: 8} {
			if r := table.Lookup(at); r == nil || r.Size != size || r.Role != Plain {
				t.Errorf("%#x: %#x: %+v, want size %d", version, at, r, size)
			}
			file, line, ok := table.Line(at - table.text)
			if want := map[int32]string{0: "a.go", 8: "b.go"}[size]; !ok || file != want || line != 7+size/4 {
				t.Errorf("%#x: %#x: %s:%d, %v", version, at, file, line, ok)
			}
			if name, start, ok := table.Function(at-table.text, 100); !ok || name != "f" || start+table.text != 0x1010 {
				t.Errorf("%#x: %#x: %s at %#x", version, at, name, start)
			}
		}
		for _, at := range []uint64{0, 0xfff, 0x1020, 0x1100, ^uint64(0)} {
			if r := table.Lookup(at); r != nil {
				t.Errorf("%#x: %#x: %+v", version, at, r)
			}
		}
	}
}

func FuzzTable(f *testing.F) {
	for _, version := range versions {
		f.Add(made(version), uint64(0x1010))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			if p, err := ReadPclntab(bytes.NewReader(b), int64(len(b)), order); err == nil {
				first, end := p.Range()
				for _, at := range []uint64{at, first, end - 1, first + at%(end-first)} {
					if name, _, _ := p.Function(at, 100); len(name) > 100 {
						t.Errorf("a name of %d bytes", len(name))
					}
					if file, line, ok := p.Line(at); ok && (len(file) > maxPath || line <= 0) {
						t.Errorf("%#x is line %d of %q", at, line, file)
					}
				}
			}
		}
		if m, err := pe.Open(bytes.NewReader(b)); err == nil {
			if table, err := OpenPE(m); err == nil {
				table.Lookup(at)
				table.FindInliningPE(m)
			}
		}
		table, err := read(bytes.NewReader(b), int64(len(b)), cpu.AMD64)
		if err != nil {
			return
		}
		for _, at := range []uint64{at, table.text, table.text + 1, table.text + table.end - 1, table.text + at%(table.end+1)} {
			if r := table.Lookup(at); r != nil && (r.Size < 0 || r.Size > maxFrame) {
				t.Errorf("%#x: %+v", at, r)
			}
		}
		table.exits()
	})
}
