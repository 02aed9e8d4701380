package portablepdb

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

const program = `using System;
public static class Program {
    public static int Main(string[] args) {
        int x = args.Length;
        if (x > 3)
            x *= 2;
        return x;
    }
}
`

// TestLines reads the lines of a method that the compiler has just compiled.
func TestLines(t *testing.T) {
	source := t.TempDir() + "/Lines.cs"
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	assembly := fixture.CSharp(t, 9, source)
	b, err := os.ReadFile(strings.TrimSuffix(assembly, ".dll") + ".pdb")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(bytes.NewReader(b), ID{}); err == nil {
		t.Error("a PDB of another build was accepted")
	}
	at := bytes.Index(b, []byte("#Pdb"))
	if at < 0 {
		t.Fatal("no stream #Pdb")
	}
	start := uint32(b[at-8]) | uint32(b[at-7])<<8
	p, err := Open(bytes.NewReader(b), ID(b[start:start+20]))
	if err != nil {
		t.Fatal(err)
	}
	file, first, ok := p.Line(1, 0)
	if !ok || !strings.HasSuffix(file, "Lines.cs") || first != 4 {
		t.Errorf("the method begins at %s:%d, %v; should be Lines.cs:4", file, first, ok)
	}
	if _, last, ok := p.Line(1, 1000); !ok || last != 7 {
		t.Errorf("the method ends at line %d, %v; should be 7", last, ok)
	}
	if _, _, ok := p.Line(100, 0); ok {
		t.Error("a method that is not there has a line")
	}
}

func FuzzPoints(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 2, 4, 5, 3, 0, 4}, uint32(3))
	f.Fuzz(func(t *testing.T, b []byte, il uint32) {
		if _, line, ok := lineAt(b, 0, il); ok && line <= 0 {
			t.Errorf("line %d", line)
		}
		_, _ = Inflate(b)
	})
}

func FuzzPDB(f *testing.F) {
	f.Add([]byte("BSJB\x01\x00\x01\x00\x00\x00\x00\x00\x0c\x00\x00\x00PDB v1.0\x00\x00\x00\x00\x00\x00\x02\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var id ID
		if len(b) > 60 {
			copy(id[:], b[40:])
		}
		if p, err := Open(bytes.NewReader(b), id); err == nil {
			p.Line(1, 3)
			p.document(1)
		}
	})
}
