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
	table, err := Open(e, bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	return e, table
}

// TestSizes compares the size of every frame at every instruction with what the
// same program's DWARF table says, and the sizes in stripped programs with those
// in the same program that is not.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what builds Go programs for two processors")
	}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, mode := range []string{"exe", "pie"} {
			if !fixture.Full(t) && (arch == "amd64") != (mode == "exe") {
				continue // each processor in one way, each way by one processor
			}
			t.Run(arch+" "+mode, func(t *testing.T) {
				e, table := open(t, build(t, arch, "-buildmode="+mode))
				stripped := build(t, arch, "-buildmode="+mode, "-ldflags=-s -w")
				_, bare := open(t, stripped)
				clear(stripped[0x28:0x30]) // e_shoff
				clear(stripped[0x3a:0x40]) // e_shentsize, e_shnum, e_shstrndx
				_, headless := open(t, stripped)
				dwarf, err := ehframe.Open(e)
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
							continue // code that moves the stack in ways that neither table can say
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

// TestRoles: the functions that walks depend on are recognised.
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
	named, sizes := 0, 0
	for _, fn := range want.Funcs {
		i, ok := table.function(fn.Entry)
		fields, ok2 := table.fields(table.r, i)
		if !ok || !ok2 || table.start(i) != fn.Entry {
			t.Fatalf("%s at %#x is not found", fn.Name, fn.Entry)
		}
		if name := table.name(table.r, fields.name); name != "" {
			if named++; name != fn.Name {
				t.Fatalf("%s at %#x has the name %s", fn.Name, fn.Entry, name)
			}
		}
		if r := table.Lookup(fn.Entry); r != nil && r.Role != First {
			if sizes++; r.Size != 0 {
				t.Errorf("%s has %d bytes of frame at its start", fn.Name, r.Size)
			}
		}
	}
	if named < table.n*9/10 || sizes < table.n*9/10 {
		t.Errorf("only %d names and %d sizes of %d", named, sizes, table.n)
	}
}

func TestNoTable(t *testing.T) {
	b, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip("no /bin/sh")
	}
	e, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Skip("/bin/sh is no ELF file")
	}
	if _, err := Open(e, bytes.NewReader(b)); !errors.Is(err, ErrNoTable) {
		t.Errorf("got %v", err)
	}
}

// made is a table of two functions as Go 1.20 writes it, for the fuzzer to start
// from.
func made() []byte {
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put([]byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8})
	put([]uint64{2, 0, 0x1000, 72, 96, 96, 96, 112}) // functions, files, text; names, units, files, sizes, records
	put([]byte("\x00runtime.goexit\x00f\x00      "))
	put([]byte{0, 2, 4, 16, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	put([]uint32{0, 20, 0x10, 64, 0x20})
	put([]uint32{0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0x0108})
	put([]uint32{0x10, 16, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	b.Write(make([]byte, 64))
	return b.Bytes()
}

func TestMade(t *testing.T) {
	b := made()
	table, err := read(bytes.NewReader(b), int64(len(b)), cpu.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	if r := table.Lookup(0x1000); r == nil || r.Role != First {
		t.Errorf("the first function: %+v", r)
	}
	for at, size := range map[uint64]int32{0x1010: 0, 0x1013: 0, 0x1014: 8} {
		if r := table.Lookup(at); r == nil || r.Size != size || r.Role != Plain {
			t.Errorf("%#x: %+v, want size %d", at, r, size)
		}
	}
	for _, at := range []uint64{0, 0xfff, 0x1020, 0x1100, ^uint64(0)} {
		if r := table.Lookup(at); r != nil {
			t.Errorf("%#x: %+v", at, r)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add(made(), uint64(0x1010))
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
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
