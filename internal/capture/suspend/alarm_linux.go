package suspend

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// alarm is a timer that sends the reminder signal to one OS thread. A sampling thread sets it
// before it waits for a stop, so that it need not give up Go's P while it waits: see worker.await.
type alarm struct {
	id   int32
	made bool
}

// sigevent is the kernel's struct sigevent.
type sigevent struct {
	value  uint64
	signo  int32
	notify int32
	tid    int32
	_      [44]byte
}

// notifyThread is SIGEV_THREAD_ID: the signal goes to one thread.
const notifyThread = 4

// make makes the alarm of the calling OS thread. If the kernel refuses, set returns false.
func (a *alarm) make() {
	ev := sigevent{signo: int32(reminder), notify: notifyThread, tid: int32(unix.Gettid())}
	_, _, errno := unix.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ev)), uintptr(unsafe.Pointer(&a.id)))
	a.made = errno == 0
}

// set sends the reminder after first ns, and then every `every` ns; first 0 disarms it. It reports
// whether that succeeded.
func (a *alarm) set(first, every int64) bool {
	if !a.made {
		return false
	}
	its := struct{ every, first unix.Timespec }{unix.NsecToTimespec(every), unix.NsecToTimespec(first)}
	_, _, errno := unix.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(a.id), 0, uintptr(unsafe.Pointer(&its)), 0, 0, 0)
	return errno == 0
}

// delete deletes the timer.
func (a *alarm) delete() {
	if a.made {
		a.made = false
		_, _, _ = unix.RawSyscall(unix.SYS_TIMER_DELETE, uintptr(a.id), 0, 0)
	}
}
