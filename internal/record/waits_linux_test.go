package record

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
)

// jdk gives the directory of a JDK for tests.
func jdk(t *testing.T, major int) string {
	t.Helper()
	root := os.Getenv("CANDID_RUNTIMES")
	if root == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Skipf("no home directory and CANDID_RUNTIMES is not set: %v", err)
		}
		root = filepath.Join(home, ".cache", "candid-runtimes")
	}
	dir := filepath.Join(root, "jdks", fmt.Sprint(major))
	if _, err := os.Stat(filepath.Join(dir, "bin", "java")); err != nil {
		t.Skipf("no JDK %d: set CANDID_RUNTIMES to a directory with jdks/%d (%v)", major, major, err)
	}
	return dir
}

// Each way in which a Java thread waits has its own state, for threads that wait
// all the time of the recording.
func TestJavaWaits(t *testing.T) {
	for _, major := range []int{8, 17, 25} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			home, classes := jdk(t, major), t.TempDir()
			if out, err := exec.Command(filepath.Join(home, "bin", "javac"), "-d", classes, "testdata/Waits.java").CombinedOutput(); err != nil {
				t.Fatalf("javac: %v\n%s", err, out)
			}
			c := exec.Command(filepath.Join(home, "bin", "java"), "-Xmx64m", "-cp", classes, "Waits")
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				in.Close()
				c.Process.Kill()
				c.Wait()
			})
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
				t.Fatalf("it says %q, %v", line, err)
			}
			for _, engine := range []string{"auto", "suspend"} {
				checkJavaWaits(t, major, engine, run(t, Options{PIDs: []int{c.Process.Pid}, Engine: engine, Events: []string{"wall"}, Duration: time.Second}).Profile)
			}
		})
	}
}

func checkJavaWaits(t *testing.T, major int, engine string, p *profile.Profile) {
	t.Helper()
	states := map[string]map[profile.State]uint64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		name := p.Threads[s.Thread].Name
		if states[name] == nil {
			states[name] = map[profile.State]uint64{}
		}
		states[name][s.State] += s.Weight
	}
	enterer := profile.StateBlocked
	if major == 8 {
		enterer = profile.StateSleeping // this VM's library names none of its functions
	}
	for name, want := range map[string]profile.State{
		"parker": profile.StateParked, "waiter": profile.StateWaiting, "enterer": enterer,
		"sleeper": profile.StateSleeping, "main": profile.StateSleeping,
	} {
		all := uint64(0)
		for _, time := range states[name] {
			all += time
		}
		// On a busy machine it takes a while until recording begins.
		if got := states[name][want]; got < all*95/100 || all < uint64(time.Second)/2 {
			t.Errorf("%s: %s is %v for %v of %v: %v", engine, name, want, time.Duration(got), p.Meta.Duration, states[name])
		}
	}
}
