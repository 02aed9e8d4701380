package jfr_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/format/jfr"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/profile/profiletest"
)

// Pyroscope's parser reads what is in the profile, also from a file that was cut off in the middle.
// The parser is in a module of its own, because only this test needs it.
func TestGrafanaReadsIt(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "grafana")
	build := exec.Command("go", "build", "-C", filepath.Join("testdata", "grafana"), "-o", program, ".")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "@v") { // a module and its version: no other output of a build looks like this
			t.Skipf("the module cannot be had here: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	stacksOf := func(p *profile.Profile) map[string]int {
		return stacks(p, "|[no stack]|0;", func(string) string { return "" }, func(f profile.Frame, fn profile.Func) string {
			class, method := strings.Trim(fn.Module, "[]"), fn.Name
			if i := strings.LastIndexByte(fn.Name, '.'); fn.Module == "" && i > 0 && i+1 < len(fn.Name) {
				class, method = fn.Name[:i], fn.Name[i+1:]
			}
			return fmt.Sprintf("%s|%s|%d;", class, method, f.Line)
		})
	}
	check := func(t *testing.T, name string, data []byte) {
		t.Helper()
		file := filepath.Join(dir, name+".jfr")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{}
		for stack, n := range stacksOf(read(t, data)) {
			_, stack, _ = strings.Cut(strings.TrimPrefix(stack, "\t"), "\t") // over all threads
			want[strings.ReplaceAll(stack, ";;", ";")] += n
		}
		got := map[string]int{}
		for line := range strings.Lines(run(t, program, file)) {
			n, stack, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			count, err := strconv.Atoi(n)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			got[stack] += count
		}
		differ(t, got, want)
	}
	check(t, "java", written(t, profiletest.Java()))
	check(t, "unpacked", gunzip(t, packed(t, jfr.WritePacked, profiletest.Java())))
	files := 0
	some := func(name string, b []byte) {
		if files++; files%20 == 0 {
			check(t, name, b)
		}
	}
	jfr.TornFiles("plain")(t, 100, 1<<20, some)
	jfr.TornFiles("gzip")(t, 100, 1<<10, some)
}
