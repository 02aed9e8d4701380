package winsuspend

import (
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

var ntdll = windows.NewLazySystemDLL("ntdll.dll")

func equalFold(a, b string) bool { return strings.EqualFold(a, b) }

var offsets = sync.OnceValue(waitOffsets)

// holds reports whether a thread at pc is in a call that waits.
func (w *waitCalls) holds(p *process, pc uint64) bool {
	if w.base == 0 {
		if w.find(p); w.base == 0 {
			return false
		}
	}
	return pc-w.base < w.size && offsets()[pc-w.base]
}

// newStateChange makes the object by which a thread is suspended until its handle is closed; 0 where
// there is none (before Windows 11 and Server 2022).
func newStateChange(thread windows.Handle) windows.Handle {
	const all = 0x1f0001 // THREAD_STATE_ALL_ACCESS
	create := ntdll.NewProc("NtCreateThreadStateChange")
	if create.Find() != nil {
		return 0
	}
	var h windows.Handle
	st, _, _ := create.Call(uintptr(unsafe.Pointer(&h)), all, 0, uintptr(thread), 0)
	if int32(st) < 0 {
		return 0
	}
	return h
}

// haveStateChange reports whether the system has such objects.
func haveStateChange() bool {
	if ntdll.NewProc("NtChangeThreadState").Find() != nil {
		return false
	}
	self, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME|windows.THREAD_QUERY_INFORMATION, false, windows.GetCurrentThreadId())
	if err != nil {
		return false
	}
	defer windows.CloseHandle(self)
	h := newStateChange(self)
	if h != 0 {
		windows.CloseHandle(h)
	}
	return h != 0
}
