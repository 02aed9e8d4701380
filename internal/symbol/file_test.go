package symbol

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
)

func run(t testing.TB, dir, tool string, args ...string) string {
	t.Helper()
	cmd := exec.Command(fixture.Tool(t, tool), args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", tool, args, err, stderr.String())
	}
	return string(out)
}

func openTest(t testing.TB, path string, opt Options) *File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("needs %s: %v", path, err)
	}
	s, err := Open(f, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// libjvm finds a libjvm.so with symbols.
func libjvm(t testing.TB) string {
	t.Helper()
	return filepath.Join(fixture.JDK(t, 17), "lib", "server", "libjvm.so")
}

type nmSym struct {
	addr, size uint64
	name       string
}

// nmSymbols returns the code symbols of a file according to binutils' nm.
func nmSymbols(t testing.TB, path string, args ...string) []nmSym {
	t.Helper()
	out := run(t, "", "nm", append(args, "-S", "--defined-only", path)...)
	var syms []nmSym
	for sc := bufio.NewScanner(strings.NewReader(out)); sc.Scan(); {
		f := strings.Fields(sc.Text())
		if len(f) != 4 || !strings.ContainsAny(f[2], "tTwWiu") {
			continue
		}
		a, err1 := strconv.ParseUint(f[0], 16, 64)
		n, err2 := strconv.ParseUint(f[1], 16, 64)
		if err1 == nil && err2 == nil && n > 0 {
			syms = append(syms, nmSym{a, n, strings.SplitN(f[3], "@", 2)[0]})
		}
	}
	sort.Slice(syms, func(i, j int) bool { return syms[i].addr < syms[j].addr })
	return syms
}

// againstNM looks up random addresses inside symbols that nm lists and requires one of the names
// that nm has for the address.
func againstNM(t *testing.T, path string, nmArgs ...string) {
	syms := nmSymbols(t, path, nmArgs...)
	if len(syms) < 100 {
		t.Fatalf("nm lists %d code symbols of %s", len(syms), path)
	}
	start := time.Now()
	f := openTest(t, path, Options{NoLines: true})
	t.Logf("%s: %d symbols in %v", filepath.Base(path), f.Symbols(), time.Since(start))
	rng := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	for range 20000 {
		s := syms[rng.IntN(len(syms))]
		addr := s.addr + rng.Uint64N(s.size)
		if _, ok := f.m.code(addr); !ok {
			continue // data
		}
		got, ok := f.Symbol(addr)
		raw := got.Raw
		if raw == "" {
			raw = got.Name
		}
		raw = strings.SplitN(raw, "@", 2)[0]
		fits := false
		i := sort.Search(len(syms), func(i int) bool { return syms[i].addr > addr })
		for j := i - 1; j >= 0 && j > i-3000; j-- {
			fits = fits || addr-syms[j].addr < syms[j].size && syms[j].name == raw
		}
		if !ok || !fits {
			if wrong++; wrong < 10 {
				t.Errorf("%#x: got %+v, nm has %s", addr, got, s.name)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of 20000 wrong", wrong)
	}
}

func TestAgainstNM(t *testing.T) {
	t.Run("libjvm", func(t *testing.T) { againstNM(t, libjvm(t)) })
	t.Run("libc", func(t *testing.T) { againstNM(t, "/lib/x86_64-linux-gnu/libc.so.6", "-D") })
}

// BenchmarkOpen reads a JVM's symbols, which should take about 30 ms.
func BenchmarkOpen(b *testing.B) {
	path := libjvm(b)
	b.ReportAllocs()
	for b.Loop() {
		f, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		s, err := Open(f, Options{NoLines: true})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkSymbol(b *testing.B) {
	f := openTest(b, libjvm(b), Options{NoLines: true})
	rng := rand.New(rand.NewPCG(1, 2))
	addrs := make([]uint64, 1024)
	for i := range addrs {
		e := f.table.syms[rng.IntN(len(f.table.syms))]
		addrs[i] = e.addr + uint64(e.size)/2
		f.Symbol(addrs[i])
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.Symbol(addrs[i%1024])
	}
}
