package oracle

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/cpu"
)

// Errors of Step.
var (
	// ErrExited means that the thread has ended.
	ErrExited = errors.New("the traced thread has ended")
	// ErrBlocked means that the instruction was a system call that has not returned within the
	// Tracer's patience. The thread still runs; Step may be called again.
	ErrBlocked = errors.New("the traced thread is blocked in a system call")
)

// Tracer steps one thread. All of its methods must be called from the OS thread
// that called Attach or Start (runtime.LockOSThread): ptrace belongs to a thread.
type Tracer struct {
	// Patience is how long Step waits for a system call to return.
	Patience time.Duration
	// StaysPopped says that the program never carries a return address in a register to push it
	// again. It must be set if stacks are left and entered again at the same place, with old return
	// addresses still lying there (Go's system stack).
	StaysPopped bool

	pid, tid int
	cmd      *exec.Cmd // set by Start
	regs     unix.PtraceRegs
	mem      *Memory
	shadow   shadow
	regions  regions
	signal   int  // to be delivered with the next step
	running  bool // a step was requested and has not ended
	steps    uint64
	executed Instruction
	prompt   bool // the current step cannot block
}

// Instruction is what a step executed.
type Instruction struct {
	PC    uint64
	Bytes [15]byte // as they were in memory just before
	Call  bool
	Ret   bool
}

// Attach stops the thread tid, whichever process it belongs to. The callers of its current function
// are not known: the shadow stack starts empty.
func Attach(tid int) (*Tracer, error) {
	pid, err := threadGroup(tid)
	if err != nil {
		return nil, err
	}
	// A program that is stepped ends with its tracer: it would be useless if it were abandoned in
	// the middle of a step.
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, unix.PTRACE_O_EXITKILL, 0, 0); e != 0 {
		return nil, fmt.Errorf("ptrace seize thread %d: %w", tid, e)
	}
	t := newTracer(pid, tid)
	t.running = true
	if err := t.interrupt(); err != nil {
		t.abandon()
		return nil, err
	}
	return t, nil
}

// interrupt stops the running thread.
func (t *Tracer) interrupt() error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(t.tid), 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("ptrace interrupt thread %d: %w", t.tid, e)
	}
	t.prompt = false
	return t.wait()
}

// abandon gives up a thread that cannot be detached from because it does not stop. Its end must
// still be waited for: until then its process would not end, and a parent that waits for the
// process would wait forever.
func (t *Tracer) abandon() {
	tid := t.tid
	go func() {
		var ws unix.WaitStatus
		for {
			switch _, err := unix.Wait4(tid, &ws, unix.WALL, nil); {
			case err == unix.EINTR:
			case err != nil || ws.Exited() || ws.Signaled():
				return
			}
		}
	}()
}

// Start launches a program and stops it before its first instruction, so that
// the shadow stack is complete from the start.
func Start(name string, args ...string) (*Tracer, error) {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s to be traced: %w", name, err)
	}
	pid := cmd.Process.Pid
	t := newTracer(pid, pid)
	t.cmd = cmd
	t.running = true
	if err := t.wait(); err != nil {
		t.Kill()
		return nil, err
	}
	t.signal = 0 // the SIGTRAP of the exec
	t.shadow.whole = true
	return t, nil
}

func newTracer(pid, tid int) *Tracer {
	t := &Tracer{Patience: 2 * time.Second, pid: pid, tid: tid, mem: &Memory{pid: pid}}
	t.regions.pid = pid
	return t
}

