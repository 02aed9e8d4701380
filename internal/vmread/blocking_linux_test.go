package vmread_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/candid-profiler/candid/internal/fixture"
	"github.com/candid-profiler/candid/internal/vmread"
)

// blocked is a process of whose memory a piece has to come from somebody who does not provide it.
type blocked struct {
	*exec.Cmd
	pid   int
	piece vmread.Span
	stack uint64 // of memory that can be read
	path  string // of the file, "" if there is none
}

// block starts one: kind is "uffd" or "fuse".
func block(t *testing.T, kind string) *blocked {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: registers and mounts")
	}
	dir := t.TempDir()
	program := fixture.C(t, "../../cmd/candid/testdata/blocking.c")
	args := []string{program, kind, dir}
	if kind == "fuse" {
		if _, err := os.Stat("/dev/fuse"); err != nil {
			t.Skip("this kernel has no FUSE")
		}
		if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
			t.Skipf("nothing can be mounted here: %v", err)
		}
		args = append([]string{"unshare", "-m"}, args...)
	}
	c := exec.Command(args[0], args[1:]...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := fixture.Spawn(c); err != nil {
		t.Fatal(err)
	}
	b := &blocked{Cmd: c, pid: c.Process.Pid}
	t.Cleanup(b.end)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "ready") {
		t.Fatalf("%q, %v", line, err)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", b.pid))
	if err != nil {
		t.Fatal(err)
	}
	var now vmread.Span
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if from, to, ok := strings.Cut(f[0], "-"); ok && !strings.HasSuffix(f[0], ":") {
			now.Start, _ = strconv.ParseUint(from, 16, 64)
			now.End, _ = strconv.ParseUint(to, 16, 64)
			if path := f[len(f)-1]; len(f) == 6 && strings.HasPrefix(path, dir) {
				b.piece, b.path = now, path
			} else if path == "[stack]" {
				b.stack = now.End - 4096
			}
		} else if f[0] == "VmFlags:" && strings.Contains(line+" ", " um ") {
			b.piece = now
		}
	}
	if b.piece.End == 0 || b.stack == 0 {
		t.Fatalf("no such memory in\n%s", maps)
	}
	return b
}

func (b *blocked) end() {
	_ = b.Process.Kill()
	_ = b.Wait()
}

// reads reports how many bytes of a piece can be read, and how long it took to find out.
func (b *blocked) reads(at uint64, stuck *vmread.Stuck) (n int, took time.Duration) {
	var to [64]byte
	begin := time.Now()
	n = vmread.Some(b.pid, to[:], at, stuck)
	return n, time.Since(begin)
}

// late is when a read that does not return has certainly been given up, on a machine that is busy.
const late = 30 * time.Second

// A read of memory that nobody provides is given up, others of the process go on, there are not more
// of them than MostStuck, and all return when the process ends: however callers have them made.
func TestBlocked(t *testing.T) {
	for _, kind := range []string{"uffd", "fuse"} {
		t.Run(kind, func(t *testing.T) { testBlocked(t, kind, false) })
		t.Run(kind+"/unlocked", func(t *testing.T) { testBlocked(t, kind, true) })
	}
}

func testBlocked(t *testing.T, kind string, unlocked bool) {
	b := block(t, kind)
	var stuck, another vmread.Stuck
	var ends vmread.Ends
	ends.Unlocked(unlocked)
	stuck.End(&ends)
	another.End(&ends)
	if n, _ := b.reads(b.stack, &stuck); n != 64 {
		t.Errorf("%d bytes of the stack are read, want 64", n)
	}
	before := runtime.NumGoroutine()
	for i := 1; i <= vmread.MostStuck; i++ {
		n, took := b.reads(b.piece.Start+uint64(i)*4096, &stuck)
		if n != 0 || took > late || stuck.Count() != i {
			t.Fatalf("%d bytes after %v, %d reads have not returned, want %d", n, took, stuck.Count(), i)
		}
		if i < vmread.MostStuck {
			if n, _ := b.reads(b.stack, &stuck); n != 64 {
				t.Errorf("%d bytes of the stack are read, want 64", n)
			}
		}
	}
	if n, took := b.reads(b.stack, &stuck); n != 0 || took > late {
		t.Errorf("%d bytes after %v, though %d reads have not returned", n, took, stuck.Count())
	}
	if n, _ := b.reads(b.stack, &another); n != 64 {
		t.Errorf("another user reads %d bytes of the stack, want 64", n)
	}
	b.end()
	for begin := time.Now(); stuck.Count() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > late {
			t.Fatalf("%d reads have not returned though the process has ended", stuck.Count())
		}
	}
	// A goroutine that watches, and one that waits for the next call, may be left.
	for begin := time.Now(); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > late {
			t.Fatalf("%d goroutines are left of %d and 4 reads that have returned", runtime.NumGoroutine(), before)
		}
	}
}

