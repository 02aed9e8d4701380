package main

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Root's output, with --force or without, follows no link of another user and writes to no file of
// his. In a directory such as /tmp it does not replace his file either.
func TestOutputOfOthers(t *testing.T) {
	t.Parallel()
	root(t)
	sticky, home := public(t, 0o777|os.ModeSticky), public(t, 0o755)
	if err := os.Chown(home, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(t.TempDir(), "in.collapsed")
	secret := filepath.Join(t.TempDir(), "secret.collapsed")
	for _, file := range []string{in, secret} {
		if err := os.WriteFile(file, []byte("main;work 5\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(secret)
	if err != nil {
		t.Fatal(err)
	}
	place := func(make func(path string) error, dir, name string, uid int) string {
		t.Helper()
		path := filepath.Join(dir, name+".txt")
		if err := errorsOf(make(path), os.Lchown(path, uid, uid)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(path string) error { return os.Symlink(secret, path) }
	dirLink := func(path string) error { return os.Symlink(filepath.Dir(secret), path) }
	pipe := func(path string) error { return unix.Mkfifo(path, 0o666) }
	file := func(path string) error { return os.WriteFile(path, []byte("theirs\n"), 0o644) }
	const nobody = 65534
	for _, path := range []string{
		place(link, sticky, "link", nobody), place(link, home, "link", nobody), place(pipe, sticky, "fifo", nobody), place(pipe, home, "fifo", nobody),
		place(file, sticky, "file", nobody), filepath.Join(place(dirLink, sticky, "dir", nobody), "secret.collapsed"),
	} {
		for _, args := range [][]string{{}, {"--force"}} {
			r := candid(t, append([]string{"convert", in, "-o", path, "--format", "collapsed"}, args...)...)
			r.refused(t, exitPermission, path, "another user")
			r = candid(t, append([]string{"record", "-o", path, "--format", "jfr", "-q", "--", "true"}, args...)...)
			if r.code == exitOK {
				t.Errorf("record -o %s %v: exit code %d\n%s", path, args, r.code, r.err)
			}
		}
	}
	if after, err := os.ReadFile(secret); err != nil || string(after) != string(before) {
		t.Errorf("root's own file is %q now (%v)", after, err)
	}
	if st, err := os.Stat(secret); err != nil || st.Mode() != 0o600 {
		t.Errorf("root's own file has mode %v now (%v)", st.Mode(), err)
	}
	if b, err := os.ReadFile(filepath.Join(sticky, "file.txt")); err != nil || string(b) != "theirs\n" {
		t.Errorf("the other user's file is %q now (%v)", b, err)
	}
	// The user's own links and the system's are followed as before.
	own := filepath.Join(t.TempDir(), "own.txt")
	ok(t, "convert", in, "-o", place(func(path string) error { return os.Symlink(own, path) }, sticky, "mine", 0), "--format", "collapsed")
	if b, err := os.ReadFile(own); err != nil || !strings.Contains(string(b), "work 5") {
		t.Errorf("through a link of one's own: %q (%v)", b, err)
	}
	ok(t, "convert", in, "-o", filepath.Join(home, "theirs.txt"), "--format", "collapsed")
	ok(t, "convert", in, "-o", place(file, home, "replaced", nobody), "--format", "collapsed", "--force")
	for _, path := range []string{"/dev/stdout", "-", "/dev/fd/1"} {
		if r := ok(t, "convert", in, "-o", path, "--format", "collapsed"); !strings.Contains(r.out, "work 5") {
			t.Errorf("-o %s printed %q", path, r.out)
		}
	}
	mine := place(pipe, sticky, "minepipe", 0)
	reader := start(t, exec.Command("cat", mine))
	ok(t, "convert", in, "-o", mine, "--format", "collapsed")
	reader.wait(t, "work 5")
}

// A file that is being written has no name at first, so that nothing is left when candid is killed;
// where it needs one, what an earlier candid left is removed.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := filepath.Join(t.TempDir(), "in.collapsed")
	if err := os.WriteFile(in, []byte("main;work 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	left, used, theirs := filepath.Join(dir, ".candid-"+rand.Text()), filepath.Join(dir, ".candid-"+rand.Text()), filepath.Join(dir, ".candidates")
	for _, file := range []string{left, used, theirs} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(used)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	ok(t, "convert", in, "-o", filepath.Join(dir, "young.txt"), "--format", "collapsed")
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a file that was written a moment ago is gone: %v", err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, file := range []string{left, used, theirs} {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, "convert", in, "-o", filepath.Join(dir, "out.txt"), "--format", "collapsed")
	if _, err := os.Stat(left); err == nil {
		t.Error("what a candid left that was killed is still there")
	}
	for _, file := range []string{used, theirs} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}
