package symbol

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Debug files that a container lacks are taken from the machine.
func TestOpenDebug(t *testing.T) {
	dir, ours := t.TempDir(), filepath.Join(t.TempDir(), "x.debug")
	theirs := filepath.Join(dir, ours)
	read := func() string {
		t.Helper()
		f, err := OpenDebug(dir, ours)
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
	if got := read(); got != "none" {
		t.Errorf("where nobody has it: %q", got)
	}
	for _, c := range []struct{ file, want string }{{ours, "ours"}, {theirs, "theirs"}} {
		if err := os.MkdirAll(filepath.Dir(c.file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.file, []byte(c.want), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := read(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
