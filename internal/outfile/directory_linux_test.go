package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A new file of a directory has its name when it is kept, and takes the place of nothing.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenDirectory(dir + "/.")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	put := func(name, text string) error {
		f, err := d.New(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			return err
		}
		return f.Keep(false)
	}
	if err := put("x", "first"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "link"} {
		if err := put(name, "second"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s, which is there: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x"} {
		if err := put(name, "elsewhere"); err == nil {
			t.Errorf("a file %q was made", name)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "x")); err != nil || string(b) != "first" {
		t.Errorf("%q %v", b, err)
	}
	if st, err := os.Stat(filepath.Join(dir, "x")); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	// Something that takes the name meanwhile stays.
	f, err := d.New("y")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(filepath.Join(dir, "y"), []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Keep(false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it replaces what is there: %v", err)
	}
	// The directory is the one that was opened, whatever has its name now.
	if err := errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir + ".moved")
	if err := put("z", "third"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir+".moved", "z")); err != nil || string(b) != "third" {
		t.Errorf("%q %v", b, err)
	}
}

// A directory in which others may exchange files is refused, and what is none.
func TestDirectoryOfOthers(t *testing.T) {
	folder := func(mode os.FileMode, uid int) string {
		dir := filepath.Join(t.TempDir(), "dir")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
			t.Fatal(err)
		}
		if uid != 0 {
			if err := os.Lchown(dir, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	type is struct {
		what, path string
		want       error // nil: it is opened
	}
	list := []is{
		{"one's own", folder(0o700, 0), nil},
		{"the group's too", folder(0o775, 0), nil},
		{"a sticky one of all", folder(0o777|os.ModeSticky, 0), nil},
		{"one of all", folder(0o777, 0), ErrOthers},
		{"a file", file, nil},
		{"nothing", file + ".not", fs.ErrNotExist},
	}
	if os.Geteuid() == 0 {
		list = append(list, is{"another user's", folder(0o755, 65534), ErrOthers})
		link := filepath.Join(folder(0o777|os.ModeSticky, 0), "link")
		if err := errors.Join(os.Symlink(t.TempDir(), link), os.Lchown(link, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		list = append(list, is{"another user's link", link, ErrOthers})
	}
	for _, c := range list {
		d, err := OpenDirectory(c.path)
		switch {
		case c.path == file:
			if err == nil {
				t.Errorf("%s was opened", c.what)
			}
		case !errors.Is(err, c.want):
			t.Errorf("%s: %v", c.what, err)
		}
		if err == nil {
			d.Close()
		}
	}
}
