package climeta

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// metadataOf returns the metadata root of an assembly's file: it begins with BSJB.
func metadataOf(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(b, []byte("BSJB\x01\x00\x01\x00"))
	if i < 0 {
		t.Fatalf("%s has no metadata", file)
	}
	return b[i:]
}

// TestFramework names every method of an assembly of the framework.
func TestFramework(t *testing.T) {
	m, err := Open(bytes.NewReader(metadataOf(t, filepath.Join(fixture.DotNet(t), "ref10", "System.Collections.dll"))))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for row := uint32(1); row <= m.Rows(MethodDef); row++ {
		def, ok := m.Method(row)
		if !ok || def.Name == "" || def.Owner == 0 {
			t.Fatalf("method %d: %+v", row, def)
		}
		owner, ok := m.Type(def.Owner)
		if !ok {
			t.Fatalf("method %s has no owner", def.Name)
		}
		params, ok := m.Parameters(def, m.TypeParams(TypeDef, def.Owner), m.TypeParams(MethodDef, row))
		if !ok {
			t.Fatalf("parameters of %s.%s", owner, def.Name)
		}
		if owner.String() == "System.Collections.Generic.SortedSet`1" && def.Name == "Contains" && params == "T" {
			found = true
		}
	}
	if !found {
		t.Error("SortedSet<T>.Contains(T) is not there")
	}
}

func FuzzMetadata(f *testing.F) {
	if dir := os.Getenv("CANDID_RUNTIMES"); dir != "" {
		if b, err := os.ReadFile(filepath.Join(dir, "dotnet", "ref10", "System.Threading.Channels.dll")); err == nil {
			if i := bytes.Index(b, []byte("BSJB\x01\x00\x01\x00")); i >= 0 {
				f.Add(b[i:min(i+1<<15, len(b))])
			}
		}
	}
	f.Add([]byte("BSJB\x01\x00\x01\x00\x00\x00\x00\x00\x04\x00\x00\x00v4\x00\x00\x00\x00\x01\x00\x1c\x00\x00\x00\x20\x00\x00\x00#~\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Open(bytes.NewReader(b))
		if err != nil {
			return
		}
		for row := uint32(0); row < min(m.Rows(MethodDef)+2, 50); row++ {
			def, ok := m.Method(row)
			if ok {
				m.Type(def.Owner)
				m.Parameters(def, m.TypeParams(TypeDef, def.Owner), nil)
			}
			m.reference(row)
		}
		m.PDBID()
		for index := range uint32(40) {
			m.Blob(index, 100)
			m.GUID(index)
		}
	})
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte{0x20, 2, 1, 0x15, 0x12, 0x05, 2, 8, 0x1d, 0x13, 0, 0x14, 8, 2, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := signature{m: &Metadata{r: bytes.NewReader(nil)}, b: b, types: []string{"T"}}
		if text := s.typ(0); len(text) > 1<<24 {
			t.Errorf("%d bytes of text from %d bytes", len(text), len(b))
		}
	})
}

func TestInstantiate(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"List`1", []string{"int"}, "List<int>"},
		{"Dictionary`2.Enumerator", []string{"int", "string"}, "Dictionary<int, string>.Enumerator"},
		{"A`1.B`1", []string{"int", "string"}, "A<int>.B<string>"},
		{"A.B", []string{"int"}, "A.B<int>"},
		{"A`1", nil, "A`1"},
		{"A`99999999999999999999", []string{"x"}, "A<x>"},
	} {
		if got := Instantiate(c.name, c.args); got != c.want {
			t.Errorf("%s of %q is %s, should be %s", c.name, c.args, got, c.want)
		}
	}
}
