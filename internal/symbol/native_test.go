package symbol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/safeopen"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// oneFile locates every frame in one file, whose addresses are the frames' PCs.
type oneFile struct{ path, name string }

func (o oneFile) Locate(f walk.Frame) (Place, bool) {
	if f.PC == 0xdead {
		return Place{}, false
	}
	return Place{File: fileid.ID{Dev: 1, Inode: 2}, Name: o.name, Path: o.path, Addr: f.PC}, true
}

func (o oneFile) Open(Place) (target.File, error) { return os.Open(o.path) }

// buildC compiles the small program and returns its path and function addresses.
func buildC(t testing.TB, args ...string) (string, map[string]uint64) {
	t.Helper()
	path := compile(t, "t.c", tinySource, "gcc", args...)
	return path, addresses(t, path)
}

func addresses(t testing.TB, path string) map[string]uint64 {
	t.Helper()
	at := map[string]uint64{}
	for _, s := range nmSymbols(t, path) {
		at[s.name] = s.addr
	}
	if at["out"] == 0 || at["main"] == 0 {
		t.Fatalf("nm does not list out and main: %v", at)
	}
	return at
}

func TestNativeInlined(t *testing.T) {
	path, at := buildC(t, "-g", "-O2")
	n := NewNative(oneFile{path, "t"}, nil)
	defer n.Close()
	if len(n.Notes()) != 0 {
		t.Errorf("notes: %v", n.Notes())
	}
	found := false
	for off := range uint64(40) {
		fr := n.Resolve(walk.Frame{PC: at["out"] + off, Kind: walk.KindNative}, nil)
		last := fr[len(fr)-1]
		if last.Function != "out" {
			break
		}
		if last.Kind != walk.KindNative || last.Module != "t" || last.BCI != -1 || filepath.Base(last.File) != "t.c" || last.Line == 0 {
			t.Fatalf("%+v", last)
		}
		if len(fr) == 2 && fr[0].Function == "in" && fr[0].Kind == walk.KindInlined && fr[0].Line == 3 {
			found = true
		}
	}
	if !found {
		t.Error("no place where in is inlined into out")
	}
	// A return address at the start of main belongs to the code before it.
	got := n.Resolve(walk.Frame{PC: at["main"], Flags: walk.ReturnAddress}, nil)
	if got[len(got)-1].Function == "main" || got[0].Addr != at["main"] {
		t.Errorf("return address: %+v", got)
	}
	if got = n.Resolve(walk.Frame{PC: at["main"]}, nil); got[len(got)-1].Function != "main" {
		t.Errorf("leaf: %+v", got)
	}
	if got = n.Resolve(walk.Frame{PC: 1 << 60}, nil); len(got) != 1 || !got[0].NoName || got[0].Function != "t+0x1000000000000000" {
		t.Errorf("outside: %+v", got)
	}
	if got = n.Resolve(walk.Frame{PC: 0xdead}, nil); len(got) != 1 || got[0].Function != "[unknown]" || !got[0].NoName {
		t.Errorf("no file: %+v", got)
	}
}

func TestNativeMissingFile(t *testing.T) {
	n := NewNative(oneFile{"/nonexistent/lib.so", "lib.so"}, nil)
	got := n.Resolve(walk.Frame{PC: 0x1234}, nil)
	if len(got) != 1 || got[0].Function != "lib.so+0x1234" || !got[0].NoName || got[0].Module != "lib.so" {
		t.Errorf("%+v", got)
	}
	if notes := n.Notes(); len(notes) != 1 || !errors.Is(notes[0], os.ErrNotExist) {
		t.Errorf("notes: %v", notes)
	}
}

// want checks the names of out and main.
func want(t *testing.T, f *File, at map[string]uint64) {
	t.Helper()
	for _, name := range []string{"out", "main"} {
		if s, ok := f.Symbol(at[name] + 1); !ok || s.Name != name || s.Start != at[name] {
			t.Errorf("%s: %+v %v; notes %v", name, s, ok, f.Notes())
		}
	}
}

