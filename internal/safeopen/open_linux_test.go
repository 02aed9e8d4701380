package safeopen

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bothWays runs a test with openat2 and as on a system that lacks or forbids it.
func bothWays(t *testing.T, test func(t *testing.T)) {
	for name, without := range map[string]error{"openat2": nil, "no openat2": unix.ENOSYS, "openat2 is filtered": unix.EPERM} {
		t.Run(name, func(t *testing.T) {
			if without != nil {
				openat2 = func(int, string, *unix.OpenHow) (int, error) { return -1, without }
				defer func() { openat2 = unix.Openat2 }()
			}
			test(t)
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Links lead where they lead in the root, and never out of it.
func TestLinks(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		all := t.TempDir()
		root := filepath.Join(all, "root")
		write(t, filepath.Join(all, "secret"), "secret")
		write(t, filepath.Join(root, "dir", "file"), "inside")
		write(t, filepath.Join(root, "secret"), "decoy")
		write(t, filepath.Join(root, all, "secret"), "decoy")
		for name, to := range map[string]string{
			"absolute": "/dir/file", "relative": "dir/file", "chain": "absolute", "directory": "/dir", "up": "../../../../dir/file",
			"loop": "loop", "dir/back": "../dir/file", "outside": filepath.Join(all, "secret"), "above": "../secret", "nothing": "/absent",
		} {
			if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
		for path, want := range map[string]string{
			"/dir/file": "inside", "dir//./file": "inside", "/absolute": "inside", "/relative": "inside", "/chain": "inside",
			"/directory/file": "inside", "/directory/../dir/file": "inside", "/up": "inside", "/dir/back": "inside",
			"/outside": "decoy", "/above": "decoy", "/../secret": "decoy", "/dir/../../../secret": "decoy",
			"/loop": "", "/nothing": "", "/dir/file/..": "", "/dir/file/x": "", "": "", "/": "", "/dir": "", "/dir/..": "",
		} {
			f, err := InRoot(root, path)
			if err != nil {
				if want != "" {
					t.Errorf("%q: %v", path, err)
				}
				continue
			}
			b, _ := io.ReadAll(f)
			f.Close()
			if string(b) != want {
				t.Errorf("%q holds %q, want %q", path, b, want)
			}
		}
		dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(dir)
		fd, err := At(dir, "/absolute", true)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if f, err := Regular(fd, "absolute"); !errors.Is(err, ErrKind) {
			f.Close()
			t.Errorf("a link that must not be followed: %v", err)
		}
	})
}

// Nothing but a stored file is ever opened, not even for a moment.
func TestKinds(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		root := t.TempDir()
		fifo := filepath.Join(root, "fifo")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		opened := Opened(t, fifo)
		if err := os.Symlink("fifo", filepath.Join(root, "link")); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/fifo", "/link", "/"} {
			if f, err := InRoot(root, path); !errors.Is(err, ErrKind) {
				f.Close()
				t.Errorf("%s: %v", path, err)
			}
		}
		if opened() {
			t.Error("the FIFO was opened")
		}
		for _, path := range []string{"/proc/self/maps", "/proc/kmsg", "/sys/kernel/notes", "/dev/null", "/dev/tty0"} {
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			if f, err := InRoot("/", path); !errors.Is(err, ErrKind) {
				f.Close()
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// A lease on a file does not hold up its opener.
func TestLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leased")
	write(t, path, "x")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	begin := time.Now()
	if g, err := InRoot("/", path); !errors.Is(err, unix.EWOULDBLOCK) {
		g.Close()
		t.Errorf("%v", err)
	}
	if d := time.Since(begin); d > 5*time.Second { // the kernel's own limit is 45 s
		t.Errorf("opening took %v", d)
	}
}

// Opened returns a function that reports whether a file was opened since, by anybody.
func Opened(t *testing.T, path string) func() bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		var buf [4096]byte
		n, err := unix.Read(fd, buf[:])
		return err == nil && n > 0
	}
}
