package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

// opened returns a function that reports whether anybody has opened a file since.
func opened(t *testing.T, path string) func() bool {
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

// fifo makes a FIFO that only root may open.
func fifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A target without privileges makes root's candid open nothing but files: no FIFO or device of the
// machine whose name it puts into its program's debug link, none beside its program, and none in the
// place of the file that names generated code. The same where openat2 is refused.
func TestTargetsFilesAreNotOpened(t *testing.T) {
	t.Parallel()
	able(t)
	namespaces(t)
	cc, objcopy, setpriv := fixture.Tool(t, "cc"), fixture.Tool(t, "objcopy"), fixture.Tool(t, "setpriv")
	dir := public(t, 0o755)
	app := filepath.Join(dir, "app") // the machine's; the target sees another one
	if err := os.Mkdir(app, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "maps")
	if err := os.WriteFile(filepath.Join(dir, "link"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{
		{cc, "-O1", "-static", "-Wl,--build-id=none", "-o", program, "testdata/maps.c"},
		{objcopy, "--strip-all", "--add-gnu-debuglink=link", "maps"}, // the name of the FIFO below
	} {
		cmd := exec.Command(c[0], c[1:]...)
		if c[0] == objcopy {
			cmd.Dir = dir
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	victim, other := filepath.Join(app, "link"), filepath.Join(dir, "other")
	fifo(t, victim)
	fifo(t, other)
	script := `mount -t tmpfs none "$1" && cp "$2" "$1/maps" && mkdir "$1/.debug" && ln -s "$3" "$1/.debug/link" && exec "$1/maps"`
	cmd := exec.Command(setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare", "-Urm", "sh", "-c", script, "sh", app, program, other)
	target := start(t, cmd)
	var code uint64
	if _, err := fmt.Sscanf(target.line(t), "%x", &code); err != nil {
		t.Fatal(err)
	}
	perfMap := "/tmp/perf-" + target.pid() + ".map"
	t.Cleanup(func() { _ = os.Remove(perfMap) })

	names := fmt.Sprintf("%x 20 nameOfAnother\n", code)
	check := func(name string, wants int, filters ...uint32) {
		watched := map[string]func() bool{victim: opened(t, victim), other: opened(t, other)}
		if st, err := os.Lstat(perfMap); err == nil && st.Mode()&os.ModeNamedPipe != 0 {
			watched[perfMap] = opened(t, perfMap)
		}
		var r result
		for _, d := range forLong {
			c := command(t, "record", "-F", "500", "-p", target.pid(), "-o", "-", "--format", "collapsed", "-d", d)
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			if len(filters) == 0 {
				r = finish(t, command(t, c.Args[1:]...))
			} else {
				if err := filtered(c, filters...); err != nil {
					t.Fatal(err)
				}
				r = outcome(t, c, c.Wait(), &out, &errs)
			}
			if samples(r.out, "") >= 20 {
				break
			}
		}
		if r.code != exitOK || samples(r.out, "") < 20 {
			t.Errorf("%s: exit code %d, %d samples\n%s", name, r.code, samples(r.out, ""), r.err)
		}
		for file, wasOpened := range watched {
			if wasOpened() {
				t.Errorf("%s: %s was opened", name, file)
			}
		}
		if got := samples(r.out, "nameOfAnother") > 0; got != (wants > 0) {
			t.Errorf("%s: the names of a file in %s are used: %v\n%s%s", name, perfMap, got, r.out, r.err)
		}
		if wants < 0 && !strings.Contains(r.err, perfMap) {
			t.Errorf("%s: nothing says that %s is not used\n%s", name, perfMap, r.err)
		}
	}
	for _, filters := range [][]uint32{nil, {unix.SYS_OPENAT2}} {
		how := ""
		if filters != nil {
			how = ", openat2 refused"
		}
		check("debug link"+how, 0, filters...)
		for _, c := range []struct {
			name  string
			wants int // 1: the names are used; -1: they are not, and candid says so
			make  func() error
		}{
			{"a FIFO", -1, func() error { fifo(t, perfMap); return nil }},
			{"a link to a FIFO", -1, func() error { return os.Symlink(other, perfMap) }},
			{"a link to a file of root's", -1, func() error {
				secret := filepath.Join(dir, "secret")
				_ = os.WriteFile(secret, []byte(names), 0o600)
				return os.Symlink(secret, perfMap)
			}},
			{"a file of root's that it may not read", -1, func() error { return os.WriteFile(perfMap, []byte(names), 0o600) }},
			{"a file of another user", -1, func() error {
				return errorsOf(os.WriteFile(perfMap, []byte(names), 0o644), os.Chown(perfMap, 65533, 65533))
			}},
			{"its own file", 1, func() error {
				return errorsOf(os.WriteFile(perfMap, []byte(names), 0o600), os.Chown(perfMap, 65534, 65534))
			}},
		} {
			if filters != nil && strings.Contains(c.name, "of") && !fixture.Full(t) {
				continue // whose it is does not depend on how it is opened
			}
			_ = os.Remove(perfMap)
			if err := c.make(); err != nil {
				t.Fatal(err)
			}
			check(c.name+how, c.wants, filters...)
		}
		_ = os.Remove(perfMap)
	}
}

// errorsOf returns the first error.
func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
