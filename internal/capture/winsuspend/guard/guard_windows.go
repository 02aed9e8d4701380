package guard

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

func init() {
	if len(os.Args) == 4 && os.Args[1] == Name {
		os.Exit(watch(os.Args[2], os.Args[3]))
	}
}

var (
	kernel32   = syscall.NewLazyDLL("kernel32.dll")
	openThread = kernel32.NewProc("OpenThread")
	suspend    = kernel32.NewProc("SuspendThread")
	resume     = kernel32.NewProc("ResumeThread")
	processOf  = kernel32.NewProc("GetProcessIdOfThread")
	times      = kernel32.NewProc("GetThreadTimes")
	mapView    = kernel32.NewProc("MapViewOfFile")
)

// watch waits for the end of candid and resumes the thread that it had suspended.
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
	p.Ready = 1
	if ev, err := syscall.WaitForSingleObject(syscall.Handle(process), syscall.INFINITE); err != nil || ev != syscall.WAIT_OBJECT_0 {
		return 1
	}
	return p.letGo()
}

// letGo resumes the thread that is suspended, if there is one.
func (p *Page) letGo() int {
	if p.State == Free {
		return 0
	}
	const rights = 0x0002 | 0x0040 // THREAD_SUSPEND_RESUME, THREAD_QUERY_INFORMATION
	th, _, _ := openThread.Call(rights, 0, uintptr(p.tid))
	if th == 0 {
		return 0 // it has ended
	}
	var created, exit, kernel, user int64
	times.Call(th, uintptr(unsafe.Pointer(&created)), uintptr(unsafe.Pointer(&exit)), uintptr(unsafe.Pointer(&kernel)), uintptr(unsafe.Pointer(&user)))
	if pid, _, _ := processOf.Call(th); uint32(pid) != p.pid || created != p.created {
		return 0 // the id is another thread's by now
	}
	if p.State != Suspended {
		// Whether candid's last call was made is known by how often the thread is suspended.
		n, _, _ := suspend.Call(th)
		if int32(n) < 0 {
			return 1
		}
		resume.Call(th)
		if uint32(n) <= p.before {
			return 0
		}
	}
	resume.Call(th)
	return 0
}
