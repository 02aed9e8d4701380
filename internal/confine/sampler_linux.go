//go:build amd64 || arm64

package confine

import (
	"slices"

	"golang.org/x/sys/unix"
)

const (
	ptraces = 1 << unix.CAP_SYS_PTRACE
	admin   = 1 << unix.CAP_SYS_ADMIN
	// instead are the capabilities that have taken the place of CAP_SYS_ADMIN, since Linux 5.8 and 5.9:
	// for perf events and BPF programs, and for /proc/PID/map_files.
	instead = 1<<unix.CAP_PERFMON | 1<<unix.CAP_BPF | 1<<unix.CAP_CHECKPOINT_RESTORE
	// looks are the capabilities that looking at other users' processes takes: their memory and files,
	// buffers for perf events beyond the limit, and candid's own nice level.
	looks = files | instead | ptraces | 1<<unix.CAP_IPC_LOCK | 1<<unix.CAP_SYS_NICE
)

// Kept returns which of the capabilities that are held are kept.
func (s Sampler) Kept(held uint64) uint64 {
	if held&ptraces == 0 {
		// Then only processes may be looked at that hold no capability which candid does not
		// (cap_ptrace_access_check in security/commoncap.c).
		return held
	}
	keep := uint64(looks)
	if s.Launched {
		keep |= 1 << unix.CAP_KILL
	}
	if s.Agent {
		keep |= 1 << unix.CAP_NET_BIND_SERVICE
	}
	if s.Admin || held&instead != instead {
		keep |= admin
	}
	return held & keep
}

// Attach gives up for good all capabilities that looking at other processes does not take, as long as
// these are running. It has to be called before anything of them is read, because a read may not
// return (package vmread), and after a program has been launched, which is to have all.
func (s Sampler) Attach() { reduce(s.Kept, s.Agent) }

// Attached has every system call refused from then on that the process does not make: those that
// change other processes or the machine, and, unless s says otherwise, starting programs and loading
// BPF programs. What was started before keeps what it has. ready is called just before, when nothing
// that is started gains privileges any more, and may be nil; if it fails, no call is refused, and its
// error is returned.
func (s Sampler) Attached(ready func() error) (err error) {
	noNewPrivileges(func() {
		if ready != nil {
			if err = ready(); err != nil {
				return
			}
		}
		install(s.filter())
	})
	return err
}

// traces are the requests of ptrace that candid makes; all others, which change a thread's memory or
// registers or attach with a signal, are refused. The one that changes a register is looked at more
// closely (poke).
var traces = []uint32{unix.PTRACE_SEIZE, unix.PTRACE_INTERRUPT, unix.PTRACE_DETACH, unix.PTRACE_GETREGSET, unix.PTRACE_GETSIGINFO}

// The commands of bpf that load something or get hold of what others have loaded
// (include/uapi/linux/bpf.h).
var loads = []uint32{
	unix.BPF_MAP_CREATE, unix.BPF_PROG_LOAD, unix.BPF_BTF_LOAD, unix.BPF_OBJ_PIN, unix.BPF_OBJ_GET, unix.BPF_PROG_ATTACH, unix.BPF_PROG_DETACH,
	unix.BPF_RAW_TRACEPOINT_OPEN, unix.BPF_PROG_GET_FD_BY_ID, unix.BPF_MAP_GET_FD_BY_ID, unix.BPF_BTF_GET_FD_BY_ID, unix.BPF_LINK_GET_FD_BY_ID,
}

func (s Sampler) filter() []unix.SockFilter {
	var out program
	out.call(unix.SYS_PTRACE, func(p *program) {
		p.argument(0)
		for _, request := range traces {
			p.when(request, allow)
		}
		poke(p)
		p.do(deny)
	})
	if !s.Loads {
		out.call(unix.SYS_BPF, func(p *program) {
			p.argument(0)
			for _, command := range loads {
				p.when(command, deny)
			}
			p.do(allow)
		})
	}
	refused := samplerRefused
	if !s.Starts {
		refused = slices.Concat(starting, refused)
	}
	return refusing(refused, out...)
}
