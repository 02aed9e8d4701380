package target

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

// childEnv selects the role of the test binary when it is run again.
const childEnv = "CANDID_TARGET_TEST_CHILD"

func init() { runtime.LockOSThread() } // main, and TestMain with it, stays on the first thread

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		name, arg, _ := strings.Cut(role, "=")
		if err := children[name](arg); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	runtime.UnlockOSThread()
	os.Exit(m.Run())
}

var children = map[string]func(string) error{
	"wait":      func(string) error { return ready() },
	"exit":      func(string) error { return nil },
	"headless":  childHeadless,
	"container": childContainer,
	"open":      childOpen,
	"hidden":    childHidden,
	"reuse":     childReuse,
}

// ready tells the parent and waits until it closes the pipe.
func ready() error {
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// childHeadless ends its first thread on request; the others run on.
func childHeadless(string) error {
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGUSR1)
	go func() {
		ready()
		os.Exit(0)
	}()
	<-told
	unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	return errors.New("exit returned")
}

// childContainer maps a file that only its own mount namespace has, and one that
// it then removes.
func childContainer(dir string) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		return err
	}
	for _, name := range []string{"lib.so", "gone.so"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(name, 2000)), 0o755); err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if _, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE); err != nil {
			return err
		}
		f.Close()
	}
	if err := os.Remove(filepath.Join(dir, "gone.so")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "gone.so"), []byte("another"), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(dir, "lib.so"), filepath.Join(dir, "link.so")); err != nil {
		return err
	}
	return ready()
}

// childOpen opens a process and prints the result.
func childOpen(arg string) error {
	pid, _ := strconv.Atoi(arg)
	_, err := Open(pid)
	var access *AccessError
	if errors.As(err, &access) {
		fmt.Println("reason", access.Reason, errors.Is(err, ErrPermission), access.UID)
		for _, s := range must(List()) {
			if s.PID == pid {
				fmt.Println("listed", s.Reason)
			}
		}
		return nil
	}
	fmt.Println("error", err)
	return nil
}

// childHidden opens a process under a /proc that shows a user only its own.
func childHidden(arg string) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"); err != nil {
		fmt.Println("cannot:", err)
		return nil
	}
	if err := syscall.Setgid(65534); err != nil {
		return err
	}
	if err := syscall.Setuid(65534); err != nil {
		return err
	}
	return childOpen(arg)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// childReuse runs as the first process of a pid namespace: it opens a process,
// lets it end, and makes another with the same id.
func childReuse(string) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	err := errTaken
	for range 20 {
		if err = reuse(); err != errTaken {
			break
		}
	}
	return err
}

// errTaken is returned if the id was not reused: a thread of Go's runtime may have got it, and
// keeps it.
var errTaken = errors.New("the id was never given again")

// reuse opens a process whose id is then reused by another one.
func reuse() error {
	start := func() (*exec.Cmd, error) {
		cmd := exec.Command("/bin/sleep", "100")
		return cmd, fixture.Spawn(cmd)
	}
	first, err := start()
	if err != nil {
		return err
	}
	p, err := Open(first.Process.Pid)
	if err != nil {
		return err
	}
	maps, err := p.Mappings()
	if err != nil {
		return err
	}
	if _, ok := p.Memory().Word(maps[0].Start); !ok {
		return errors.New("the first process cannot be read")
	}
	first.Process.Kill()
	first.Wait()
	for range 10 {
		last := strconv.Itoa(p.PID - 1)
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(last), 0); err != nil {
			return err
		}
		second, err := start()
		if err != nil {
			return err
		}
		defer second.Process.Kill()
		if second.Process.Pid != p.PID {
			continue
		}
		q, err := Open(p.PID)
		if err != nil {
			return err
		}
		m, err := q.Mappings()
		if err != nil {
			return err
		}
		if _, ok := q.Memory().Word(m[0].Start); !ok {
			return errors.New("the second process cannot be read")
		}
		p.Memory().Invalidate()
		_, word := p.Memory().Word(m[0].Start)
		_, number := p.Memory().Uint64(m[0].Start)
		_, mapErr := p.Mappings()
		_, threadErr := p.Threads()
		fmt.Println("reused", p.Alive(), word, errors.Is(number, ErrMemory), errors.Is(mapErr, ErrNoProcess), errors.Is(threadErr, ErrNoProcess))
		return nil
	}
	return errTaken
}

// startChild runs the test binary as role and waits for its first line.
func startChild(t testing.TB, role string, attr *syscall.SysProcAttr) (*exec.Cmd, string) {
	t.Helper()
	// Through a descriptor, because another user may not enter the directory.
	bin, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer bin.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.Args[0] = "candid-test-child"
	cmd.ExtraFiles = []*os.File{bin}
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.Spawn(cmd); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skipf("cannot start a child as wanted (%v): run the tests as root", err)
		}
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, _ := r.ReadString('\n')
	if strings.HasPrefix(line, "failed:") {
		t.Fatal(line)
	}
	rest := ""
	if !strings.HasPrefix(line, "ready") {
		b, _ := io.ReadAll(r)
		rest = string(b)
	}
	return cmd, line + rest
}

// startProgram runs another program that is killed when the test ends.
func startProgram(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := fixture.Spawn(cmd); err != nil {
		t.Fatalf("run %s: %v", name, err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// eventually waits for a condition, at most 10 s.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(&b[0]) }
