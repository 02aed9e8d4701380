package symbol

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

const pdbSource = `
#include <stdio.h>
__attribute__((always_inline)) static inline int inner(volatile int *p) {
	int s = 0;
	for (int i = 0; i < *p; i++)
		s += *p * i; /* in inner */
	return s;
}
__attribute__((always_inline)) static inline int outer(volatile int *p) {
	int v = inner(p);
	*p = v; /* in outer */
	return v;
}
static __attribute__((noinline)) int hidden(volatile int *p) {
	int r = outer(p);
	return r + *p; /* in hidden */
}
int main(void) {
	volatile int n = 7;
	printf("%d\n", hidden(&n));
	return 0;
}
`

// A program of clang with a program database is named by it, with lines and inlined functions; each
// line that llvm-pdbutil finds for a function is found.
func TestPDB(t *testing.T) {
	db := filepath.Join(t.TempDir(), "prog.pdb")
	exe := fixture.MinGW(t, "clang", "prog.exe", pdbSource, "-O2", "-g", "-gcodeview", "-fuse-ld=lld", "-Wl,--pdb="+db, "-Wl,-s")
	file, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(file, Options{Path: exe, OpenDebug: func(p string) (*os.File, error) { return os.Open(p) }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Origin() != OriginPDB {
		t.Fatalf("names come from %s, %v", f.Origin(), f.Notes())
	}
	text := strings.Split(pdbSource, "\n")
	seen := map[string]bool{}
	for rva := f.pe.Sections[0].RVA; rva < f.pe.Sections[0].RVA+f.pe.Sections[0].Size; rva++ {
		s, ok := f.Symbol(uint64(rva))
		if !ok || s.Name != "hidden" {
			continue
		}
		places := f.Lines(uint64(rva), nil)
		var chain []string
		for _, p := range places {
			if p.Line < 1 || int(p.Line) > len(text) || !strings.HasSuffix(p.File, "prog.c") {
				t.Fatalf("%#x: %+v", rva, p)
			}
			chain = append(chain, p.Function)
			if _, in, ok := strings.Cut(text[p.Line-1], "/* in "); ok {
				seen[strings.TrimSuffix(in, " */")+" as "+p.Function] = true
			}
		}
		seen[strings.Join(chain, ">")] = true
	}
	for _, want := range []string{"inner as inner", "outer as outer", "hidden as ", "inner>outer>", "outer>", ""} {
		if !seen[want] {
			t.Errorf("no %q: %v", want, seen)
		}
	}
	if s, ok := f.Symbol(uint64(f.pe.Entry)); !ok || s.Name != "mainCRTStartup" {
		t.Errorf("the entry point is %q", s.Name)
	}

	// The other reader of such files.
	tool := fixture.Tool(t, "llvm-pdbutil", "llvm-pdbutil-14", "llvm-pdbutil-19")
	out, err := exec.Command(tool, "dump", "-publics", db).Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, m := range regexp.MustCompile("(?s)S_PUB32 \\[.*?`(\\S+)`.*?flags = ([a-z |]+), addr = ([0-9]+):([0-9]+)").FindAllStringSubmatch(string(out), -1) {
		segment, _ := strconv.Atoi(m[3])
		off, _ := strconv.Atoi(m[4])
		rva, ok := f.pe.Address(uint16(segment), uint32(off))
		if !ok || !strings.Contains(m[2], "function") {
			continue
		}
		i := f.pe.table.find(uint64(rva))
		found := false
		for ; i >= 0 && i < len(f.pe.table.syms) && f.pe.table.syms[i].addr == uint64(rva); i++ {
			e := &f.pe.table.syms[i]
			found = found || f.pe.table.strings[e.src].name(e.name) == m[1]
		}
		if s, _ := f.Symbol(uint64(rva)); !found && s.Start != uint64(rva) {
			t.Errorf("%s at %#x is %q", m[1], rva, s.Name)
		}
		checked++
	}
	if checked < 20 {
		t.Errorf("%d public functions of llvm-pdbutil:\n%.2000s", checked, out)
	}
	if bytes.Count(out, []byte("S_PUB32")) == 0 {
		t.Error("no public symbols")
	}
}

// The symbols and lines of a program of MinGW that were separated from it are found by the link.
func TestSeparatedWindows(t *testing.T) {
	exe := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "prog.exe", pdbSource, "-O2", "-g")
	debug := strings.TrimSuffix(exe, ".exe") + ".dbg"
	objcopy := fixture.Tool(t, "x86_64-w64-mingw32-objcopy")
	for _, args := range [][]string{{"--only-keep-debug", exe, debug}, {"--strip-all", "--add-gnu-debuglink=" + debug, exe}} {
		if err := fixture.Compile(objcopy, args...); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(file, Options{Path: exe, OpenDebug: func(p string) (*os.File, error) { return os.Open(p) }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Origin() != OriginDebugFile {
		t.Fatalf("names come from %s, %v", f.Origin(), f.Notes())
	}
	inlined := false
	for rva := f.pe.Sections[0].RVA; rva < f.pe.Sections[0].RVA+f.pe.Sections[0].Size; rva++ {
		if s, ok := f.Symbol(uint64(rva)); ok && s.Name == "hidden" {
			p := f.Lines(uint64(rva), nil)
			inlined = inlined || len(p) == 3 && p[0].Function == "inner" && strings.HasSuffix(p[0].File, "prog.c")
		}
	}
	if !inlined {
		t.Error("no code of hidden is that of inner, inlined into outer")
	}
}
