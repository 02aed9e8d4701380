package native

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/symbol"
)

// The memory kept for files grows little with their number, however large they are: a machine on
// which Go programs are built and tested runs dozens of large ones.
func TestHeapOfManyFiles(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}
	size := len(content)
	content = nil
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	const (
		files   = 40
		perFile = 48 << 10
		blocks  = 9 << 20 // of all files together
	)
	rng := rand.New(rand.NewPCG(1, 2))
	var keep []any
	named, lines, rules, asked := 0, 0, 0, 0
	for i := range files {
		// A different modification time makes it a different file.
		if err := os.Chtimes(path, time.Time{}, time.Unix(1e9+int64(i), 0)); err != nil {
			t.Fatal(err)
		}
		open := func() *os.File {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			return f
		}
		s, err := symbol.Open(open(), symbol.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := NewFiles().of(open())
		if err != nil {
			t.Fatal(err)
		}
		keep = append(keep, s, n)
		lo, hi := uint64(1)<<63, uint64(0)
		for _, p := range n.Progs {
			if p.Flags&1 != 0 { // code
				lo, hi = min(lo, p.Vaddr), max(hi, p.Vaddr+p.Filesz)
			}
		}
		for range 100 {
			addr := lo + rng.Uint64N(hi-lo)
			asked++
			if got, ok := s.Symbol(addr); ok && !got.NoName {
				named++
			}
			if len(s.Lines(addr, nil)) > 0 {
				lines++
			}
			if n.goes.Lookup(addr) != nil {
				rules++
			}
		}
	}
	if grown := int64(held()) - int64(before); grown > blocks+files*perFile {
		t.Errorf("%d files of %d bytes take %d bytes of memory, %d each", files, size, grown, grown/files)
	} else {
		t.Logf("%d files of %d bytes take %d bytes of memory", files, size, grown)
	}
	if named < asked*9/10 || lines < asked*9/10 || rules < asked*9/10 {
		t.Errorf("of %d addresses %d have a name, %d a line and %d a rule", asked, named, lines, rules)
	}
	runtime.KeepAlive(keep)
}

// BenchmarkGoLookup measures the look-up of an address that was not looked up before.
func BenchmarkGoLookup(b *testing.B) {
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(exe)
	if err != nil {
		b.Fatal(err)
	}
	n, err := NewFiles().of(f)
	if err != nil {
		b.Fatal(err)
	}
	lo, hi := n.goes.Range()
	rng := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		n.goes.Lookup(n.goes.Text() + lo + rng.Uint64N(hi-lo))
	}
}
