package target

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/vmread"
)

// arena maps n pages in this process, each filled with its number, and makes those in holes
// unreadable.
func arena(t testing.TB, n int, holes ...int) (uint64, []byte) {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	for i := range mem {
		mem[i] = byte(i/pageSize) + byte(i)*3
	}
	// A hole is a page of a file beyond its end: /proc/PID/mem would read memory that is merely
	// protected, and the Go runtime may fill unmapped addresses.
	empty, err := unix.MemfdCreate("empty", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(empty)
	for _, h := range holes {
		if _, err := unix.MmapPtr(empty, 0, unsafe.Pointer(&mem[h*pageSize]), pageSize, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
			t.Fatal(err)
		}
	}
	return uint64(uintptr(unsafe.Pointer(&mem[0]))), mem
}

func self(t testing.TB) *Process {
	t.Helper()
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// eachAccess runs a test with process_vm_readv and with /proc/PID/mem.
func eachAccess(t *testing.T, f func(t *testing.T, m *Memory)) {
	t.Run("process_vm_readv", func(t *testing.T) { f(t, self(t).Memory()) })
	t.Run("proc_mem", func(t *testing.T) {
		m := self(t).Memory()
		a := m.src.(*vmAccess)
		fd, err := a.reopen()
		if err != nil {
			t.Fatal(err)
		}
		a.mem = fd
		f(t, m)
	})
}

func TestReadVWithHoles(t *testing.T) {
	eachAccess(t, func(t *testing.T, m *Memory) {
		const pages = 3000 // more than one call can carry
		holes := map[int]bool{0: true, 1: true, 7: true, 1023: true, 1024: true, 2048: true, pages - 1: true}
		var list []int
		for h := range holes {
			list = append(list, h)
		}
		base, mem := arena(t, pages, list...)
		reqs := make([]Read, pages+1)
		for i := range pages {
			reqs[i] = Read{Addr: base + uint64(i)*pageSize + 100, Buf: make([]byte, 16)}
		}
		reqs[pages] = Read{Addr: 1 << 63} // empty: nothing to read, so OK
		n := m.ReadV(reqs)
		if want := pages - len(holes) + 1; n != want {
			t.Errorf("%d ranges read, want %d", n, want)
		}
		for i := range pages {
			if reqs[i].OK == holes[i] {
				t.Fatalf("page %d: OK = %v", i, reqs[i].OK)
			}
			if reqs[i].OK && !bytes.Equal(reqs[i].Buf, mem[i*pageSize+100:][:16]) {
				t.Fatalf("page %d: wrong bytes", i)
			}
		}
	})
}

func TestReadAcrossHoleFails(t *testing.T) {
	eachAccess(t, func(t *testing.T, m *Memory) {
		base, mem := arena(t, 3, 1)
		p := make([]byte, 16)
		if err := m.ReadAt(p, base+pageSize-8); !errors.Is(err, ErrMemory) {
			t.Errorf("read into a hole: %v", err)
		}
		if err := m.ReadAt(p, base+pageSize-16); err != nil || !bytes.Equal(p, mem[pageSize-16:pageSize]) {
			t.Errorf("read up to a hole: %v", err)
		}
		reqs := []Read{{Addr: base + pageSize - 8, Buf: make([]byte, 16)}, {Addr: base, Buf: make([]byte, 8)}}
		if n := m.ReadV(reqs); n != 1 || reqs[0].OK || !reqs[1].OK {
			t.Errorf("a range that ends in a hole: %d read, %v %v", n, reqs[0].OK, reqs[1].OK)
		}
		for _, addr := range []uint64{0, 1, 1 << 47, 1 << 63, ^uint64(0), ^uint64(0) - 7} {
			if err := m.ReadAt(p, addr); !errors.Is(err, ErrMemory) {
				t.Errorf("read at %#x: %v", addr, err)
			}
			if _, err := m.Uint64(addr); !errors.Is(err, ErrMemory) {
				t.Errorf("word at %#x: %v", addr, err)
			}
			if _, ok := m.Word(addr); ok {
				t.Errorf("cached word at %#x could be read", addr)
			}
			if m.Bytes(addr, p) {
				t.Errorf("cached bytes at %#x could be read", addr)
			}
		}
	})
}

func TestReadLong(t *testing.T) {
	m := self(t).Memory()
	const pages = vmread.MaxBytes/pageSize + 5
	base, mem := arena(t, pages, pages-1)
	p := make([]byte, (pages-1)*pageSize)
	if err := m.ReadAt(p, base); err != nil || !bytes.Equal(p, mem[:len(p)]) {
		t.Errorf("long read: %v", err)
	}
	if err := m.ReadAt(make([]byte, pages*pageSize), base); !errors.Is(err, ErrMemory) {
		t.Errorf("long read into a hole: %v", err)
	}
}

func TestNumbers(t *testing.T) {
	m := self(t).Memory()
	base, mem := arena(t, 1)
	binary.LittleEndian.PutUint64(mem, 0x8877665544332211)
	if v, err := m.Uint64(base); err != nil || v != 0x8877665544332211 {
		t.Errorf("Uint64 = %#x, %v", v, err)
	}
	if v, err := m.Uint32(base); err != nil || v != 0x44332211 {
		t.Errorf("Uint32 = %#x, %v", v, err)
	}
	if v, err := m.Uint16(base + 6); err != nil || v != 0x8877 {
		t.Errorf("Uint16 = %#x, %v", v, err)
	}
	mem[0] = 0x99 // uncached: seen at once
	if v, _ := m.Uint16(base); v != 0x2299 {
		t.Errorf("Uint16 after a write = %#x", v)
	}
}

func TestPageCache(t *testing.T) {
	eachAccess(t, func(t *testing.T, m *Memory) {
		const pages = cachePages * 3
		base, mem := arena(t, pages, 5)
		check := func(off int) {
			t.Helper()
			v, ok := m.Word(base + uint64(off))
			if off+8 > 5*pageSize && off < 6*pageSize {
				if ok {
					t.Fatalf("word at offset %#x could be read", off)
				}
				return
			}
			if want := binary.LittleEndian.Uint64(mem[off:]); !ok || v != want {
				t.Fatalf("word at offset %#x = %#x, %v, want %#x", off, v, ok, want)
			}
		}
		for round := range 3 {
			for pg := range pages - 1 {
				check(pg*pageSize + 8*round)
				check(pg*pageSize + pageSize - 8)
				check(pg*pageSize + pageSize - 3) // crosses two pages
			}
		}
		// A cached page stays until Invalidate.
		check(100 * pageSize)
		old := mem[100*pageSize]
		mem[100*pageSize] = old + 1
		if v, _ := m.Word(base + 100*pageSize); byte(v) != old {
			t.Error("a cached word changed")
		}
		m.Invalidate()
		check(100 * pageSize)
		// A hole is cached too, and forgotten by Invalidate.
		check(5 * pageSize)
		misses := m.pages.misses
		for range 100 {
			check(5*pageSize + 16)
		}
		if m.pages.misses != misses {
			t.Errorf("%d reads of a page known to be unreadable", m.pages.misses-misses)
		}
		if _, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&mem[5*pageSize]), pageSize, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED); err != nil {
			t.Fatal(err)
		}
		m.Invalidate()
		if v, ok := m.Word(base + 5*pageSize); !ok || v != binary.LittleEndian.Uint64(mem[5*pageSize:]) {
			t.Error("the hole was still remembered")
		}
		m.Forget()
		if m.pages.pageSlots != nil {
			t.Error("memory that was forgotten is still held")
		}
		m.Invalidate()
		check(100 * pageSize)
		m.Forget()
		check(100*pageSize + 8)
		m.Forget()
		got := make([]byte, 3*pageSize)
		if !m.Bytes(base+10*pageSize-1, got) || !bytes.Equal(got, mem[10*pageSize-1:][:len(got)]) {
			t.Error("bytes over several pages differ")
		}
	})
}