// The end of one recording does not hasten the reads of another.
func TestEndsApart(t *testing.T) {
	t.Run("locked", func(t *testing.T) { testEndsApart(t, false) })
	t.Run("unlocked", func(t *testing.T) { testEndsApart(t, true) })
}

func testEndsApart(t *testing.T, unlocked bool) {
	b := block(t, "uffd")
	var ending, going vmread.Stuck
	var ends, open vmread.Ends
	ends.Unlocked(unlocked)
	open.Unlocked(unlocked)
	ends.By(time.Now())
	ending.End(&ends)
	going.End(&open)
	const patience = 500 * time.Millisecond
	if n, took := b.reads(b.piece.Start, &going); n != 0 || took < patience {
		t.Errorf("a read of a recording that goes on is given up after %v, %d bytes", took, n)
	}
	tooLittle := fixture.Watch(t)
	var took time.Duration
	for i := range vmread.MostStuck {
		time.AfterFunc(20*time.Millisecond, func() { ends.By(time.Now()) })
		if _, took = b.reads(b.piece.Start+uint64(i+1)*4096, &ending); took < patience/2 {
			return
		}
	}
	tooLittle("a read at the end of a recording took %v, as any other", took)
}

// A file system is asked by another process, directly and through a copy of this program that starts
// it; who has not answered is not waited for, and nobody answers for a copy that has ended.
func TestAnswers(t *testing.T) {
	b := block(t, "fuse")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var at uint64 // of this program's own file
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(maps), "%x-", &at); err != nil {
		t.Fatal(err)
	}
	root := fmt.Sprintf("/proc/%d/root", b.pid)
	silent := vmread.Question{PID: b.pid, Addr: b.piece.Start, Root: root, Path: b.path}
	ready := vmread.Question{PID: os.Getpid(), Addr: at, Root: "/proc/self/root", Path: self}
	ask := func(how string) {
		t.Helper()
		begin := time.Now()
		if vmread.Answers(silent) {
			t.Errorf("%s: a file system that does not answer does", how)
		}
		if !vmread.Answers(ready) {
			t.Errorf("%s: an ordinary file system does not answer", how)
		}
		if took := time.Since(begin); took > late {
			t.Errorf("%s: it took %v", how, took)
		}
	}
	ask("directly")
	if err := vmread.StartAsker(); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	for range 3 { // at the same time
		go func() { ask("through a copy"); done <- true }()
	}
	for range 3 {
		<-done
	}
	odd := ready
	odd.Path = "/no such file \xff\n" + string(binary.LittleEndian.AppendUint32(nil, 1))
	if !vmread.Answers(odd) {
		t.Error("a file that does not exist is no sign of a file system that does not answer")
	}
	// The copy ends: what cannot be asked has not answered.
	killed := false
	children, _ := os.ReadDir("/proc/self/task")
	for _, task := range children {
		list, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		for _, pid := range strings.Fields(string(list)) {
			if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); strings.Contains(string(line), "for\x00another") {
				n, _ := strconv.Atoi(pid)
				p, _ := os.FindProcess(n)
				killed = p.Kill() == nil
			}
		}
	}
	if !killed {
		t.Fatal("the copy of this program is not among its children")
	}
	if vmread.Answers(ready) {
		t.Error("an answer that nobody gave")
	}
}
