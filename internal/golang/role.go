package golang

import (
	"strings"

	"github.com/candid-profiler/candid/internal/cpu"
)

// Role is what is special about a function.
type Role uint8

// The roles.
const (
	// Plain functions are entered by a call and end with a return.
	Plain Role = iota
	// First functions are the first of a goroutine or a thread.
	First
	// Start is code that is also run as the first of a new thread, in which case the words above it
	// on the stack are not a return address.
	Start
	// Switch functions switch to another stack, call, and come back. While they have a frame, the
	// frame pointer leads to it.
	Switch
	// Leave functions switch to another stack for good: their caller resumes at another time.
	Leave
	// Away functions have descheduled the goroutine that called on the thread's stack.
	Away
	// Enter is the function that resumes a goroutine.
	Enter
	// Injected functions were not called: a signal's handler made it look as if the interrupted
	// instruction had called them.
	Injected
	// Host functions are called by C and save the registers that C expects to be preserved.
	Host
	// Popped functions have taken their return address off the stack, into
	// a register.
	Popped
	// Trampoline is the code that a signal's handler returns to.
	Trampoline
)

// roles are the special functions, by name: the names have been stable since Go 1.5, while the
// runtime's numbers for them change with nearly each version.
var roles = map[string]Role{
	"runtime.goexit":               First,
	"runtime.mstart":               First,
	"runtime.rt0_go":               First,
	"runtime._rt0_go":              First,
	"_rt0_go":                      First,
	"runtime.clone":                Start,
	"runtime.systemstack":          Switch,
	"runtime.asmcgocall":           Switch,
	"runtime.asmcgocall_no_g":      Switch,
	"runtime.nanotime1":            Switch,
	"runtime.nanotime":             Switch,
	"runtime.walltime":             Switch,
	"runtime.walltime1":            Switch,
	"time.now":                     Switch,
	"runtime.vgetrandom1":          Switch,
	"runtime.callCgoSigaction":     Switch,
	"runtime.callCgoMmap":          Switch,
	"runtime.callCgoMunmap":        Switch,
	"runtime.sigfwd":               Switch,
	"runtime.mcall":                Leave,
	"runtime.morestack":            Leave,
	"runtime.schedule":             Away,
	"runtime.gopreempt_m":          Away,
	"runtime.preemptPark":          Away,
	"gogo":                         Enter,
	"runtime.gogo":                 Enter,
	"runtime.sigpanic":             Injected,
	"runtime.asyncPreempt":         Injected,
	"runtime.debugCallV1":          Injected,
	"runtime.debugCallV2":          Injected,
	"crosscall2":                   Host,
	"runtime.sigtramp":             Plain, // marked as a first function, but a signal's trampoline is above
	"runtime.cgoSigtramp":          Plain,
	"runtime.sigreturn":            Trampoline,
	"runtime.sigreturn__sigaction": Trampoline,
}

// byWindows are functions for Windows of which the table does not say enough: they align their stack
// pointer, or have frames without a saved frame pointer (sys_windows_amd64.s, asm_amd64.s).
var byWindows = map[string]bool{
	"runtime.asmstdcall":                          true,
	"internal/runtime/syscall/windows.asmstdcall": true,
	"runtime.asmcgocall_landingpad":               true,
	"runtime.tstart_stdcall":                      true,
	"runtime.callbackasm1":                        true,
	"runtime.sigtramp":                            true,
	"runtime.sehtramp":                            true,
	"runtime.exceptiontramp":                      true,
	"runtime.firstcontinuetramp":                  true,
	"runtime.lastcontinuetramp":                   true,
	"runtime.sigresume":                           true,
}

// topFrame is the flag of a function that is the first of its stack (internal/abi's
// FuncFlagTopFrame, since Go 1.17).
const topFrame = 1 << 0

// roleOf returns a function's role, from its name and flags.
func roleOf(name string, flags uint8) Role {
	if r, ok := roles[name]; ok {
		return r
	}
	// Programs start at _rt0_GOARCH_GOOS; the one with suffix _lib is called when a library is
	// loaded.
	if strings.HasPrefix(name, "_rt0_") && !strings.HasSuffix(name, "_lib") {
		return First
	}
	if flags&topFrame != 0 {
		return First
	}
	return Plain
}

// maxSpecial is longer than the name of any function with a role, in bytes.
const maxSpecial = 64

// Rule is how to step over a frame. Rules are shared: treat them as constants.
type Rule struct {
	// Size is the size of the frame at this instruction, in bytes, without the return address on
	// amd64.
	Size int32
	Role Role
	// Entry is the address of the function's first instruction in the file, for roles that need it;
	// else 0.
	Entry uint64
}

// Lookup returns the rule for the instruction at addr, nil if there is none. It may be called on a
// nil Table.
func (t *Table) Lookup(addr uint64) *Rule {
	if t == nil || !t.Covers(addr) {
		return nil
	}
	off := addr - t.text
	i, ok := t.function(off)
	if !ok {
		return nil
	}
	start, ok1 := t.start(t.r, i)
	f, ok2 := t.fields(t.r, t.r, i)
	if !ok1 || !ok2 {
		return nil
	}
	name := t.string(t.r, t.names+int64(f.name), maxSpecial)
	if t.windows && byWindows[name] {
		return nil
	}
	r := Rule{Role: roleOf(name, f.flags)}
	// Between vfork and exec the child would overwrite it.
	vfork := t.arch == cpu.AMD64 && name == "syscall.rawVforkSyscall"
	if r.Role == Switch {
		r.Entry = t.text + start
	}
	if r.Size, ok = t.value(f.pcsp, off-start); !ok {
		// Padding after a function, or code without frames such as the first
		// function of a program.
		if r.Role != First && r.Role != Trampoline {
			return nil
		}
		r.Size = 0
	}
	if r.Size == -8 && vfork {
		r = Rule{Role: Popped}
	}
	if r.Size < 0 || r.Size > maxFrame || r.Size&7 != 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.rules[r]; known != nil {
		return known
	}
	if len(t.rules) < maxRules {
		t.rules[r] = &r
	}
	return &r
}

// maxFrame is just above the largest frame in any Go program, runtime.call1073741824's;
// the walk allows much less.
const maxFrame = 1<<30 + 4096
