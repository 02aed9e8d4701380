package v8

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"
)

// fileMemory is code as it is in a file.
type fileMemory struct {
	base uint64
	data []byte
}

func (m *fileMemory) Word(addr uint64) (uint64, bool) {
	var b [8]byte
	ok := m.Bytes(addr, b[:])
	return binary.LittleEndian.Uint64(b[:]), ok
}

func (m *fileMemory) Bytes(addr uint64, p []byte) bool {
	off := addr - m.base
	if off > uint64(len(m.data)) || uint64(len(m.data))-off < uint64(len(p)) {
		return false
	}
	copy(p, m.data[off:])
	return true
}

// node returns the blob of the installed node, and its functions.
func node(t testing.TB) (*facts, *fileMemory, []elf.Symbol) {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := readFacts(file)
	if err != nil {
		t.Skipf("%s: %v", path, err)
	}
	e, err := elf.NewFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := &fileMemory{base: f.blobStart, data: make([]byte, f.blobEnd-f.blobStart)}
	for _, p := range f.segments {
		if off := f.blobStart - p.Vaddr; off < p.Filesz {
			if _, err := file.ReadAt(m.data, int64(p.Off+off)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var functions []elf.Symbol
	for _, s := range all {
		if strings.HasPrefix(s.Name, "Builtins_") && s.Value >= f.blobStart && s.Value+s.Size <= f.blobEnd && s.Size > 0 {
			functions = append(functions, s)
		}
	}
	return f, m, functions
}

// TestBlob reads every instruction of node's built-in functions. The state of the frame is
// determined at nearly all of them, and hardly any function begins as if it had a frame.
func TestBlob(t *testing.T) {
	f, m, functions := node(t)
	own := func(at uint64) bool { return at >= f.blobStart && at < f.blobEnd && f.builtin(at).role != opaque }
	all, open, begins := 0, 0, 0
	var wrong []string
	for _, s := range functions {
		if f.builtin(s.Value).role == opaque {
			continue
		}
		lost := 0
		for at := s.Value; at < s.Value+s.Size; {
			inst, ok := decode(m, at)
			if !ok {
				break
			}
			if !testing.Short() || all%7 == 0 {
				if l := read(m, at, true, own); l.how == unclear && inst.Op != x86asm.INT {
					lost++
				}
			}
			all++
			at += uint64(inst.Len)
		}
		if l := read(m, s.Value, true, own); (l.how == built || l.how == saved) && f.builtin(s.Value).role != entry {
			wrong = append(wrong, s.Name)
		}
		begins++
		open += lost
	}
	t.Logf("of %d instructions of %d functions %d are not decided; %q have no frame of their own", all, begins, open, wrong)
	if len(wrong) > 20 {
		t.Errorf("%d functions begin as if they had a frame: %q", len(wrong), wrong)
	}
	if all < 100_000 || open > all/20 {
		t.Errorf("of %d instructions of %d functions %d are not decided", all, begins, open)
	}
}
