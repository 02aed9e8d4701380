package pgo

import (
	"errors"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// A program of Windows is refused by an error that says why: profiles are made for ELF files.
func TestOpenImageOfWindows(t *testing.T) {
	path := fixture.MinGW(t, "x86_64-w64-mingw32-gcc", "p.exe", "int main(void) { return 0; }")
	if b, err := OpenBinary(path); !errors.Is(err, ErrNotELF) {
		t.Fatalf("opened as %v, %v", b, err)
	}
}
