package priority

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

// These are the roles of the test binary, in roleEnv.
const (
	roleEnv   = "CANDID_TEST_PRIORITY"
	roleAlone = "alone" // keeps its level without being allowed to raise it
)

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == roleAlone {
		os.Exit(alone())
	}
	os.Exit(m.Run())
}

// alone returns 0 if an ordinary user is told exactly once that the level was refused.
func alone() int {
	told := 0
	k := keeper{runnable: func() (int, int, error) { return 1000, 2, nil }, set: setAll, tell: func(t Report) {
		if t.Refused() && t.Got == 0 && t.Wanted == -20 {
			told++
		} else {
			told += 100
		}
	}}
	k.look()
	k.look()
	if told != 1 || k.now != 0 || Best() != 0 {
		return 1
	}
	return 0
}

// threadsNotAt returns how many threads of this process do not have a level.
func threadsNotAt(t *testing.T, level int) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if p, err := unix.Getpriority(unix.PRIO_PROCESS, tid); err == nil && levelZero-p != level {
			n++
		}
	}
	return n
}

// In a crowd all threads are raised, later ones too, but not child processes; afterwards everything
// is as before.
func TestKeep(t *testing.T) {
	if Best() > -5 {
		t.Skip("a better nice level is not permitted: run as root, or with CAP_SYS_NICE")
	}
	if Own() != 0 {
		t.Skip("the test itself has another nice level than 0")
	}
	// This is a real crowd: Keep examines the machine itself.
	_, cpus, err := Runnable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * Crowded * cpus {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := fixture.Spawn(c); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	}
	var mu sync.Mutex
	var told []Report
	stop := Keep(func(x Report) { mu.Lock(); told = append(told, x); mu.Unlock() })
	// The number of runnable threads at one moment varies by chance, so it may take several
	// measurements.
	for end := time.Now().Add(time.Minute); Own() == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it was not raised in a crowd within a minute")
		}
	}
	var done sync.WaitGroup
	release := make(chan struct{})
	for range 30 { // in as many threads
		done.Go(func() { var b [1]byte; _, _ = unix.Read(pipe(t, release), b[:]) })
	}
	child := exec.Command("sleep", "60")
	if err := fixture.Spawn(child); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	Child(child.Process.Pid)
	if p, err := unix.Getpriority(unix.PRIO_PROCESS, child.Process.Pid); err != nil || p != levelZero {
		t.Errorf("a child has nice level %d, %v", levelZero-p, err)
	}
	stop()
	if n := threadsNotAt(t, 0); n != 0 {
		t.Errorf("%d threads have not the level that they had", n)
	}
	close(release)
	done.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || told[0].Refused() || told[0].Got > -5 || told[0].Runnable < Crowded {
		t.Errorf("%+v", told)
	}
	// Keep can be started again afterwards.
	stop = Keep(func(Report) {})
	stop()
	if n := threadsNotAt(t, 0); n != 0 {
		t.Errorf("%d threads have not the level that they had", n)
	}
}

// pipe returns the read end of a pipe that becomes readable when release is closed.
func pipe(t *testing.T, release chan struct{}) int {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Error(err)
		return -1
	}
	go func() { <-release; _ = unix.Close(p[1]) }()
	return p[0]
}

// All threads get the level, those that exist already and those that are started meanwhile.
func TestAllThreads(t *testing.T) {
	if Best() > -5 {
		t.Skip("a better nice level is not permitted: run as root, or with CAP_SYS_NICE")
	}
	before := Own()
	if got, err := setAll(-7); got != -7 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if n := threadsNotAt(t, -7); n != 0 {
		t.Errorf("%d threads were not reached", n)
	}
	if got, err := setAll(before); got != before || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("run as root: the test becomes an ordinary user")
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), roleEnv+"="+roleAlone)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// A process that was started at a worse level than others stays there.
func TestWorseLevelIsKept(t *testing.T) {
	if Own() > 0 {
		t.Skip("the test itself has a nice level above 0 already")
	}
	before := Own()
	if Best() > before {
		t.Skip("the level could not be put back: run as root")
	}
	defer func() { _, _ = setAll(before) }()
	if got, err := setAll(5); got != 5 || err != nil {
		t.Fatal(got, err)
	}
	stop := Keep(func(x Report) { t.Errorf("%+v", x) })
	stop()
	if Own() != 5 {
		t.Errorf("nice level %d", Own())
	}
}
