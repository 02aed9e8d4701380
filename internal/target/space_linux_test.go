package target

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// at returns a mapping of pages of a file whose offset tells where it was mapped first.
func at(from, to uint64, inode uint64) Mapping {
	return Mapping{Start: from << 12, End: to << 12, Offset: from << 12, Inode: inode, Perm: PermRead | PermExec, Path: "/f"}
}

// Whatever is mapped over whatever else, each page shows what was mapped there last.
func TestPutOver(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var list []Mapping
		var pages [64]uint64 // inode
		for n := range 40 {
			from := r.Uint64N(63)
			to := from + 1 + r.Uint64N(min(64-from, 12))
			list = PutOver(list, at(from, to, uint64(n+1)))
			for i := from; i < min(to, 64); i++ {
				pages[i] = uint64(n + 1)
			}
			if !slices.IsSortedFunc(list, func(a, b Mapping) int {
				if a.End <= b.Start {
					return -1
				}
				return 1
			}) {
				t.Fatalf("not in order: %+v", list)
			}
			for i := range uint64(64) {
				var m Mapping
				for _, x := range list {
					if x.Contains(i << 12) {
						m = x
					}
				}
				if m.Inode != pages[i] || m.Inode != 0 && i<<12-m.Start+m.Offset != i<<12 {
					t.Fatalf("page %d shows %d at %#x, want %d", i, m.Inode, i<<12-m.Start+m.Offset, pages[i])
				}
			}
		}
	}
}

// A forked process has its parent's mappings, and after that each has its own.
func TestSpaceFork(t *testing.T) {
	s := &Space{Whole: true}
	s.Map(at(1, 3, 1))
	s.Map(at(5, 6, 2))
	c := s.Fork()
	c.Map(at(2, 6, 3))
	s.Map(at(8, 9, 4))
	inodes := func(s *Space) (out []uint64) {
		for _, m := range s.Mappings() {
			out = append(out, m.Inode)
		}
		return out
	}
	if got := inodes(s); !slices.Equal(got, []uint64{1, 2, 4}) {
		t.Errorf("parent %v", got)
	}
	if got := inodes(c); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("child %v", got)
	}
	if c.Program != "/f" || c.Name() != "f" {
		t.Errorf("program %q", c.Program)
	}
}

// The mappings of a process from before its first record are read once, and no longer once it has
// executed another program.
func TestSpaceOrigin(t *testing.T) {
	s := Known(os.Getpid())
	c := s.Fork()
	c.Map(at(1, 2, 9))
	maps := c.Mappings()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(maps, func(m Mapping) bool { return m.Path == own }) || maps[0].Inode != 9 {
		t.Errorf("mappings %+v", maps)
	}
	if slices.ContainsFunc(maps, func(m Mapping) bool { return m.Perm&PermExec == 0 }) {
		t.Error("data among them")
	}
	s.Lose(os.Getpid())
	if len(s.Mappings()) != len(maps)-1 {
		t.Error("what was read is forgotten")
	}
	// A child that ends does not change its parent.
	known := Known(os.Getpid())
	known.Fork().Lose(os.Getpid() + 1)
	if len(known.Mappings()) == 0 {
		t.Error("lost with a child")
	}
	lost := Known(os.Getpid())
	d := lost.Fork()
	lost.Lose(os.Getpid())
	if n := len(d.Mappings()); n != 0 {
		t.Errorf("%d mappings of another program", n)
	}
}

// A Space is bounded, whatever is mapped.
func TestSpaceBounded(t *testing.T) {
	s := &Space{}
	for i := range uint64(maxSpace + 500) {
		s.Map(at(2*i, 2*i+1, 1))
	}
	if n := len(s.Mappings()); n > maxSpace {
		t.Errorf("%d mappings", n)
	}
}
