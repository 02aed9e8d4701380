package native

import (
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/candid-profiler/candid/internal/cpu"
	"github.com/candid-profiler/candid/internal/target"
	"github.com/candid-profiler/candid/internal/walk"
)

// Calling Map for each mapping has the same result as a Refresh with the list of all of them.
func TestMap(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		one, err := New(p, NewFiles())
		if err != nil {
			t.Fatal(err)
		}
		one.take(nil)
		var list []target.Mapping
		for range 30 {
			from := 1 + r.Uint64N(60)
			m := target.Mapping{Start: from << 12, End: (from + 1 + r.Uint64N(10)) << 12, Inode: 1 + r.Uint64N(3), Path: "/f", Perm: target.PermRead | target.PermExec}
			m.Offset = m.Start
			if r.IntN(4) == 0 {
				m.Perm |= target.PermWrite
			}
			one.Map(m)
			list = target.PutOver(list, m)
			if len(one.areas) != len(list) {
				t.Fatalf("%d areas, want %d", len(one.areas), len(list))
			}
			for i, a := range one.areas {
				m := one.modules[a.module].Mapping
				if a.start != list[i].Start || a.end != list[i].End || m.Inode != list[i].Inode || a.constant != (list[i].Perm&target.PermWrite == 0) {
					t.Fatalf("area %d is %+v of %d, want %+v", i, a, m.Inode, list[i])
				}
			}
		}
	}
}

// An entry for a file's code holds when other code is mapped, and no longer when its own place is.
func TestLasting(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := New(p, NewFiles())
	if err != nil {
		t.Fatal(err)
	}
	pc := uint64(reflect.ValueOf(TestLasting).Pointer())
	step := func() (looked int) {
		before := s.fills
		c := walk.Cursor{Leaf: true, Mem: p.Memory(), Stack: new(walk.Stack)}
		c.Regs.Arch, c.Regs.PC = cpu.Host(), pc
		s.Step(&c)
		return s.fills - before
	}
	generated := target.Mapping{Start: 1 << 40, End: 1<<40 + 1<<16, Perm: target.PermRead | target.PermWrite | target.PermExec}
	for i, want := range []int{1, 0, 0, 0, 1, 0} {
		switch i {
		case 2:
			s.Map(generated)
		case 3:
			generated.Start, generated.End = generated.End, generated.End+1<<16
			s.Map(generated)
		case 4:
			s.Map(target.Mapping{Start: pc &^ 4095, End: pc&^4095 + 4096, Inode: 1, Path: "/f", Perm: target.PermRead | target.PermExec})
		}
		if got := step(); got != want {
			t.Errorf("step %d: looked up %d times, want %d", i, got, want)
		}
	}
}

func TestKeeps(t *testing.T) {
	old := []area{{10, 20, 1, true}, {30, 40, 2, false}}
	for _, c := range []struct {
		areas []area
		keeps bool
	}{
		{old, true},
		{[]area{{10, 20, 1, true}, {30, 50, 2, false}}, true},
		{[]area{{5, 15, 1, true}, {15, 20, 1, true}, {20, 30, 3, true}, {30, 40, 2, false}}, true},
		{[]area{{10, 20, 1, true}}, false},
		{[]area{{30, 40, 2, false}}, false},
		{[]area{{10, 20, 1, true}, {31, 40, 2, false}}, false},
		{[]area{{10, 20, 1, true}, {30, 39, 2, false}}, false},
		{[]area{{10, 20, 1, true}, {30, 35, 2, false}, {36, 40, 2, false}}, false},
		{[]area{{10, 20, 3, true}, {30, 40, 2, false}}, false},
		{[]area{{10, 20, 1, false}, {30, 40, 2, false}}, false},
		{nil, false},
	} {
		if got := keeps(c.areas, old); got != c.keeps {
			t.Errorf("%v: %v, want %v", c.areas, got, c.keeps)
		}
	}
	if !keeps(old, nil) {
		t.Error("nothing is not kept")
	}
}

// The code of a process that has ended is read from its files, as it was in memory.
func TestCodeFromFile(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	space := &target.Space{Whole: true}
	maps, err := p.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Perm&target.PermExec != 0 {
			space.Map(m)
		}
	}
	ended := target.Ended(p.PID, "test", space)
	if _, err := New(ended, NewFiles()); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range space.Mappings() {
		if m.Path == "[vsyscall]" || !m.FileBacked() && m.Path != vdso {
			continue
		}
		for addr := m.Start; addr < m.End; addr += 4096 {
			var then, now [64]byte
			if !ended.Memory().Bytes(addr+100, then[:]) {
				t.Fatalf("no code at %#x of %s", addr, m.Path)
			}
			if err := p.Memory().ReadAt(now[:], addr+100); err != nil || now != then {
				t.Fatalf("code at %#x of %s differs, %v", addr, m.Path, err)
			}
			seen++
		}
	}
	if seen < 100 {
		t.Errorf("%d pages compared", seen)
	}
	var b [8]byte
	if ended.Memory().Bytes(space.Mappings()[0].Start-4096, b[:]) {
		t.Error("read what is not mapped")
	}
}
