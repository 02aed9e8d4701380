package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/launch/early"
)

func start(t *testing.T, argv ...string) *Child {
	t.Helper()
	c, err := Start(argv, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 7", 7}, {"kill -TERM $$", 128 + 15}, {"kill -KILL $$", 128 + 9}} {
		child := start(t, "sh", "-c", c.script)
		if _, err := child.Release(); err != nil {
			t.Fatal(err)
		}
		code, err := child.Wait()
		if err != nil || code != c.code {
			t.Errorf("%s: code %d, %v, want %d", c.script, code, err, c.code)
		}
	}
}

func TestWaitsForRelease(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	child := start(t, "sh", "-c", "echo $$ > "+file)
	time.Sleep(100 * time.Millisecond)
	if _, err := os.Stat(file); err == nil {
		t.Fatal("the command ran before it was released")
	}
	before := clock(unix.CLOCK_MONOTONIC)
	begin, err := child.Release()
	if err != nil {
		t.Fatal(err)
	}
	if begin.Time < before || begin.Done < begin.Time || begin.Thread == 0 || begin.Process < begin.Thread || len(begin.Others) == 0 {
		t.Errorf("released at %d: %+v", before, begin)
	}
	if _, err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(b)); got != fmt.Sprint(child.PID) {
		t.Errorf("the command ran as process %s, announced as %d", got, child.PID)
	}
}

func TestNothingLeaks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seen")
	t.Setenv("ONLY_THIS", "1")
	// The shell itself blocks signals while it starts other programs, so the one that reads the
	// mask takes its place.
	child, err := Start([]string{"sh", "-c", "{ tr '\\0' '\\n' < /proc/$$/cmdline; env | sort; ls /proc/self/fd; } > " + file + "; exec grep SigBlk /proc/self/status >> " + file}, []string{"PATH=" + os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := child.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	// Descriptors with which the test itself was started, such as those of make, are not leaks.
	plain, err := exec.Command("ls", "/proc/self/fd").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "\n"+string(plain)+"SigBlk") {
		t.Errorf("the command sees other descriptors than\n%s:\n%s", plain, got)
	}
	for _, leak := range []string{early.Name, "ONLY_THIS"} {
		if strings.Contains(got, leak) {
			t.Errorf("the command sees %q:\n%s", leak, got)
		}
	}
	if !strings.Contains(got, "SigBlk:\t0000000000000000") {
		t.Errorf("the command starts with signals blocked:\n%s", got)
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("\x7fELFjunk"), 0o755); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(dir, "orphan")
	if err := os.WriteFile(orphan, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Start([]string{"no-such-command-here"}, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such command: %v", err)
	}
	if _, err := Start([]string{filepath.Join(dir, "none")}, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such file: %v", err)
	}
	if _, err := Start([]string{plain}, nil); !errors.Is(err, ErrNotExecutable) {
		t.Errorf("not executable: %v", err)
	}
	if _, err := Start(nil, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	for _, c := range []struct {
		file string
		is   error
		code int
	}{{junk, ErrNotExecutable, CodeNotExecutable}, {orphan, ErrNotFound, CodeNotFound}} {
		child := start(t, c.file)
		if _, err := child.Release(); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", c.file, err)
		}
		if code, err := child.Wait(); code != c.code || err != nil {
			t.Errorf("%s: code %d, %v", c.file, code, err)
		}
	}
}

func TestKillBeforeRelease(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	child := start(t, "touch", file)
	child.Kill()
	if _, err := os.Stat(file); err == nil {
		t.Error("the command ran though it was never released")
	}
	if err := syscall.Kill(child.PID, 0); err == nil {
		t.Error("the waiting process is still there")
	}
}

// The first thread is the one that waits and becomes the command, so perf events on it stay.
func TestFirstThreadWaits(t *testing.T) {
	for range 20 {
		child := start(t, "true")
		var what []byte
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			// The first thread is in read(3): nothing else waits like that.
			what, _ = os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", child.PID, child.PID))
			if strings.HasPrefix(string(what), fmt.Sprintf("%d 0x%x ", syscall.SYS_READ, early.WordFD)) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if !strings.HasPrefix(string(what), fmt.Sprintf("%d 0x%x ", syscall.SYS_READ, early.WordFD)) {
			t.Errorf("the first thread is in %q", what)
		}
		child.Kill()
	}
}
