package target

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// A file can be opened after the process has ended, if its path still leads to
// that very file.
func TestOpenFileOfEndedProcess(t *testing.T) {
	sleep := fixture.Tool(t, "sleep")
	program := filepath.Join(t.TempDir(), "program")
	copyFile(t, program, sleep)
	c := exec.Command(program, "100")
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	p, err := Open(c.Process.Pid)
	if errors.Is(err, ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var m Mapping
	eventually(t, "mapping of the program", func() bool { // a little after its exec
		maps, err := p.Mappings()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range maps {
			if x.Path == program {
				m = x
			}
		}
		return m.Path != ""
	})
	c.Process.Kill()
	c.Wait()
	f, err := p.OpenFile(m)
	if err != nil {
		t.Fatalf("after the end: %v", err)
	}
	f.Close()
	// Another file with the same name is not taken for it.
	keep := program + ".old"
	if err := os.Rename(program, keep); err != nil {
		t.Fatal(err)
	}
	copyFile(t, program, sleep)
	if f, err := p.OpenFile(m); !errors.Is(err, ErrStale) {
		if err == nil {
			f.Close()
		}
		t.Errorf("another file: %v", err)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
