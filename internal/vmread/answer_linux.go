package vmread

import (
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/safeopen"
)

// Question names a file and memory whose pages may come from it.
type Question struct {
	PID        int
	Addr       uint64 // in memory of the process PID
	Root, Path string // of the file
}

// asking is the first argument by which a copy of candid knows that it should ask.
const asking = "candid: asking a file system"

// try reads one byte of the memory and of the file, if that is permitted. It does not return if
// nobody answers.
func try(args []string) {
	_, _ = os.Stdout.Write([]byte{0}) // from here on, waiting is not ours
	pid, _ := strconv.Atoi(args[0])
	addr, _ := strconv.ParseUint(args[1], 16, 64)
	var b [1]byte
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, _ = unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: 1}}, 0)
	if f, err := safeopen.InRoot(args[2], args[3]); err == nil {
		_, _ = f.ReadAt(b[:], 0)
	}
}

// Answers reports whether a file system answers. It is asked by another process, which is left
// behind if there is no answer: not even SIGKILL ends a thread that waits for a FUSE file system, and
// candid itself could not end.
func Answers(q Question) bool {
	through.Lock()
	a := through.asker
	through.Unlock()
	if a != nil {
		return a.answers(q)
	}
	return ask(q)
}

// ask starts the process that asks, and watches it.
func ask(q Question) bool {
	c := exec.Command("/proc/self/exe")
	c.Args = []string{asking, strconv.Itoa(q.PID), strconv.FormatUint(q.Addr, 16), q.Root, q.Path}
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		return true // it cannot be asked, which is no sign that it does not answer
	}
	ended := make(chan struct{})
	begun := make(chan struct{})
	go func() {
		var b [1]byte
		_, _ = out.Read(b[:])
		close(begun)
		_ = c.Wait()
		close(ended)
	}()
	select {
	case <-begun:
	case <-ended:
		return true
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	asleep := 0
	for start := time.Now(); ; {
		select {
		case <-ended:
			return true
		case <-ticker.C:
		}
		if sleeping(c.Process.Pid) {
			asleep++
		} else {
			asleep = 0
		}
		if asleep >= 2 && time.Since(start) > patience {
			_ = c.Process.Kill()
			return false
		}
	}
}

// sleeping reports whether a process's first thread sleeps, rather than wait for a CPU.
func sleeping(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	for i := len(b) - 1; i > 0; i-- {
		if b[i] == ')' {
			return i+2 < len(b) && (b[i+2] == 'S' || b[i+2] == 'D')
		}
	}
	return false
}
