package vmstructs

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/target"
)

// Files that hold no VM are examined once, not for every process that maps them, and again after a
// time in which they may have been replaced.
func TestFinder(t *testing.T) {
	p, err := target.Open(os.Getpid())
	if err != nil {
		t.Skipf("this process cannot be read: %v", err)
	}
	defer p.Close()
	maps, err := p.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	f, now := NewFinder(), time.Now()
	f.now = func() time.Time { return now }
	unknown := func() (n int) {
		for _, m := range maps {
			if !f.Without(m) {
				n++
			}
		}
		return n
	}
	if unknown() == 0 {
		t.Fatal("a Finder that has seen no file knows all files of this process")
	}
	if _, _, err := Open(p, f); !errors.Is(err, ErrNotHotSpot) {
		t.Fatalf("this process, which has no VM: %v", err)
	}
	if n := unknown(); n != 0 {
		t.Errorf("%d of %d mappings may still be of a VM after all files were looked into", n, len(maps))
	}
	if f.Without(target.Mapping{Path: "/opt/jdk/lib/server/libjvm.so", Inode: 1}) {
		t.Error("libjvm.so is said to be without a VM before it was looked into")
	}
	now = now.Add(trustWithout)
	if unknown() == 0 {
		t.Errorf("files are taken to be the same after %v", trustWithout)
	}
}
