package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/candid-profiler/candid/internal/fileid"
	"github.com/candid-profiler/candid/internal/native"
	"github.com/candid-profiler/candid/internal/redact"
	"github.com/candid-profiler/candid/internal/runtimes"
	"github.com/candid-profiler/candid/internal/runtimes/supported"
	"github.com/candid-profiler/candid/internal/symbol"
	"github.com/candid-profiler/candid/internal/target"
)

// examiner examines one process.
type examiner struct {
	f      *facts
	p      *target.Process // nil if candid may not examine it
	t      *Target
	checks []Check
}

func (e *examiner) add(c Check) {
	c.Group = groupTarget
	e.checks = append(e.checks, c)
}

// target examines the process. denied is why candid may not open it, nil if it may.
func (e *examiner) target(pid int, denied error) {
	e.t = &Target{PID: pid, NamespacePID: pid, UID: -1, Runtime: "unknown", Modules: []Module{}}
	if denied != nil {
		// Everyone may read the command line, unless /proc hides it.
		if s, err := readSmall(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
			e.t.Command = printable(redact.Command(strings.Split(strings.TrimRight(s, "\x00"), "\x00")))
		}
		e.denied(denied)
		return
	}
	p := e.p
	e.t.NamespacePID, e.t.UID = p.NamespacePID(), p.UID()
	e.t.Command = printable(redact.Command(p.Cmdline()))
	if e.t.Command == "" {
		e.t.Command = printable(p.Comm())
	}
	if threads, err := p.Threads(); err == nil {
		e.t.Threads = len(threads)
	}
	e.add(Check{ID: "target.access", Name: "access", State: OK, Seen: "permitted", Means: "runs as " + userName(e.t.UID) + "; its memory can be read"})
	e.add(e.checkRead())
	e.add(e.checkPlace())
	e.runtime()
	e.modules()
}

func (e *examiner) denied(err error) {
	c := Check{ID: "target.access", Name: "access", State: No, Seen: printable(errText(err)), Means: "candid cannot look into it"}
	var access *target.AccessError
	if errors.As(err, &access) {
		e.t.UID = access.UID
		c.Seen = access.Reason.String()
		switch access.Reason {
		case target.ReasonOtherUser:
			c.Seen = "it runs as " + userName(access.UID) + ", candid as " + e.f.user
			if c.Fix = e.f.grant(); !e.f.noNewPrivs && !e.f.inContainer() && e.f.uid != 0 {
				c.Fix = &Fix{fmt.Sprintf("sudo %s record -p %d", shellQuote(e.f.self), e.t.PID), "this process can be recorded"}
			}
		case target.ReasonYama:
			c.Fix = &Fix{"sudo sysctl kernel.yama.ptrace_scope=0", "users may read their own running processes"}
		case target.ReasonHidden:
			c.Fix = &Fix{"sudo mount -o remount,hidepid=0 /proc", "processes of other users are shown"}
		case target.ReasonCapabilities:
			c.Fix = e.f.grant()
		}
	}
	e.add(c)
}

// checkRead reads the target's memory with the cheapest system call.
func (e *examiner) checkRead() Check {
	c := Check{ID: "target.process_vm_readv", Name: "process_vm_readv", State: OK, Seen: "works", Means: "its memory is read without stopping it"}
	var b [1]byte
	local := unix.Iovec{Base: &b[0]}
	local.SetLen(1)
	// Nothing is mapped at 0: the permission is checked before the address.
	_, err := unix.ProcessVMReadv(e.p.PID, []unix.Iovec{local}, []unix.RemoteIovec{{Base: 0, Len: 1}}, 0)
	if err != nil && err != unix.EFAULT {
		c.State, c.Seen, c.Means = Limited, err.Error(), "/proc/PID/mem is read instead, which takes more calls"
	}
	return c
}

// checkPlace reports whether the target is in a container of its own.
func (e *examiner) checkPlace() Check {
	c := Check{ID: "target.namespaces", Name: "namespaces", State: OK, Seen: "same as candid's", Means: "pids and paths mean the same to both"}
	var differ []string
	for _, kind := range []string{"pid", "mnt", "user"} {
		own, err1 := namespace("self", kind)
		its, err2 := namespace(strconv.Itoa(e.p.PID), kind)
		if err1 == nil && err2 == nil && own != its {
			differ = append(differ, map[string]string{"pid": "pid", "mnt": "mount", "user": "user"}[kind])
		}
	}
	if len(differ) > 0 {
		c.Seen = "its own: " + strings.Join(differ, ", ")
		c.Means = "files are read through /proc/PID/root"
		if e.t.NamespacePID != e.t.PID {
			c.Means += fmt.Sprintf("; it calls itself process %d", e.t.NamespacePID)
		}
	}
	return c
}

