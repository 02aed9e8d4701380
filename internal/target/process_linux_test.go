package target

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fixture"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func TestOpenSelf(t *testing.T) {
	p := self(t)
	if !p.Alive() || p.UID() != os.Geteuid() || p.StartTime == 0 {
		t.Errorf("alive %v, uid %d, start %d", p.Alive(), p.UID(), p.StartTime)
	}
	if !reflect.DeepEqual(p.Cmdline(), os.Args) {
		t.Errorf("command line %q, want %q", p.Cmdline(), os.Args)
	}
	if exe, _ := os.Executable(); p.Exe() != exe {
		t.Errorf("exe %q, want %q", p.Exe(), exe)
	}
	base, mem := arena(t, 2, 1)
	maps, err := p.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range maps {
		if m.Contains(base) {
			found = true
			if m.End <= base || m.Perm != PermRead|PermWrite || !m.Anonymous() || m.FileBacked() {
				t.Errorf("%+v", m)
			}
		}
	}
	if !found {
		t.Errorf("%x is not mapped", &mem[0])
	}
}

func TestNoProcess(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 22, 1<<31 - 1} {
		_, err := Open(pid)
		var a *AccessError
		if !errors.Is(err, ErrNoProcess) || !errors.As(err, &a) || a.Reason != ReasonNoProcess {
			t.Errorf("%d: %v", pid, err)
		}
	}
}

func TestThreadIsNoProcess(t *testing.T) {
	tid := make(chan int)
	stop := make(chan bool)
	defer close(stop)
	id := os.Getpid()
	for id == os.Getpid() { // the first thread is kept by who got it
		go func() {
			runtime.LockOSThread()
			tid <- unix.Gettid()
			<-stop
		}()
		id = <-tid
	}
	if _, err := Open(id); !errors.Is(err, ErrNoProcess) || !strings.Contains(err.Error(), "thread of process") {
		t.Errorf("%v", err)
	}
}

func TestZombie(t *testing.T) {
	cmd := startProgram(t, "/bin/true")
	eventually(t, "the child has ended", func() bool {
		_, err := Open(cmd.Process.Pid)
		return errors.Is(err, ErrZombie)
	})
	listed := false
	for _, s := range must(List()) {
		if s.PID == cmd.Process.Pid {
			listed = true
			if !s.Zombie || s.Reason != ReasonZombie || s.Comm != "true" {
				t.Errorf("%+v", s)
			}
		}
	}
	if !listed {
		t.Error("the zombie is not listed")
	}
}

func TestKernelThread(t *testing.T) {
	raw, err := os.ReadFile("/proc/2/stat")
	if err != nil || !bytes.Contains(raw, []byte("(kthreadd)")) {
		t.Skip("process 2 is not kthreadd: inside a pid namespace")
	}
	if _, err := Open(2); !errors.Is(err, ErrKernelThread) {
		t.Errorf("%v", err)
	}
	for _, s := range must(List()) {
		if s.PID == 2 || s.PPID == 2 {
			t.Errorf("a kernel thread is listed: %+v", s)
		}
	}
}

// The process is killed while it is read.
func TestExitWhileReading(t *testing.T) {
	for range 5 {
		cmd, _ := startChild(t, "wait", nil)
		p, err := Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		maps, err := p.Mappings()
		if err != nil {
			t.Fatal(err)
		}
		addr := maps[0].Start
		if err := p.Memory().ReadAt(make([]byte, 8), addr); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(3*time.Millisecond, func() { cmd.Process.Kill() })
		deadline := time.Now().Add(time.Minute)
		for p.Alive() && time.Now().Before(deadline) {
			p.Mappings()
			p.Threads()
			CPUTimes(p)
			p.Modules()
			p.Memory().Invalidate()
			p.Memory().Word(addr)
		}
		if p.Alive() {
			t.Fatal("still alive")
		}
		p.Memory().Invalidate()
		if _, ok := p.Memory().Word(addr); ok {
			t.Error("memory of a dead process was read")
		}
		if _, err := p.Mappings(); !errors.Is(err, ErrZombie) && !errors.Is(err, ErrNoProcess) {
			t.Errorf("mappings: %v", err)
		}
		cmd.Wait()
		if _, err := p.Mappings(); !errors.Is(err, ErrNoProcess) {
			t.Errorf("mappings when it is gone: %v", err)
		}
		if _, err := p.Threads(); !errors.Is(err, ErrNoProcess) {
			t.Errorf("threads when it is gone: %v", err)
		}
		if _, err := p.Thread(p.PID); !errors.Is(err, ErrNoProcess) {
			t.Errorf("thread when it is gone: %v", err)
		}
		if _, err := p.OpenInRoot("/etc/passwd"); err == nil {
			t.Error("a file of a dead process could be opened")
		}
		p.Close()
		if _, err := p.Mappings(); !errors.Is(err, ErrNoProcess) || p.Alive() {
			t.Errorf("after Close: %v", err)
		}
	}
}

