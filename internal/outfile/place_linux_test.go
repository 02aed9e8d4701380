package outfile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// begun begins a file at a path.
func begun(t *testing.T, path string) *File {
	t.Helper()
	p, err := Look(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Create()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A file has its name when it is kept, only its user may read it, and what was there is whole until
// then.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	f := begun(t, path)
	if _, err := f.WriteString("first"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before it is kept: %v", err)
	}
	if err := f.Keep(false); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	second := begun(t, path)
	if err := second.Keep(false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it replaces what is there: %v", err)
	}
	if _, err := second.WriteString("second"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "first" {
		t.Errorf("before the second is kept: %q %v", b, err)
	}
	if err := second.Keep(true); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "second" {
		t.Errorf("%q %v", b, err)
	}
	begun(t, path).Close()
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("there are %q", got)
	}
}

// Something that takes the place of the name while the file is written is not followed.
func TestKeepMeetsOthers(t *testing.T) {
	dir := t.TempDir()
	for name, put := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(dir, name)
		f := begun(t, path)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Keep(true); err == nil {
			t.Errorf("a %s was replaced", name)
		}
		f.Close()
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("the %s is another: %v", name, err)
		}
	}
	if got := names(t, dir); len(got) != 3 {
		t.Errorf("there are %q", got)
	}
}

// Files that a candid left which was killed are removed, nothing else: not what is in use, is young, is of
// another kind, belongs to another user, or has a name of another form.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * staleAfter)
	put := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone := put(prefix + rand.Text())
	young := put(prefix + rand.Text())
	if err := os.Chtimes(young, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	used := put(prefix + rand.Text())
	f, err := os.Open(used)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	stay := []string{young, used, put(prefix + "settings"), put(prefix + string(bytes.ToLower([]byte(rand.Text())))), put(prefix + rand.Text() + ".jfr"), put("x" + prefix + rand.Text())}
	link := filepath.Join(dir, prefix+rand.Text())
	if err := os.Symlink(stay[2], link); err != nil {
		t.Fatal(err)
	}
	stay = append(stay, link)
	if os.Geteuid() == 0 {
		other := put(prefix + rand.Text())
		if err := os.Chown(other, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		stay = append(stay, other)
	}
	begun(t, filepath.Join(dir, "new")).Close()
	if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a killed candid left is still there: %v", err)
	}
	for _, path := range stay {
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was removed: %v", filepath.Base(path), err)
		}
	}
}
