package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/capture/launch/early"
)

// Child is a command that was started.
type Child struct {
	PID int

	proc   *os.Process
	word   *os.File // pipe to the child; nil once released
	report *os.File // pipe from the child
	path   string
	apart  bool // it leads a session of its own
}

// Start starts argv with the given environment, stopped before its first instruction. Its stdin,
// stdout, stderr, directory and process group are candid's own. The error wraps ErrNotFound or
// ErrNotExecutable if that is already known.
func Start(argv []string, env []string) (*Child, error) {
	return begin(argv, env, [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, nil)
}

// StartApart starts argv as Start does, but away from candid's terminal: in a session of its own,
// without input, and with its output going to output. Signal and Kill then apply to its whole
// process group.
func StartApart(argv []string, env []string, output *os.File) (*Child, error) {
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("start %s without input: %w", argv, err)
	}
	defer nothing.Close()
	c, err := begin(argv, env, [3]*os.File{nothing, output, output}, &syscall.SysProcAttr{Setsid: true})
	if err == nil {
		c.apart = true
	}
	return c, err
}

func begin(argv []string, env []string, files [3]*os.File, attr *syscall.SysProcAttr) (*Child, error) {
	if len(argv) == 0 {
		return nil, fmt.Errorf("no command to start: %w", ErrNotFound)
	}
	path, err := exec.LookPath(argv[0])
	switch {
	case errors.Is(err, exec.ErrDot):
		return nil, fmt.Errorf("start %s: it was found in the current directory only, write ./%s: %w", argv[0], argv[0], ErrNotFound)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("start %s: %w: no permission to execute it", argv[0], ErrNotExecutable)
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("start %s: %w: it is a directory", argv[0], ErrNotExecutable)
	case err != nil:
		return nil, fmt.Errorf("start %s: %w", argv[0], ErrNotFound)
	}
	wordR, wordW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	reportR, reportW, err := os.Pipe()
	if err != nil {
		wordR.Close()
		wordW.Close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	proc, err := os.StartProcess("/proc/self/exe", append([]string{early.Name, path}, argv...), &os.ProcAttr{
		Env:   env,
		Files: append(files[:], wordR, reportW),
		Sys:   attr,
	})
	wordR.Close()
	reportW.Close()
	if err != nil {
		wordW.Close()
		reportR.Close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	return &Child{PID: proc.Pid, proc: proc, word: wordW, report: reportR, path: path}, nil
}

// Release lets the command run. It returns once the child has become the command, or returns why it
// could not (wrapping ErrNotExecutable or ErrNotFound).
func (c *Child) Release() (Begin, error) {
	if c.word == nil {
		return Begin{}, nil
	}
	var begin Begin
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", c.PID))
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil && tid != c.PID {
			begin.Others = append(begin.Others, tid)
		}
	}
	_, err := c.word.Write([]byte{1})
	c.word.Close()
	c.word = nil
	defer c.report.Close()
	if err != nil {
		return Begin{}, fmt.Errorf("release %s: the waiting process is gone: %w", c.path, err)
	}
	// The descriptor is closed by the kernel when the command is executed.
	var b [early.BeginSize + 4]byte
	n, err := io.ReadFull(c.report, b[:])
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return Begin{}, nil // Wait reports how it ended
	case n == early.BeginSize && errors.Is(err, io.ErrUnexpectedEOF):
		begin.Done = clock(unix.CLOCK_MONOTONIC)
		for i, to := range []*uint64{&begin.Time, &begin.Thread, &begin.Process} {
			*to = binary.LittleEndian.Uint64(b[i*8:])
		}
		return begin, nil
	case err != nil:
		return Begin{}, fmt.Errorf("release %s: %w", c.path, err)
	}
	errno := syscall.Errno(binary.LittleEndian.Uint32(b[early.BeginSize:]))
	if errno == syscall.ENOENT {
		// The file exists, so it is its interpreter that does not.
		return Begin{}, fmt.Errorf("start %s: %w: its interpreter does not exist", c.path, ErrNotFound)
	}
	return Begin{}, fmt.Errorf("start %s: %w: %w", c.path, ErrNotExecutable, errno)
}

func clock(id int32) uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(id, &ts) != nil {
		return 0
	}
	return uint64(ts.Nano())
}

// Processes says that they are not counted: the engines of Linux see each process start.
func (c *Child) Processes() (n uint64, ok bool) { return 0, false }

// Wait waits for the command to end and returns its exit code, 128+n if signal n ended it.
func (c *Child) Wait() (code int, err error) {
	state, err := c.proc.Wait()
	if err != nil {
		return CodeFailed, fmt.Errorf("wait for %s: %w", c.path, err)
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return state.ExitCode(), nil
}

// Signal passes a signal on to the command.
func (c *Child) Signal(sig os.Signal) error {
	if s, ok := sig.(syscall.Signal); ok && c.apart {
		return c.signalGroup(s)
	}
	return c.proc.Signal(sig)
}

// signalGroup signals the process group that the command leads. The group's number is not reused
// until Wait has returned and as long as any process of the group lives.
func (c *Child) signalGroup(sig syscall.Signal) error {
	if err := syscall.Kill(-c.PID, sig); err != nil {
		return fmt.Errorf("signal %s: %w", c.path, err)
	}
	return nil
}

// Kill gives the command up: if it was not released it never runs, otherwise it is killed. Kill
// waits for its end.
func (c *Child) Kill() {
	if c.word != nil {
		c.word.Close()
		c.word = nil
		c.report.Close()
	} else {
		_ = c.Signal(os.Kill) // it may have ended already
	}
	_, _ = c.proc.Wait()
}
