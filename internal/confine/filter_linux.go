//go:build amd64 || arm64

package confine

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The actions of the filter on a system call.
const (
	deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	allow = unix.SECCOMP_RET_ALLOW
)

// Instructions of classic BPF (include/uapi/linux/filter.h).
const (
	load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	ret   = unix.BPF_RET | unix.BPF_K
)

// Offsets in struct seccomp_data (include/uapi/linux/seccomp.h).
const (
	atNumber, atArch, atArguments = 0, 4, 16

	x32 = 0x40000000 // __X32_SYSCALL_BIT: the same calls under other numbers
)

// program is a part of a filter.
type program []unix.SockFilter

// argument loads the lower half of an argument of the call. The kernel itself looks at no more of a
// request of ptrace or a command of bpf that there is.
func (p *program) argument(n uint32) {
	*p = append(*p, unix.SockFilter{Code: load, K: atArguments + 8*n})
}

// when does something with the call if what was loaded is v, unless if it is anything else.
func (p *program) when(v, what uint32) {
	*p = append(*p, unix.SockFilter{Code: equal, Jf: 1, K: v}, unix.SockFilter{Code: ret, K: what})
}

func (p *program) unless(v, what uint32) {
	*p = append(*p, unix.SockFilter{Code: equal, Jt: 1, K: v}, unix.SockFilter{Code: ret, K: what})
}

func (p *program) do(what uint32) { *p = append(*p, unix.SockFilter{Code: ret, K: what}) }

// call adds what becomes of one call, whose number is loaded. All of it ends with do.
func (p *program) call(number uint32, what func(*program)) {
	var body program
	what(&body)
	*p = append(*p, unix.SockFilter{Code: equal, Jf: uint8(len(body)), K: number})
	*p = append(*p, body...)
}

// refusing returns a filter that refuses calls, and those of other architectures, with EPERM. first
// comes before them: what is called often.
func refusing(calls []uint32, first ...unix.SockFilter) []unix.SockFilter {
	p := program{{Code: load, K: atArch}}
	p.unless(auditArch, deny)
	p = append(p, unix.SockFilter{Code: load, K: atNumber}, unix.SockFilter{Code: least, Jf: 1, K: x32})
	p.do(deny)
	p = append(p, first...)
	for _, c := range calls {
		p.when(c, deny)
	}
	p.do(allow)
	return p
}

// noNewPrivileges calls f on a thread on which, and on all threads and programs that are started from
// it, no program that is executed gains privileges any more. f is not called if the kernel cannot do
// that.
func noNewPrivileges(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == nil {
		f()
	}
}

// install installs a filter on all threads, the other ones also getting no_new_privs. No thread has to
// take part.
func install(filter []unix.SockFilter) {
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	const all = unix.SECCOMP_FILTER_FLAG_TSYNC
	// Before Linux 5.16 a filter also turned a mitigation on that slows down the whole process; it is
	// for filtered programs that run others' code.
	for _, flags := range []uintptr{all | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, all} {
		if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&p))); errno != unix.EINVAL {
			break
		}
	}
	runtime.KeepAlive(filter)
}
