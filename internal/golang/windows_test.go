package golang

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/pe"
)

// The table of a program for Windows is found, stripped or not, and says the same as its symbols.
func TestOpenPE(t *testing.T) {
	dir := t.TempDir()
	text := map[string]uint64{}
	for name, flags := range map[string]string{"whole": "", "stripped": "-s -w"} {
		exe := filepath.Join(dir, name+".exe")
		c := exec.Command("go", "build", "-ldflags", flags, "-o", exe, "../capture/winsuspend/testdata/gospin")
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=windows", "GOARCH=amd64")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f, err := os.Open(exe)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		m, err := pe.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		table, err := OpenPE(m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text[name] = table.Text()
		functions := 0
		_ = m.Symbols(func(index, rva uint32, _ bool) {
			sym := m.SymbolName(index)
			if !strings.HasPrefix(sym, "main.") || !m.Section(rva).Executable() {
				return
			}
			functions++
			if got, start, ok := table.Function(uint64(rva)-table.Text(), 100); !ok || got != sym || start+table.Text() != uint64(rva) {
				t.Errorf("%s: at %#x there is %q, from %#x; its symbol is %q", name, rva, got, start+table.Text(), sym)
			}
			if r := table.Lookup(uint64(rva)); r == nil || r.Size != 0 || r.Role != Plain {
				t.Errorf("%s: the rule at the start of %s is %+v", name, sym, r)
			}
		})
		if (functions < 5) != (name == "stripped") {
			t.Errorf("%s: %d functions have symbols", name, functions)
		}
		if table.FindInliningPE(m) == nil {
			t.Errorf("%s: the tables of inlined functions were not found", name)
		}
	}
	if text["whole"] == 0 || text["whole"] != text["stripped"] {
		t.Errorf("the code begins at %#x", text)
	}
}
