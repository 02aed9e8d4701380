package nativeimage

import (
	"testing"

	"github.com/candid-profiler/candid/internal/target"
)

// A module is known by its first mapping, which may be large, or hold only the .init section.
func TestMay(t *testing.T) {
	var f Finder
	for size, want := range map[uint64]bool{0x1000: true, 0x2000: false, 0x80000: false, 0x100000: true, 0x1600000: true} {
		m := target.Mapping{Start: 0x400000, End: 0x400000 + size, Path: "/app/image", Dev: 1, Inode: 2}
		if got := f.May(m); got != want {
			t.Errorf("%#x bytes: %v", size, got)
		}
	}
}
