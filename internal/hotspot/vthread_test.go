package hotspot

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/candid-profiler/candid/internal/offspring"
	"github.com/candid-profiler/candid/internal/target"
)

// The virtual threads that are mounted are known by their Java ids and names.
func TestMountedVirtualThreads(t *testing.T) {
	classes := t.TempDir()
	if out, err := exec.Command(filepath.Join(jdk(t, 21), "bin", "javac"), "-encoding", "UTF-8", "-d", classes, filepath.Join("testdata", "Mounted.java")).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	for _, c := range []struct {
		major int
		flags string
	}{{21, ""}, {21, "-XX:+UseZGC -XX:+ZGenerational"}, {25, ""}, {25, "-XX:+UseZGC"}, {27, ""}} {
		t.Run(fmt.Sprintf("jdk%d%s", c.major, c.flags), func(t *testing.T) {
			args := append(strings.Fields(c.flags), "-Xmx64m", "-Djdk.virtualThreadScheduler.parallelism=2", "-cp", classes, "Mounted")
			cmd := exec.Command(filepath.Join(jdk(t, c.major), "bin", "java"), args...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := offspring.Start(cmd); err != nil {
				t.Fatal(err)
			}
			defer func() { cmd.Process.Kill(); cmd.Wait() }()
			var a, b uint64
			line, err := bufio.NewReader(out).ReadString('\n')
			if _, err2 := fmt.Sscanf(line, "ids %d %d ready", &a, &b); err != nil || err2 != nil {
				t.Fatalf("%q: %v, %v", line, err, err2)
			}
			p, err := target.Open(cmd.Process.Pid)
			if err != nil {
				t.Skipf("cannot read other processes here: %v", err)
			}
			defer p.Close()
			vm := openVM(t, p)
			got := make(map[uint64]string)
			for tid, name := range vm.ThreadNames() {
				if id, vname, ok := vm.VirtualThread(uint32(tid)); ok {
					got[id] = vname
					if again, name, ok := vm.Census().Virtual(uint32(tid)); !ok || again != id || name != vname {
						t.Errorf("asked by the census it is %d %q (%v), not %d %q", again, name, ok, id, vname)
					}
					if !strings.HasPrefix(name, "ForkJoinPool") {
						t.Errorf("thread %q carries virtual thread %d", name, id)
					}
				}
			}
			if name, ok := got[a]; !ok || name != "spinner-é" {
				t.Errorf("virtual thread %d is %q (%v); all: %v", a, name, ok, got)
			}
			if name, ok := got[b]; !ok || name != "" || len(got) != 2 {
				t.Errorf("virtual thread %d is %q (%v); all: %v", b, name, ok, got)
			}
		})
	}
}
