package spill

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Written data is read back, the file keeps no name, and an unused File creates nothing.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	names := func() int {
		t.Helper()
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	var s File
	if _, err := s.ReadAt(make([]byte, 1), 0); err != io.EOF || names() != 0 {
		t.Errorf("reading nothing: %v, %d files", err, names())
	}
	if _, err := s.WriteAt([]byte("stacks"), 3); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && names() != 0 {
		t.Errorf("%d files have names", names())
	}
	got := make([]byte, 4)
	if _, err := s.ReadAt(got, 5); err != nil || string(got) != "acks" {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Close(); err != nil || names() != 0 {
		t.Errorf("closing: %v, %d files", err, names())
	}
	if _, err := s.WriteAt(got, 0); err == nil {
		t.Error("a closed file was written")
	}
	if err := new(File).Close(); err != nil {
		t.Error(err)
	}
}

// If no file can be created, every call says so.
func TestNoPlace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("TMPDIR says nothing there")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	var s File
	for range 2 {
		if _, err := s.WriteAt([]byte("x"), 0); err == nil {
			t.Error("it was written")
		}
		if _, err := s.ReadAt(make([]byte, 1), 0); err == nil {
			t.Error("it was read")
		}
	}
}
