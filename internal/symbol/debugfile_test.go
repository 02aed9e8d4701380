package symbol

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/safeopen"
)

// Debug files that a container lacks are taken from the machine, but only those that are found by
// build-id: the container chooses all other names.
func TestOpenDebug(t *testing.T) {
	dir := t.TempDir()
	system = t.TempDir()
	defer func() { system = "/" }()
	byID, byName := buildIDDir+"ab/cdef.debug", debugDir+"/opt/x.debug"
	beside := "/opt/.debug/x.debug"
	read := func(path string) string {
		t.Helper()
		f, err := OpenDebug(func(path string) (*os.File, error) { return safeopen.InRoot(dir, path) }, path)
		if err != nil {
			return "none"
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	all := func(want string) {
		t.Helper()
		var got []string
		for _, path := range []string{byID, byName, beside, buildIDDir + "../../../../../" + beside} {
			got = append(got, read(path))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s, want %s", s, want)
		}
	}
	place := func(root, text string) {
		t.Helper()
		for _, path := range []string{byID, byName, beside} {
			file := filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	all("none none none none")
	place(system, "ours")
	all("ours none none none")
	place(dir, "theirs")
	all("theirs theirs theirs theirs")
}