func TestPrefetch(t *testing.T) {
	m := self(t).Memory()
	base, mem := arena(t, 900, 3, 400)
	var addrs []uint64
	for i := range 900 {
		addrs = append(addrs, base+uint64(i)*pageSize+uint64(i), base+uint64(i)*pageSize)
	}
	m.Prefetch(addrs)
	m.Prefetch(addrs[1000:])
	for i := range 900 {
		v, ok := m.Word(base + uint64(i)*pageSize)
		if hole := i == 3 || i == 400; hole == ok {
			t.Fatalf("page %d: %v", i, ok)
		} else if ok && v != binary.LittleEndian.Uint64(mem[i*pageSize:]) {
			t.Fatalf("page %d: wrong word %#x", i, v)
		}
	}
	m.Invalidate()
	m.Prefetch([]uint64{0, base, base + 7*pageSize, base + 3*pageSize})
	misses := m.pages.misses
	for _, pg := range []int{0, 7, 3} {
		m.Word(base + uint64(pg)*pageSize)
	}
	if m.pages.misses != misses {
		t.Error("prefetched pages were read again")
	}
}

func TestMemoryDoesNotAllocate(t *testing.T) {
	m := self(t).Memory()
	base, _ := arena(t, 64)
	touch := func() {
		for i := range uint64(64) {
			m.Word(base + i*pageSize)
		}
	}
	touch()
	p := make([]byte, 64)
	reqs := []Read{{Addr: base, Buf: p}, {Addr: base + 512, Buf: p}}
	for name, f := range map[string]func(){
		"warm words":   touch,
		"cold words":   func() { m.Invalidate(); touch() },
		"bytes":        func() { m.Bytes(base+100, p) },
		"uncached":     func() { m.ReadAt(p, base) },
		"many ranges":  func() { m.ReadV(reqs) },
		"a number":     func() { m.Uint64(base) },
		"bad pages":    func() { m.Word(0); m.Word(1 << 46) },
		"after change": func() { m.Invalidate() },
	} {
		// A read that waits long for a CPU makes vmread look at candid's threads, which allocates.
		fixture.Attempts(t, 5, func() (wrong string) {
			if n := testing.AllocsPerRun(50, f); n != 0 {
				return fmt.Sprintf("%s: %v allocations", name, n)
			}
			return ""
		})
	}
}

func BenchmarkWordWarm(b *testing.B) {
	m := self(b).Memory()
	base, _ := arena(b, 64)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		m.Word(base + i%64*pageSize + i%512*8)
		i += 67
	}
}

func BenchmarkWordSamePage(b *testing.B) {
	m := self(b).Memory()
	base, _ := arena(b, 1)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		m.Word(base + i%512*8)
		i++
	}
}

func BenchmarkPageCold(b *testing.B) {
	m := self(b).Memory()
	base, _ := arena(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		m.Invalidate()
		m.Word(base)
	}
}

func BenchmarkReadV100Pages(b *testing.B) {
	m := self(b).Memory()
	base, _ := arena(b, 100)
	reqs := make([]Read, 100)
	for i := range reqs {
		reqs[i] = Read{Addr: base + uint64(i)*pageSize, Buf: make([]byte, pageSize)}
	}
	b.ReportAllocs()
	for b.Loop() {
		m.ReadV(reqs)
	}
}