// The first thread has ended and the others run on: maps and memory are still readable.
func TestFirstThreadEnded(t *testing.T) {
	cmd, _ := startChild(t, "headless", nil)
	pid := cmd.Process.Pid
	early, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	maps, err := early.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	first := maps[0].Start
	cmd.Process.Signal(syscall.SIGUSR1) // the request to end the first thread
	eventually(t, "the first thread has ended", func() bool {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		st, ok := parseStat(raw)
		return ok && st.State == 'Z'
	})
	late, err := Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	for name, p := range map[string]*Process{"opened before": early, "opened after": late} {
		if !p.Alive() || p.Exe() == "" {
			t.Errorf("%s: alive %v, exe %q", name, p.Alive(), p.Exe())
		}
		var word [8]byte
		if err := p.Memory().ReadAt(word[:], first); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		maps, err := p.Mappings()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if f, err := p.OpenFile(maps[0]); err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			f.Close()
		}
	}
}

func TestOtherNamespaces(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	cmd, _ := startChild(t, "container="+dir, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID})
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.NamespacePID() != 1 {
		t.Errorf("in its namespace it is %d, want 1", p.NamespacePID())
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Fatal("its mount is visible here, so this test shows nothing")
	}
	mods, err := p.Modules()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range mods {
		name := filepath.Base(m.Path)
		if name != "lib.so" && name != "gone.so" {
			continue
		}
		seen++
		if m.Deleted != (name == "gone.so") {
			t.Errorf("%s: deleted %v", m.Path, m.Deleted)
		}
		f, err := p.OpenFile(m.Mappings[0])
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		f.Close()
		if string(b) != strings.Repeat(name, 2000) {
			t.Errorf("%s holds %.20q", m.Path, b)
		}
		// Without map_files (as when CAP_SYS_ADMIN is missing): by path, but never another file
		// that now has it.
		f, err = p.openRoot(m.Path, &m.Mappings[0])
		if name == "gone.so" {
			if !errors.Is(err, ErrStale) {
				t.Errorf("a replaced file: %v", err)
			}
		} else if err != nil {
			t.Error(err)
		}
		if err == nil {
			f.Close()
		}
	}
	if seen != 2 {
		t.Errorf("%d of its modules seen, want 2", seen)
	}
	if b, err := os.ReadFile(p.RootPath(dir + "/lib.so")); err != nil || len(b) == 0 {
		t.Errorf("through its root: %v", err)
	}
	f, err := p.OpenInRoot(dir + "/link.so")
	if err != nil {
		t.Fatalf("an absolute link inside: %v", err)
	}
	f.Close()
	if _, err := p.OpenInRoot("/dev/null"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a device: %v", err)
	}
}