func threadGroup(tid int) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0, fmt.Errorf("find the process of thread %d: %w", tid, err)
	}
	var pid int
	for line := range splitLines(string(b)) {
		if n, _ := fmt.Sscanf(line, "Tgid:\t%d", &pid); n == 1 {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("find the process of thread %d: no Tgid in its status", tid)
}

// PID returns the id of the process that the thread belongs to.
func (t *Tracer) PID() int { return t.pid }

// TID returns the id of the thread that is stepped.
func (t *Tracer) TID() int { return t.tid }

// Steps returns how many instructions have been executed.
func (t *Tracer) Steps() uint64 { return t.steps }

// Executed returns what the last step executed.
func (t *Tracer) Executed() Instruction { return t.executed }

// Memory returns the reader of the process as it is now.
func (t *Tracer) Memory() *Memory { return t.mem }

// PC returns the address of the instruction that will be executed next.
func (t *Tracer) PC() uint64 { return t.regs.Rip }

// SP returns the stack pointer.
func (t *Tracer) SP() uint64 { return t.regs.Rsp }

// ThreadPointer returns the base of the thread's own storage, from the FS register.
func (t *Tracer) ThreadPointer() uint64 { return t.regs.Fs_base }

// Regs returns the thread's registers, before the instruction at their PC.
func (t *Tracer) Regs() cpu.Registers {
	r := &t.regs
	out := cpu.Registers{PC: r.Rip, Known: 1<<16 - 1, Arch: cpu.AMD64, Flags: r.Eflags, FlagsKnown: true}
	out.R = [cpu.NumRegs]uint64{
		cpu.RAX: r.Rax, cpu.RDX: r.Rdx, cpu.RCX: r.Rcx, cpu.RBX: r.Rbx,
		cpu.RSI: r.Rsi, cpu.RDI: r.Rdi, cpu.RBP: r.Rbp, cpu.RSP: r.Rsp,
		cpu.R8: r.R8, cpu.R9: r.R9, cpu.R10: r.R10, cpu.R11: r.R11,
		cpu.R12: r.R12, cpu.R13: r.R13, cpu.R14: r.R14, cpu.R15: r.R15,
	}
	return out
}

// Step executes one instruction and updates the shadow stack.
func (t *Tracer) Step() error {
	before := t.regs
	delivered := t.signal
	if !t.running {
		t.executed = Instruction{PC: before.Rip}
		t.mem.readSome(t.executed.Bytes[:], before.Rip)
		t.executed.Call = isCall(t.executed.Bytes[:])
		t.executed.Ret = isRet(t.executed.Bytes[:])
		_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(t.tid), 0, uintptr(t.signal), 0, 0)
		if e == unix.ESRCH {
			return ErrExited
		}
		if e != 0 {
			return fmt.Errorf("ptrace singlestep thread %d: %w", t.tid, e)
		}
		t.signal = 0
		t.running = true
		t.prompt = t.executed.Bytes[0] != 0x0f || t.executed.Bytes[1] != 0x05
	} else {
		delivered = 0
	}
	if err := t.wait(); err != nil {
		return err
	}
	t.steps++
	t.follow(&before, delivered)
	return nil
}

// waitsFor bounds the time for which Continue lets the thread run, in multiples of d: it may wait
// for something, or for a CPU.
const waitsFor = 20

// Continue lets the thread run freely for d and stops it again. The shadow stack is cleared. If
// other processes use the CPUs, the thread continues until it has run for half of d, so that it is
// not stopped again at the same place.
func (t *Tracer) Continue(d time.Duration) error {
	before := t.Ran()
	for n := 0; n == 0 || n < waitsFor && before > 0 && t.Ran()-before < d/2; n++ {
		if err := t.runFor(d); err != nil {
			return err
		}
	}
	t.shadow = shadow{}
	if !t.running {
		return nil // a signal has just stopped it
	}
	if t.cmd != nil {
		// A thread that asked to be traced cannot be interrupted, but it can be stopped. It never
		// sees the signal itself.
		if err := unix.Tgkill(t.pid, t.tid, unix.SIGSTOP); err != nil {
			return fmt.Errorf("stop thread %d: %w", t.tid, err)
		}
		err := t.wait()
		if t.signal == int(unix.SIGSTOP) {
			t.signal = 0
		}
		return err
	}
	return t.interrupt()
}

// runFor lets the thread run for d. Each of its signals stops it and is delivered when it
// continues: Java threads have many, by which they detect null and reach safepoints.
func (t *Tracer) runFor(d time.Duration) error {
	patience := t.Patience
	defer func() { t.Patience = patience }()
	for end := time.Now().Add(d); ; {
		t.Patience = max(time.Until(end), 0)
		again := t.resume
		if t.running {
			again = t.wait
		}
		switch err := again(); {
		case errors.Is(err, ErrBlocked):
			return nil
		case err != nil:
			return err
		case time.Now().After(end):
			return nil
		}
	}
}