// runtime examines the program's language runtime.
func (e *examiner) runtime() {
	c := Check{ID: "target.runtime", Name: "runtime", State: OK}
	rt, err := runtimes.Of(e.p)
	if err != nil {
		c.State, c.Seen, c.Means = Limited, "unknown", "not recognised: "+printable(errText(err))
		e.add(c)
		return
	}
	e.t.Runtime = printable(rt.String())
	c.Seen = e.t.Runtime
	if r := supported.Of(rt.Kind); r != nil {
		e.instance(r, c)
		return
	}
	switch rt.Kind {
	case runtimes.Go:
		c.Means = "functions and lines come from Go's own tables"
	case runtimes.Native, runtimes.Unknown, runtimes.NativeImage, runtimes.NativeAOT:
		c.Means = "machine code from files: see the symbols below"
	default:
		c.State = Limited
		c.Means = "only the runtime's own code is named, not the functions of the program that it runs"
	}
	e.add(c)
}

// instance examines a runtime that candid knows.
func (e *examiner) instance(r *runtimes.Runtime, c Check) {
	code, _ := native.New(e.p, native.NewFiles()) // without it a runtime that needs it is not found
	i, err := r.Finder().Open(e.p, code)
	if err != nil {
		c.State, c.Means = Limited, fmt.Sprintf("its %s cannot be named: %s", r.Functions, printable(errText(err)))
		if errors.Is(err, runtimes.ErrNotReady) {
			c.Means = "it is still starting; record waits for it"
		}
		e.add(c)
		return
	}
	if title := i.Title(); title != "" {
		e.t.Runtime = printable(title)
	}
	c.Seen, c.Means = e.t.Runtime, r.Means
	vm, configured := i.(runtimes.Configured)
	if notes := i.Notes(); len(notes) > 0 && !configured {
		c.State, c.Means = Limited, printable(notes[0])
	}
	e.add(c)
	if configured {
		e.jvm(vm)
	}
}

// jvm examines the flags of a Java VM.
func (e *examiner) jvm(vm runtimes.Configured) {
	j := &JVM{Release: printable(vm.Release()), GC: vm.GC(), Flags: map[string]string{}, Notes: []string{}}
	for _, n := range vm.Notes() {
		j.Notes = append(j.Notes, printable(n))
	}
	for _, name := range []string{"DebugNonSafepoints", "PreserveFramePointer", "Inline", "TieredCompilation", "UseJVMCICompiler", "MaxInlineLevel"} {
		if v, ok := vm.Flag(name); ok {
			j.Flags[name] = v
		}
	}
	e.t.JVM = j
	e.checks = append(e.checks, jvmChecks(j)...)
}

func userName(uid int) string {
	if uid < 0 {
		return "an unknown user"
	}
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return fmt.Sprintf("%s (uid %d)", printable(u.Username), uid)
	}
	return "uid " + id
}

// printable makes text from a target safe to show, on one line.
func printable(s string) string {
	return strings.Join(strings.Fields(symbol.Printable(s)), " ")
}

// modules examines the files whose code is mapped.
func (e *examiner) modules() {
	all, err := e.p.Modules()
	if err != nil {
		e.add(Check{ID: "target.symbols", Name: "symbols", State: Limited, Seen: "unknown", Means: "its modules cannot be read: " + printable(errText(err))})
		return
	}
	seen := map[fileid.ID]bool{}
	var paths []string
	for _, m := range all {
		if m.VDSO() || seen[m.ID()] || len(e.t.Modules) >= maxModules {
			continue
		}
		seen[m.ID()] = true
		row := e.module(m)
		e.t.Modules = append(e.t.Modules, row)
		if row.State != OK {
			paths = append(paths, m.Path)
		}
	}
	own, err1 := namespace("self", "mnt")
	its, err2 := namespace(strconv.Itoa(e.p.PID), "mnt")
	if err1 == nil && err2 == nil && own == its {
		// In another mount namespace the packages would be other ones.
		owners := owners(os.DirFS("/"), paths)
		for i := range e.t.Modules {
			if m := &e.t.Modules[i]; m.State != OK {
				m.Package = debugPackage(owners[m.Path])
			}
		}
	}
	e.checks = append(e.checks, symbolCheck(e.t.Modules))
}

// maxModules bounds the list; a large desktop program has some hundreds.
const maxModules = 1024