func TestStripped(t *testing.T) {
	path, at := buildC(t, "-O2")
	run(t, "", "strip", path)
	f := openTest(t, path, Options{})
	s, ok := f.Symbol(at["out"] + 3)
	if !ok || !s.NoName || s.Start != at["out"] {
		t.Errorf("the unwind tables give where out begins: %+v, want %#x", s, at["out"])
	}
}

func TestMiniDebug(t *testing.T) {
	path, at := buildC(t, "-O2", "-rdynamic")
	dir := filepath.Dir(path)
	run(t, dir, "objcopy", "--only-keep-debug", path, "mini")
	run(t, dir, "xz", "-k", "mini")
	run(t, dir, "strip", "prog")
	run(t, dir, "objcopy", "--add-section", ".gnu_debugdata=mini.xz", "prog")
	want(t, openTest(t, path, Options{}), at)
}

func TestSeparateDebugFile(t *testing.T) {
	path, at := buildC(t, "-g", "-O2", "-Wl,--build-id=sha1")
	dir := filepath.Dir(path)
	run(t, dir, "objcopy", "--only-keep-debug", path, "full.debug")
	id := openTest(t, path, Options{}).BuildID()
	if len(id) != 40 {
		t.Fatalf("build-id %q", id)
	}
	run(t, dir, "strip", "-o", "byid", "prog")
	run(t, dir, "strip", "-o", "bylink", "-R", ".note.gnu.build-id", "prog")
	run(t, dir, "objcopy", "--add-gnu-debuglink=full.debug", "bylink")

	var asked []string
	open := func(only string) func(string) (*os.File, error) {
		return func(p string) (*os.File, error) {
			asked = append(asked, p)
			if p != only {
				return nil, os.ErrNotExist
			}
			return os.Open(filepath.Join(dir, "full.debug"))
		}
	}
	want(t, openTest(t, filepath.Join(dir, "byid"), Options{OpenDebug: open("/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug")}), at)
	for _, p := range []string{"/opt/x/full.debug", "/opt/x/.debug/full.debug", "/usr/lib/debug/opt/x/full.debug"} {
		f := openTest(t, filepath.Join(dir, "bylink"), Options{Path: "/opt/x/bylink", OpenDebug: open(p)})
		want(t, f, at)
		if got := f.Lines(at["out"], nil); len(got) == 0 || got[len(got)-1].Line != 4 {
			t.Errorf("lines from the debug file: %+v", got)
		}
	}

	// A file with another checksum, or another build-id, must not be used.
	b, err := os.ReadFile(filepath.Join(dir, "full.debug"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "full.debug"), append(b, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	f := openTest(t, filepath.Join(dir, "bylink"), Options{Path: "/opt/x/bylink", OpenDebug: open("/opt/x/full.debug")})
	if s, _ := f.Symbol(at["out"]); !s.NoName || len(f.Notes()) == 0 || !strings.Contains(f.Notes()[0].Error(), "checksum") {
		t.Errorf("wrong checksum: %+v, notes %v", s, f.Notes())
	}
	i := strings.Index(string(b), string(mustHex(t, id)))
	b[i] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "full.debug"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	f = openTest(t, filepath.Join(dir, "byid"), Options{OpenDebug: open("/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug")})
	if s, _ := f.Symbol(at["out"]); !s.NoName || len(f.Notes()) == 0 || !strings.Contains(f.Notes()[0].Error(), "build-id") {
		t.Errorf("wrong build-id: %+v, notes %v", s, f.Notes())
	}
	if slices.Contains(asked, "") {
		t.Error("empty path asked for")
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(s, "%x", &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPLT compares stub names with objdump's.
func TestPLT(t *testing.T) {
	const src = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int c, char **v) { void *p = malloc(c); memset(p, 1, c); printf("%p %s\n", p, getenv("X")); qsort(v, c, 8, (int (*)(const void*, const void*))strcmp); free(p); return 0; }
`
	for _, args := range [][]string{{"-O1"}, {"-O1", "-fcf-protection"}, {"-O1", "-no-pie", "-Wl,-z,now"}, {"-O1", "-Wl,-z,ibtplt"}} {
		path := compile(t, "p.c", src, "gcc", args...)
		f := openTest(t, path, Options{})
		n := 0
		for line := range strings.Lines(run(t, "", "objdump", "-d", path)) {
			addr, name, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ">:"), " <")
			if !ok || !strings.HasSuffix(name, "@plt") {
				continue
			}
			var a uint64
			if _, err := fmt.Sscanf(addr, "%x", &a); err != nil {
				continue
			}
			n++
			if s, ok := f.Symbol(a + 1); !ok || s.Name != name {
				t.Errorf("%v: %#x: %+v, objdump says %s", args, a, s, name)
			}
		}
		if n < 5 {
			t.Errorf("%v: objdump names %d stubs", args, n)
		}
	}
}

func TestStubsARM64(t *testing.T) {
	// bti c; adrp x16, +1 page; ldr x17, [x16, #0x18]; add x16, x16, #0x18; br x17; nop
	var code []byte
	for _, w := range []uint32{0xd503245f, 0xb0000010, 0xf9400e11, 0x91006210, 0xd61f0220, 0xd503201f,
		0xd503245f, 0xf0fffff0, 0xf9400211, 0x91000210, 0xd61f0220, 0xd503201f} {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	var got []string
	stubsARM64(code, 0x10020, func(start, end, slot uint64) {
		got = append(got, fmt.Sprintf("%x-%x %x", start, end, slot))
	})
	if fmt.Sprint(got) != "[10020-10038 11018 10038-10050 f000]" {
		t.Error(got)
	}
}

func TestStaticMusl(t *testing.T) {
	path := compile(t, "t.c", tinySource, "musl-gcc", "-static", "-O2")
	at := addresses(t, path)
	want(t, openTest(t, path, Options{}), at)
}

func TestStaticPIE(t *testing.T) {
	path, at := buildC(t, "-static-pie", "-O2")
	want(t, openTest(t, path, Options{}), at)
}

// TestSectionless checks that a library without its section headers still has the names that the
// dynamic linker needs.
func TestSectionless(t *testing.T) {
	path, at := buildC(t, "-O2", "-rdynamic", "-Wl,--hash-style=both")
	run(t, "", "strip", path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[40:48]) // e_shoff
	clear(b[58:64]) // e_shentsize, e_shnum, e_shstrndx
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, openTest(t, path, Options{}), at)
}

func TestVDSO(t *testing.T) {
	f, err := ownVDSO()
	if err != nil {
		t.Skipf("needs a vdso: %v", err)
	}
	names := map[string]bool{}
	for _, e := range f.table.syms {
		s, _ := f.Symbol(e.addr)
		names[s.Name] = true
	}
	if !names["clock_gettime"] && !names["__vdso_clock_gettime"] && !names["__kernel_clock_gettime"] {
		t.Errorf("no clock_gettime among %v", names)
	}
}

func TestPerfMap(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tmp", "perf-7.map")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	n := NewNative(oneFile{}, nil)
	n.UsePerfMap(func() (*os.File, error) { return safeopen.InRoot(dir, "/tmp/perf-7.map") })
	name := func(pc uint64) string {
		e, _ := n.perf.find(pc, time.Now())
		return e.name
	}
	write := func(s string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(s); err != nil {
			t.Fatal(err)
		}
		n.perf.looked = time.Time{} // as if a second had passed
	}
	if got := name(0x1000); got != "" {
		t.Errorf("without a file: %q", got)
	}
	write("1000 100 LazyCompile:*fib /x.js:1:2\n2000 10 half")
	if got := name(0x10ff); got != "LazyCompile:*fib /x.js:1:2" {
		t.Errorf("got %q", got)
	}
	if got := name(0x2001); got != "" {
		t.Errorf("a line that is not whole was taken: %q", got)
	}
	write(" line\n1080 20 newer\n")
	for pc, want := range map[uint64]string{0x2001: "half line", 0x1085: "newer", 0x1040: "LazyCompile:*fib /x.js:1:2", 0x1100: "", 0xfff: ""} {
		if got := name(pc); got != want {
			t.Errorf("%#x: %q, want %q", pc, got, want)
		}
	}
	// The target must not make candid open a file outside its root.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("9000 10 secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, path); err != nil {
		t.Fatal(err)
	}
	n.perf.looked = time.Time{}
	if got := name(0x9001); got != "" {
		t.Errorf("a link out of the root was followed: %q", got)
	}
}

func TestDemangle(t *testing.T) {
	for raw, want := range map[string]string{
		"main":                               "main",
		"_ZNSt6vectorIiSaIiEE9push_backERKi": "std::vector<int>::push_back",
		"_ZSt4sortIPiEvT_S1_":                "std::sort<int*>",
		"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE":                 "core::fmt::Formatter::write_str",
		"_RNvMs4_NtCsgY6Mt91CT9J_14rustc_demangle2v0NtB5_7Printer10print_type": "<rustc_demangle::v0::Printer>::print_type",
		"memcpy@@GLIBC_2.14":              "memcpy",
		"free@plt":                        "free@plt",
		"_ZdlPvm@plt":                     "operator delete@plt",
		"compute.cold":                    "compute",
		"compute.part.0.isra.0":           "compute",
		"_ZN3Foo3barEv.constprop.0":       "Foo::bar",
		"_ZN3Foo3barEv.llvm.1234":         "Foo::bar",
		"runtime.coldest":                 "runtime.coldest",
		"main.main":                       "main.main",
		"_D3std5stdio7writelnFZv":         "std.stdio.writeln",
		"a\x1b[31m\nb":                    "a\ufffd[31m\ufffdb",
		"\xff\xfe":                        "\ufffd\ufffd",
		"_ZN12_GLOBAL__N_13fooEv":         "(anonymous namespace)::foo",
		"_ZTv0_n24_N3Foo3barEv":           "virtual thunk to Foo::bar",
		"Java_java_util_zip_CRC32_update": "Java_java_util_zip_CRC32_update",
		"_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiSt4lessIS5_ESaISt4pairIKS5_iEEEixEOS5_": "std::map<std::string, int, std::less<std::string>>::operator[]",
		"_ZN3FooC2Ev":          "Foo::Foo",
		"_ZZ4mainENKUlvE_clEv": "main::{lambda()#1}::operator()",
	} {
		if got := Demangle(raw); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
	if got := Demangle(strings.Repeat("é", 10000)); len(got) > maxName+8 {
		t.Errorf("%d bytes long", len(got))
	}
}

func BenchmarkResolve(b *testing.B) {
	n := NewNative(oneFile{libjvm(b), "libjvm.so"}, nil)
	f := openTest(b, libjvm(b), Options{NoLines: true})
	var pcs []uint64
	for i := 0; i < len(f.table.syms) && len(pcs) < 1024; i += 40 {
		pcs = append(pcs, f.table.syms[i].addr+2)
	}
	out := make([]Frame, 0, 16)
	for _, pc := range pcs {
		out = n.Resolve(walk.Frame{PC: pc, Kind: walk.KindNative}, out[:0])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		out = n.Resolve(walk.Frame{PC: pcs[i%len(pcs)], Kind: walk.KindNative}, out[:0])
	}
}

func TestIsCLibrary(t *testing.T) {
	for name, want := range map[string]bool{
		"libc.so.6": true, "/lib/x86_64-linux-gnu/libc-2.31.so": true, "ld-linux-x86-64.so.2": true, "ld-musl-x86_64.so.1": true,
		"libc++.so.1": false, "libcurl.so.4": false, "libjvm.so": false, "": false, "libc.so": false,
	} {
		if isCLibrary(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