// Ran returns for how long the thread has run, 0 if the kernel does not report it.
func (t *Tracer) Ran() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", t.tid))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), " ")
	n, _ := strconv.ParseInt(first, 10, 64)
	return time.Duration(n)
}

// RunToTrap lets the thread run freely until it executes a breakpoint instruction (int3) that the
// program itself contains, or gets a signal. The shadow stack is cleared.
func (t *Tracer) RunToTrap() error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_CONT, uintptr(t.tid), 0, uintptr(t.signal), 0, 0); e != 0 {
		return fmt.Errorf("ptrace continue thread %d: %w", t.tid, e)
	}
	t.signal = 0
	t.running, t.prompt = true, false
	t.shadow = shadow{}
	return t.wait()
}

// Pin makes the thread and the calling OS thread share one CPU, so that a step needs no other CPU
// to be woken: stepping is up to twice as fast. The calling thread stays pinned; if a goroutine
// ends while it is locked to the thread, the thread ends with it.
func (t *Tracer) Pin() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("read the CPUs that may be used: %w", err)
	}
	var one unix.CPUSet
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) && (one.Count() == 0 || cpu%2 == os.Getpid()%2) {
			one.Zero()
			one.Set(cpu)
		}
	}
	for _, tid := range []int{0, t.tid} {
		if err := unix.SchedSetaffinity(tid, &one); err != nil {
			return fmt.Errorf("pin thread %d to one CPU: %w", tid, err)
		}
	}
	return nil
}

// wait waits for the stop at the end of a step, and reads the registers.
func (t *Tracer) wait() error {
	var ws unix.WaitStatus
	deadline := time.Time{}
	for try := 0; ; try++ {
		// Only a system call can take long; anything else is waited for without polling, which is
		// several times faster.
		options := unix.WALL | unix.WNOHANG
		if t.prompt {
			options = unix.WALL
		}
		got, err := unix.Wait4(t.tid, &ws, options, nil)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ECHILD {
			return ErrExited
		}
		if err != nil {
			return fmt.Errorf("wait for thread %d: %w", t.tid, err)
		}
		if got == t.tid {
			break
		}
		switch {
		case try < 50:
		case try < 200:
			runtime.Gosched()
		default:
			now := time.Now()
			if deadline.IsZero() {
				deadline = now.Add(t.Patience)
			} else if now.After(deadline) {
				return ErrBlocked
			}
			time.Sleep(20 * time.Microsecond)
		}
	}
	t.running = false
	if ws.Exited() || ws.Signaled() {
		return ErrExited
	}
	if ws.Stopped() && ws.StopSignal() != unix.SIGTRAP && ws.TrapCause() <= 0 {
		t.signal = int(ws.StopSignal())
		// A group stop or the stop of a seize carries an event above the signal.
		if int(ws)>>16 != 0 {
			t.signal = 0
		}
	}
	if err := unix.PtraceGetRegs(t.tid, &t.regs); err != nil {
		return fmt.Errorf("read the registers of thread %d: %w", t.tid, err)
	}
	return nil
}

// Detach lets the thread run on. It must be called before the process is killed and waited for by
// other means: a traced thread that has ended keeps its process from ending until its tracer has
// waited for it.
func (t *Tracer) Detach() error {
	if t.running {
		err := t.wait()
		if errors.Is(err, ErrBlocked) && t.cmd == nil {
			err = t.interrupt()
		}
		if err != nil {
			t.abandon()
			return err
		}
	}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(t.tid), 0, uintptr(t.signal), 0, 0)
	if e != 0 {
		return fmt.Errorf("ptrace detach thread %d: %w", t.tid, e)
	}
	return nil
}

// Kill ends the process; it is for programs that Start launched.
func (t *Tracer) Kill() {
	_ = unix.Kill(t.pid, unix.SIGKILL)
	if t.cmd != nil {
		_ = t.cmd.Wait()
	}
}
