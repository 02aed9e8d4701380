package guard

import (
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

func init() {
	if len(os.Args) == 4 && os.Args[1] == Name {
		os.Exit(watch(os.Args[2], os.Args[3]))
	}
}

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	openThread   = kernel32.NewProc("OpenThread")
	suspend      = kernel32.NewProc("SuspendThread")
	resume       = kernel32.NewProc("ResumeThread")
	processOf    = kernel32.NewProc("GetProcessIdOfThread")
	times        = kernel32.NewProc("GetThreadTimes")
	mapView      = kernel32.NewProc("MapViewOfFile")
	setPriority  = kernel32.NewProc("SetThreadPriority")
	self         = kernel32.NewProc("GetCurrentThread")
	queryCounter = kernel32.NewProc("QueryPerformanceCounter")
	queryThread  = syscall.NewLazyDLL("ntdll.dll").NewProc("NtQueryInformationThread")
)

// watch lets go of threads that stand for long, and when candid ends of the one that it had suspended.
func watch(page, candid string) int {
	mapping, err := strconv.ParseUint(page, 10, 64)
	if err != nil {
		return 2
	}
	process, err := strconv.ParseUint(candid, 10, 64)
	if err != nil {
		return 2
	}
	const readAndWrite = 2 | 4
	view, _, _ := mapView.Call(uintptr(mapping), readAndWrite, 0, 0, unsafe.Sizeof(Page{}))
	if view == 0 {
		return 1
	}
	p := *(**Page)(unsafe.Pointer(&view))
	const timeCritical = 15
	me, _, _ := self.Call()
	setPriority.Call(me, timeCritical)
	p.Ready = 1
	for w := (patrol{}); ; w.look(p, p.open, counter) {
		ev, err := syscall.WaitForSingleObject(syscall.Handle(process), uint32(LongStop.Milliseconds()))
		switch {
		case err == nil && ev == syscall.WAIT_OBJECT_0:
			p.letGo()
			return 0
		case err != nil || ev != syscall.WAIT_TIMEOUT:
			return 1
		}
	}
}

func counter() (n uint64) {
	queryCounter.Call(uintptr(unsafe.Pointer(&n)))
	return n
}

// handle is a thread's.
type handle uintptr

// open opens the thread that the page names. It is nil if the thread has ended.
func (p *Page) open() victim {
	const rights = 0x0002 | 0x0040 // THREAD_SUSPEND_RESUME, THREAD_QUERY_INFORMATION
	th, _, _ := openThread.Call(rights, 0, uintptr(p.tid))
	if th == 0 {
		return nil
	}
	var created, exit, kernel, user int64
	times.Call(th, uintptr(unsafe.Pointer(&created)), uintptr(unsafe.Pointer(&exit)), uintptr(unsafe.Pointer(&kernel)), uintptr(unsafe.Pointer(&user)))
	if pid, _, _ := processOf.Call(th); uint32(pid) != p.pid || created != p.created {
		handle(th).close()
		return nil // the id is another thread's by now
	}
	return handle(th)
}

func (h handle) close() { _ = syscall.CloseHandle(syscall.Handle(h)) }

// count returns how often the thread is suspended.
func (h handle) count() (n uint32, ok bool) {
	const suspendCount = 35 // ThreadSuspendCount, since Windows 8.1
	if st, _, _ := queryThread.Call(uintptr(h), suspendCount, uintptr(unsafe.Pointer(&n)), unsafe.Sizeof(n), 0); st == 0 {
		return n, true
	}
	was, _, _ := suspend.Call(uintptr(h))
	if int32(was) < 0 {
		return 0, false
	}
	resume.Call(uintptr(h))
	return uint32(was), true
}

func (h handle) resume() (was uint32, ok bool) {
	r, _, _ := resume.Call(uintptr(h))
	return uint32(r), int32(r) >= 0
}

// letGo resumes the thread that candid had suspended when it ended, if there is one.
func (p *Page) letGo() {
	now := phase(atomic.LoadUint64(&p.State))
	if now == Free || now == LetGo {
		return
	}
	th := p.open()
	if th == nil {
		return
	}
	defer th.close()
	if now != Suspended {
		// Whether candid's last call was made is known by how often the thread is suspended.
		if n, ok := th.count(); !ok || n <= p.before {
			return
		}
	}
	th.resume()
}
