package engines

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture"
	"github.com/candid-profiler/candid/internal/capture/perfevent"
	"github.com/candid-profiler/candid/internal/fixture"
)

// helperEnv makes the test binary record its argument as an ordinary user.
const helperEnv = "CANDID_TEST_UNPRIVILEGED"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(m.Run())
	}
	if err := recordAsUser(os.Args[1]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func recordAsUser(bin string) error {
	cmd := exec.Command(bin)
	if err := fixture.Spawn(cmd); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Kill() }()
	time.Sleep(100 * time.Millisecond)
	if os.Getenv(lockedEnv) != "" {
		// There is no memory for rings: the kernel then permits no perf event that samples.
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{}); err != nil {
			return err
		}
	}
	for _, name := range []string{"bpf", "perf"} {
		_, err := Open(options(500, cmd.Process.Pid), name)
		fmt.Printf("%s: %v\n", name, err)
	}
	e, err := Open(options(500, cmd.Process.Pid), "auto")
	if err != nil {
		return err
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r := newRecorder()
	r.look = func(*capture.Snapshot) { // until all threads have been seen
		if len(r.count) >= 3 && r.samples > 50 {
			cancel()
		}
	}
	if err := e.Run(ctx, r); err != nil {
		return err
	}
	fmt.Println(e.Describe())
	fmt.Printf("engine %s samples %d threads %d\n", e.Name(), r.samples, len(r.count))
	return nil
}

// lockedEnv leaves the test binary no memory for perf's rings.
const lockedEnv = "CANDID_TEST_NO_RINGS"

// If no perf event can be opened, threads are suspended.
func TestWithoutPerf(t *testing.T) {
	const limit = "/proc/sys/kernel/perf_event_mlock_kb"
	old, err := os.ReadFile(limit)
	if err != nil || os.Getuid() != 0 {
		t.Skip("becoming another user and taking perf's memory away needs root")
	}
	if err := os.WriteFile(limit, []byte("0"), 0o644); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(limit, old, 0o644) })
	got := runAsUser(t, lockedEnv+"=1")
	for _, want := range []string{"threads suspended by ptrace", "perf events are not permitted", "engine suspend", "threads 3"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in what it said", want)
		}
	}
}

func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	if p := perfevent.Paranoid(); p != "2" && p != "1" {
		t.Skipf("kernel.perf_event_paranoid is %s: users may do either everything or nothing", p)
	}
	got := runAsUser(t)
	for _, want := range []string{"bpf: load the BPF programs: not permitted", "perf: open perf event cpu of the whole machine: not permitted", "BPF is not permitted", "engine perf-thread", "threads 3"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in what it said", want)
		}
	}
}

// runAsUser runs recordAsUser as nobody and returns its output.
func runAsUser(t *testing.T, env ...string) string {
	t.Helper()
	bin := fixture.C(t, workSource)
	dir := t.TempDir()
	self := filepath.Join(dir, "engines.test")
	copyFile(t, "/proc/self/exe", self)
	copyFile(t, bin, filepath.Join(dir, "work"))
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(self, filepath.Join(dir, "work"))
	cmd.Dir = "/"
	cmd.Env = append(append(os.Environ(), helperEnv+"=1"), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
