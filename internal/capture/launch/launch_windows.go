package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/winsys"
)

// Child is a command that was started.
type Child struct {
	PID int

	proc  *os.Process
	path  string
	held  bool           // it has not been released
	job   windows.Handle // has it and the processes that it starts; ends it with candid as long as it is held; 0: none
	apart bool           // it leads a process group of its own, without candid's console
}

// Start starts argv with the given environment, suspended before its first instruction. Its stdin,
// stdout, stderr, directory and console are candid's own. If candid is ended before Release, the
// command is too. The error wraps ErrNotFound or ErrNotExecutable.
func Start(argv []string, env []string) (*Child, error) {
	return begin(argv, env, [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, 0)
}

// StartApart starts argv as Start does, but away from candid's console: without input, and with its
// output going to output.
func StartApart(argv []string, env []string, output *os.File) (*Child, error) {
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("start %s without input: %w", argv, err)
	}
	defer nothing.Close()
	c, err := begin(argv, env, [3]*os.File{nothing, output, output}, windows.CREATE_NEW_PROCESS_GROUP|windows.CREATE_NO_WINDOW)
	if err == nil {
		c.apart = true
	}
	return c, err
}

func begin(argv []string, env []string, files [3]*os.File, flags uint32) (*Child, error) {
	if len(argv) == 0 {
		return nil, fmt.Errorf("no command to start: %w", ErrNotFound)
	}
	path, err := exec.LookPath(argv[0])
	switch {
	case errors.Is(err, exec.ErrDot):
		return nil, fmt.Errorf(`start %s: it was found in the current directory only, write .\%s: %w`, argv[0], argv[0], ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("start %s: %w", argv[0], ErrNotFound)
	}
	proc, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env: env, Files: files[:], Sys: &syscall.SysProcAttr{CreationFlags: flags | windows.CREATE_SUSPENDED},
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("start %s: %w", argv[0], ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("start %s: %w: %w", argv[0], ErrNotExecutable, err)
	}
	c := &Child{PID: proc.Pid, proc: proc, path: path, held: true}
	c.hold()
	return c, nil
}

// hold puts the command into a job that ends with candid. Where that fails nothing else does.
func (c *Child) hold() {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(c.PID))
	if err != nil {
		return
	}
	defer windows.CloseHandle(h)
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	if limit(job, windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE) != nil || windows.AssignProcessToJobObject(job, h) != nil {
		windows.CloseHandle(job)
		return
	}
	c.job = job
}

func limit(job windows.Handle, flags uint32) error {
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = flags
	_, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err
}

// free lets the command live on without candid. The job stays: it counts processes.
func (c *Child) free() {
	if c.job != 0 {
		_ = limit(c.job, 0)
	}
}

// Processes returns of how many processes the command has consisted so far, itself included: the
// system counts those in its job. A process that leaves the job is not counted.
func (c *Child) Processes() (n uint64, ok bool) {
	const basicAccounting = 1 // JobObjectBasicAccountingInformation
	var info struct {         // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION (winnt.h)
		user, kernel, periodUser, periodKernel int64
		faults, total, active, terminated      uint32
	}
	if c.job == 0 || windows.QueryInformationJobObject(c.job, basicAccounting, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0, false
	}
	return uint64(info.total), info.total > 0
}

// Release lets the command run.
func (c *Child) Release() (Begin, error) {
	if !c.held {
		return Begin{}, nil
	}
	begin := Begin{Time: winsys.Clock()}
	if err := c.resume(); err != nil {
		return Begin{}, fmt.Errorf("release %s: %w", c.path, err)
	}
	c.held = false
	c.free()
	begin.Done = begin.Time
	return begin, nil
}

// resume resumes the command's only thread.
func (c *Child) resume() error {
	var s winsys.Snapshot
	if err := s.Take(); err != nil {
		return err
	}
	info := s.Process(uint32(c.PID))
	if info == nil || len(info.Threads) == 0 {
		return errors.New("the waiting process is gone")
	}
	th, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, info.Threads[0].TID)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(th)
	_, err = windows.ResumeThread(th)
	return err
}

// Wait waits for the command to end and returns its exit code.
func (c *Child) Wait() (code int, err error) {
	state, err := c.proc.Wait()
	if err != nil {
		return CodeFailed, fmt.Errorf("wait for %s: %w", c.path, err)
	}
	return state.ExitCode(), nil
}

// Signal passes a request to stop on to the command: os.Interrupt as Ctrl-Break, if it does not get
// Ctrl-C from the console that it shares with candid; os.Kill ends it.
func (c *Child) Signal(sig os.Signal) error {
	if sig == os.Kill {
		return c.proc.Kill()
	}
	if !c.apart {
		return nil
	}
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(c.PID))
}

// Kill ends the command, and waits for its end.
func (c *Child) Kill() {
	_ = c.proc.Kill() // it may have ended already
	done := make(chan struct{})
	go func() {
		_, _ = c.proc.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
	}
}