func TestOtherUser(t *testing.T) {
	needRoot(t)
	_, out := startChild(t, fmt.Sprintf("open=%d", os.Getpid()),
		&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	want := fmt.Sprintf("reason %s true 0\nlisted %s\n", ReasonOtherUser, ReasonOtherUser)
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestHidden(t *testing.T) {
	needRoot(t)
	_, out := startChild(t, fmt.Sprintf("hidden=%d", os.Getpid()), &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS})
	if strings.HasPrefix(out, "cannot:") {
		t.Skipf("cannot mount /proc with hidepid: %s", out)
	}
	if want := fmt.Sprintf("reason %s true -1\n", ReasonHidden); out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestReusedID(t *testing.T) {
	needRoot(t)
	_, out := startChild(t, "reuse", &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID})
	if out != "reused false false true true true\n" {
		t.Errorf("got %q", out)
	}
}

func TestThreads(t *testing.T) {
	p := self(t)
	tid := make(chan int)
	stop := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never unlocked, so that the thread ends with its odd name
		name := append([]byte("odd) name\n\x01"), 0)
		unix.Prctl(unix.PR_SET_NAME, uintptr(ptr(name)), 0, 0, 0)
		for used := int64(0); used < 60e6; { // of CPU, which a busy machine grants at any time
			var now unix.Timespec
			unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
			used = now.Nano()
		}
		tid <- unix.Gettid()
		<-stop
	}()
	id := <-tid
	defer close(stop)
	all, err := p.Threads()
	if err != nil {
		t.Fatal(err)
	}
	times, err := CPUTimes(p)
	if err != nil {
		t.Fatal(err)
	}
	last, found := 0, false
	for _, th := range all {
		if th.TID <= last {
			t.Error("not sorted")
		}
		last = th.TID
		if th.TID != id {
			continue
		}
		if th.Name != "odd) name\n\x01" {
			t.Errorf("name %q", th.Name)
		}
		if th.CPU < 40e6 || th.CPU > 10e9 || times[id] < th.CPU || times[id] > th.CPU+1e9 {
			t.Errorf("cpu %d ns, then %d ns", th.CPU, times[id])
		}
		found = true
	}
	if !found {
		t.Error("the thread is missing")
	}
	if _, ok := times[id]; !ok {
		t.Error("the thread's time is missing")
	}
	if _, err := p.Thread(1 << 30); !errors.Is(err, ErrNoProcess) {
		t.Errorf("no such thread: %v", err)
	}
}

func TestListHasSelf(t *testing.T) {
	for _, s := range must(List()) {
		if s.PID == os.Getpid() {
			p := self(t)
			if s.UID != os.Geteuid() || s.PPID != os.Getppid() || s.StartTime != p.StartTime || s.Exe != p.Exe() ||
				!reflect.DeepEqual(s.Cmdline, os.Args) || s.Reason != ReasonNone || s.Zombie || s.User == "" {
				t.Errorf("%+v", s)
			}
			return
		}
	}
	t.Error("this process is not listed")
}

func BenchmarkList(b *testing.B) {
	n := 0
	for b.Loop() {
		n = len(must(List()))
	}
	b.ReportMetric(float64(n), "processes")
}

func BenchmarkMappings(b *testing.B) {
	p := self(b)
	b.ReportAllocs()
	for b.Loop() {
		p.Mappings()
	}
}

func BenchmarkCPUTimes(b *testing.B) {
	p := self(b)
	stop := make(chan bool)
	for range 500 {
		up := make(chan bool)
		go func() {
			runtime.LockOSThread()
			up <- true
			<-stop
		}()
		<-up
	}
	defer close(stop)
	n := 0
	for b.Loop() {
		n = len(must(CPUTimes(p)))
	}
	b.ReportMetric(float64(n), "threads")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/thread")
}

// After an exec, the new program's state is read.
func TestExec(t *testing.T) {
	for _, way := range []string{"process_vm_readv", "proc_mem"} {
		t.Run(way, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", "-c", "read x; exec /bin/sleep 100")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := fixture.Spawn(cmd); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			eventually(t, "the shell runs", func() bool {
				comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
				return string(comm) == "sh\n"
			})
			p, err := Open(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if way == "proc_mem" {
				a := p.mem.src.(*vmAccess)
				if a.mem, err = a.reopen(); err != nil {
					t.Fatal(err)
				}
			}
			in.Write([]byte("\n"))
			var maps []Mapping
			eventually(t, "sleep runs", func() bool {
				maps, _ = p.Mappings()
				return len(maps) > 0 && strings.HasSuffix(maps[0].Path, "/sleep")
			})
			p.Memory().Invalidate()
			var magic [4]byte
			if !p.Memory().Bytes(maps[0].Start, magic[:]) || string(magic[:]) != elf.ELFMAG {
				t.Errorf("the new program begins with %q", magic)
			}
			if !p.Alive() {
				t.Error("not alive")
			}
		})
	}
}
