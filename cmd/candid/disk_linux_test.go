package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// If the disk is full, what was recorded is saved elsewhere.
func TestFullDisk(t *testing.T) {
	able(t)
	root(t)
	dir, tmp := t.TempDir(), t.TempDir()
	pid := program(t, "spin").pid()
	// The page alone is larger than this disk.
	path := fixture.Tool(t, "unshare")
	var r result
	for _, long := range forLong {
		script := fmt.Sprintf(`mount -t tmpfs -o size=16k none %[1]s || exit 77
TMPDIR=%[2]s %[3]s record -q -F 500 -d %[5]s -p %[4]s -o %[1]s/x.html; code=$?; ls -A %[1]s; exit $code`, dir, tmp, binary, pid, long)
		c := command(t)
		c.Path, c.Args = path, []string{"unshare", "-m", "sh", "-c", script}
		if r = finish(t, c); sampled(r) {
			break
		}
	}
	if r.code == 77 || strings.Contains(r.err, "unshare failed") {
		t.Skip("mounting is not possible here: " + r.err)
	}
	r.refused(t, exitFailed, dir+"/x.html", "no space left on device", tmp)
	kept, _ := filepath.Glob(filepath.Join(tmp, "*.html"))
	if len(kept) != 1 || !strings.Contains(r.err, kept[0]) {
		t.Fatalf("kept: %v\n%s", kept, r.err)
	}
	if b, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(b), "</html>") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if other, _ := os.ReadDir(tmp); len(other) != 1 {
		t.Errorf("more was left: %v", other)
	}
}

// A device that accepts nothing, and a standard output that does the same.
func TestFullDevice(t *testing.T) {
	able(t)
	tmp := t.TempDir()
	pid := program(t, "spin").pid()
	// On a busy machine the program may not get a CPU in that time.
	full := func(tmp string) (r result) {
		for range 10 {
			c := command(t, "record", "-q", "-F", "500", "-d", "300ms", "-p", pid, "-o", "/dev/full", "--format", "collapsed")
			c.Env = append(os.Environ(), "TMPDIR="+tmp)
			if r = finish(t, c); r.code != exitNoSamples {
				break
			}
		}
		return r
	}
	full(tmp).refused(t, exitFailed, "/dev/full", "no space left", tmp)
	if kept, _ := filepath.Glob(filepath.Join(tmp, "*")); len(kept) != 1 {
		t.Errorf("kept: %v", kept)
	}
	// If there is nowhere to save to, the line says so.
	full("/no/such/directory").refused(t, exitFailed, "/dev/full", "no space left", "/no/such/directory")
}
