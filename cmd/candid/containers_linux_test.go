package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/fixture"
)

// contained starts a program in pid, mount and user namespaces of its own, with a root directory
// that holds nothing but the program, and returns its PID outside.
func contained(t *testing.T) string {
	t.Helper()
	namespaces(t)
	cc := fixture.Tool(t, "cc")
	dir := public(t, 0o755)
	for _, d := range []string{"tmp", "app", "proc"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(cc, "-O1", "-static", "-o", filepath.Join(dir, "app", "inside"), "testdata/inside.c").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	p := start(t, exec.Command("unshare", "-Urpfm", "--mount-proc", "chroot", dir, "/app/inside"))
	p.wait(t, "ready")
	kid := children(t, p.pid())
	t.Cleanup(func() { _ = exec.Command("kill", "-9", kid).Run() })
	return kid
}

// A program in a container is seen from outside as it would be inside: its file and what it wrote
// are found in its own root, by its own PID.
func TestTargetInContainer(t *testing.T) {
	t.Parallel()
	able(t)
	pid := contained(t)
	for _, engine := range []string{"auto", "perf", "suspend"} {
		t.Run(engine, func(t *testing.T) {
			var all, inside, generated int
			r := forEnough(t, func(r result) bool { // a few samples may all be in one of the two
				all, inside, generated = samples(r.out, ""), samples(r.out, "main;inTheContainer"), samples(r.out, "main;generatedInside")
				return all >= 10 && inside > 0 && generated > 0
			}, "record", "-F", "500", "-p", pid, "-o", "-", "--format", "collapsed", "--engine", engine)
			if r.code != exitOK || all < 10 || inside+generated < all*9/10 || inside == 0 || generated == 0 {
				t.Errorf("%d samples, %d in the program's function, %d in the one that it made\n%s%s", all, inside, generated, r.out, r.err)
			}
		})
	}
}

// Inside a container, without a capability that counts, candid profiles what it can, and says what
// is missing.
func TestCandidInContainer(t *testing.T) {
	t.Parallel()
	able(t)
	namespaces(t)
	script := `trap 'kill $s' EXIT
sh -c 'while :; do :; done' & s=$!
"$0" record -F 500 -p $s -o - --format collapsed "$@"`
	inside := func(t *testing.T, below []string, args ...string) (r result) {
		for _, long := range forLong {
			c := exec.Command(below[0], slices.Concat(below[1:], []string{"sh", "-c", script, binary, "-d", long}, args)...)
			c.Dir = public(t, 0o777)
			if r = finish(t, c); r.code != exitOK && r.code != exitNoSamples || samples(r.out, "") >= 10 {
				break
			}
		}
		return r
	}
	t.Run("no capabilities", func(t *testing.T) {
		r := inside(t, []string{"unshare", "-Urpf", "--mount-proc"})
		if r.code != exitOK || samples(r.out, "") < 10 || !strings.Contains(r.err, "BPF is not permitted") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
	})
	t.Run("own pid namespace, smallest capabilities", func(t *testing.T) {
		r := inside(t, []string{"unshare", "-pf", "--mount-proc", "setpriv", "--bounding-set", "-all,+perfmon,+bpf,+sys_ptrace", "--inh-caps", "-all"})
		if r.code != exitOK || samples(r.out, "") < 10 || !strings.Contains(r.err, "BPF stack copy") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
	})
	t.Run("suspend", func(t *testing.T) {
		r := inside(t, []string{"unshare", "-Urpf", "--mount-proc"}, "--engine", "suspend")
		if r.code != exitOK || samples(r.out, "") < 10 || !strings.Contains(r.err, "threads suspended by ptrace") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
	})
}
