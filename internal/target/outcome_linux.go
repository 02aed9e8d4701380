package target

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// witnessSystem is what a Witness holds of a process on Linux.
type witnessSystem struct {
	dir   int // /proc/PID
	pidfd int // -1 before Linux 5.3
}

// Watch opens a process to find out how it ends; nil if there is none.
func Watch(pid int) *Witness {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	w := &Witness{PID: pid, sys: witnessSystem{dir: dir, pidfd: -1}}
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		w.sys.pidfd = fd
		// The id may have been reused between the two.
		if _, err := w.stat(); err != nil {
			w.Close()
			return nil
		}
	}
	return w
}

// Close releases the process.
func (w *Witness) Close() {
	if w == nil {
		return
	}
	unix.Close(w.sys.dir)
	if w.sys.pidfd >= 0 {
		unix.Close(w.sys.pidfd)
	}
	w.sys = witnessSystem{dir: -1, pidfd: -1}
}

// Tell sets the outcome that another observer has seen, such as an engine.
func (w *Witness) Tell(o Outcome) { w.told = o }

// Ended reports whether the process has ended, and how if that can be found out. If it cannot, it
// retries for as long as patience: between being a zombie and being gone nobody is told.
func (w *Witness) Ended(patience time.Duration) (o Outcome, over bool) {
	if w.told.Known {
		return w.told, true
	}
	if w.sys.pidfd >= 0 && !ended(w.sys.pidfd) {
		return Outcome{}, false
	}
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		if o, over = w.look(); !over || o.Known || time.Since(begin) >= patience {
			return o, over
		}
	}
}

// look checks once. A zombie shows the status that its parent will read; once the parent has read
// it, a pidfd that was opened before does.
func (w *Witness) look() (o Outcome, over bool) {
	raw, err := w.stat()
	if err != nil {
		return exitInfo(w.sys.pidfd), true
	}
	st, ok := parseStat(raw)
	if !ok || st.State != 'Z' && st.State != 'X' && st.State != 'x' {
		return Outcome{}, w.sys.pidfd >= 0 // then the pidfd has been asked
	}
	if w.sys.pidfd < 0 && st.Threads > 1 {
		return Outcome{}, false // only its first thread has ended
	}
	// The kernel shows 0 to a process that may not examine this one. candid was allowed to when it
	// attached, unless the process has changed its user since.
	if status, ok := exitStatus(raw); ok {
		return OutcomeOf(status), true
	}
	return Outcome{}, true
}

func (w *Witness) stat() ([]byte, error) {
	fd, err := unix.Openat(w.sys.dir, "stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 2048)
	n, err := readFull(fd, buf)
	if err == nil && n == 0 {
		err = errors.New("empty")
	}
	return buf[:n], err
}

// exitStatus returns the last field of /proc/PID/stat, the 52nd (since Linux 3.5).
func exitStatus(stat []byte) (uint32, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 50 {
		return 0, false
	}
	n, ok := decimal(fields[49])
	return uint32(n), ok && n <= 0xffff
}

// pidfdInfo is struct pidfd_info of include/uapi/linux/pidfd.h in its first version, which later
// kernels accept too.
type pidfdInfo struct {
	mask, cgroup                                                            uint64
	pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid, exit uint32
}

const (
	pidfdGetInfo  = 3<<30 | uint(unsafe.Sizeof(pidfdInfo{}))<<16 | 0xff<<8 | 11 // _IOWR(0xff, 11, struct pidfd_info)
	pidfdInfoExit = 1 << 3
)

// exitInfo asks a pidfd how a process that has been reaped ended.
func exitInfo(pidfd int) Outcome {
	if pidfd < 0 {
		return Outcome{}
	}
	info := pidfdInfo{mask: pidfdInfoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), uintptr(pidfdGetInfo), uintptr(unsafe.Pointer(&info)))
	if errno != 0 || info.mask&pidfdInfoExit == 0 {
		return Outcome{}
	}
	return OutcomeOf(info.exit)
}
