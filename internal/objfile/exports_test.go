package objfile

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// The hash tables find what a scan of all symbols finds, and nothing else.
func TestExports(t *testing.T) {
	names := []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", fixture.JDK(t, 17) + "/lib/server/libjvm.so", "/usr/bin/node"}
	src, lib := filepath.Join(t.TempDir(), "a.c"), filepath.Join(t.TempDir(), "old.so")
	if err := os.WriteFile(src, []byte("int one = 1; int two; int f(void) { return one; } int g(void) { return two; } int printf(const char*, ...); int h(void) { return printf(\"\"); }"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fixture.Compile(fixture.Tool(t, "gcc"), "-shared", "-fPIC", "-Wl,--hash-style=sysv", "-o", lib, src); err != nil {
		t.Fatal(err)
	}
	names = append(names, lib)
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		e, err := elf.NewFile(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		syms, err := e.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		table := f.Exports()
		if filepath.Base(name) == "old.so" && !table.old {
			t.Error("no old hash table in the file made for it")
		}
		defined := map[string]map[uint64]bool{}
		for _, s := range syms {
			if s.Section != elf.SHN_UNDEF {
				if defined[s.Name] == nil {
					defined[s.Name] = map[uint64]bool{}
				}
				defined[s.Name][s.Value] = true
			}
		}
		n := 0
		for s, values := range defined {
			if n++; n > 3000 {
				break
			}
			if v, ok := table.Lookup(s); !ok || !values[v] {
				t.Errorf("%s: %s is %#x, %v, want one of %v", name, s, v, ok, values)
			}
			if _, ok := table.Lookup(s + "?"); ok {
				t.Errorf("%s: %s? was found", name, s)
			}
		}
		for _, s := range syms {
			if s.Section == elf.SHN_UNDEF && defined[s.Name] == nil {
				if _, ok := table.Lookup(s.Name); ok {
					t.Errorf("%s: %s is not defined, but was found", name, s.Name)
				}
			}
		}
	}
}
