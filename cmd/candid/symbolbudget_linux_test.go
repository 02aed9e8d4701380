package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

// TestSymbolsShareABudget records a program that uses twelve libraries of 130 KB, each of which
// unpacks to 115 MB of debug sections. Without a budget for all of them that took 1.8 GB.
func TestSymbolsShareABudget(t *testing.T) {
	able(t)
	dir := t.TempDir()
	source := func(name, text string) string {
		file := filepath.Join(dir, name)
		writeFile(t, file, []byte(text))
		return file
	}
	lib := fixture.C(t, source("lib.c", `volatile unsigned long sum;
void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sum += i * i; }`), "-g", "-O1", "-fPIC", "-shared")
	main := fixture.C(t, source("main.c", `#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
	void (*f[64])(unsigned long);
	for (int i = 1; i < argc; i++) f[i - 1] = dlsym(dlopen(argv[i], RTLD_NOW), "spin");
	puts("ready");
	fflush(stdout);
	for (;;) for (int i = 0; i < argc - 1; i++) f[i](1000000);
}`), "-O1", "-ldl")
	objcopy := fixture.Tool(t, "objcopy")
	zeros, large, bomb := filepath.Join(dir, "zeros"), filepath.Join(dir, "large.so"), filepath.Join(dir, "bomb.so")
	writeFile(t, zeros, nil)
	if err := os.Truncate(zeros, 115_000_000); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--update-section", ".debug_str=" + zeros, lib, large}, {"--compress-debug-sections=zlib", large, bomb}} {
		if out, err := exec.Command(objcopy, args...).CombinedOutput(); err != nil {
			t.Fatalf("objcopy: %v\n%s", err, out)
		}
	}
	data, err := os.ReadFile(bomb)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(large)
	var libs []string
	for i := range 12 {
		libs = append(libs, filepath.Join(dir, "b"+strconv.Itoa(i)+".so"))
		if err := os.WriteFile(libs[i], data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	target := start(t, exec.Command(main, libs...))
	target.wait(t, "ready")

	const long = 2 * time.Second
	fixture.Attempts(t, 3, func() string {
		c := command(t, "record", "-p", target.pid(), "-d", long.String(), "--force", "-o", filepath.Join(dir, "out.jfr"))
		began := time.Now()
		r, peak := peakOf(t, c)
		took := time.Since(began)
		if r.code == exitNoSamples {
			return "no samples: the program hardly ran"
		}
		if r.code != exitOK {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
		use := c.ProcessState.SysUsage().(*syscall.Rusage)
		cpu := time.Duration(use.Utime.Nano() + use.Stime.Nano())
		t.Logf("%d KiB of %d, %v of CPU, %v for -d %v\n%s", peak, int64(use.Maxrss), cpu, took, long, r.err)
		if peak > 512<<10 {
			t.Errorf("%d KiB of memory, want 512 MiB at most", peak)
		}
		// Starting and attaching are not part of -d. They take less than this on an idle machine.
		const around = 600 * time.Millisecond
		if took > long+200*time.Millisecond+around {
			return "-d " + long.String() + " took " + took.String()
		}
		return ""
	})
}
