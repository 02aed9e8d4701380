package winsys

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	ntQueryInformationThread = ntdll.NewProc("NtQueryInformationThread")
	getThreadDescription     = kernel32.NewProc("GetThreadDescription")
	queryThreadCycleTime     = kernel32.NewProc("QueryThreadCycleTime")
	getThreadTimes           = kernel32.NewProc("GetThreadTimes")
)

// Classes of NtQueryInformationThread (phnt's ntpsapi.h).
const (
	threadBasicInformation  = 0
	threadStartAddress      = 9
	threadSuspendCount      = 35
	threadSystemInformation = 40 // SYSTEM_THREAD_INFORMATION
)

func queryThread(thread windows.Handle, class uintptr, to unsafe.Pointer, size uintptr) bool {
	st, _, _ := ntQueryInformationThread.Call(uintptr(thread), class, uintptr(to), size, 0)
	return st == 0
}

// TEB returns the address of a thread's environment block, 0 if it is not told.
func TEB(thread windows.Handle) uint64 {
	var b [6]uint64 // THREAD_BASIC_INFORMATION
	if !queryThread(thread, threadBasicInformation, unsafe.Pointer(&b), unsafe.Sizeof(b)) {
		return 0
	}
	return b[1]
}

// StartAddress returns where a thread's own code begins, 0 if it is not told.
func StartAddress(thread windows.Handle) uint64 {
	var a uint64
	if !queryThread(thread, threadStartAddress, unsafe.Pointer(&a), unsafe.Sizeof(a)) {
		return 0
	}
	return a
}

// SuspendCount returns how often a thread has been suspended and not resumed.
func SuspendCount(thread windows.Handle) (n uint32, ok bool) {
	ok = queryThread(thread, threadSuspendCount, unsafe.Pointer(&n), unsafe.Sizeof(n))
	return n, ok
}

// ThreadNow reads a single thread's times, switches and state; false where the system does not tell
// that, as before Windows 8.1 and in Wine.
func ThreadNow(thread windows.Handle) (t ThreadInfo, ok bool) {
	var b [threadHeader]byte
	if !queryThread(thread, threadSystemInformation, unsafe.Pointer(&b), unsafe.Sizeof(b)) {
		return t, false
	}
	return threadInfo(b[:]), true
}

// threadInfo decodes a SYSTEM_THREAD_INFORMATION.
func threadInfo(t []byte) ThreadInfo {
	le := binary.LittleEndian
	return ThreadInfo{
		Kernel: le.Uint64(t), User: le.Uint64(t[8:]), Created: int64(le.Uint64(t[0x10:])), Start: le.Uint64(t[0x20:]),
		TID: uint32(le.Uint64(t[0x30:])), Switches: le.Uint32(t[0x40:]), State: uint8(le.Uint32(t[0x44:])), Wait: uint8(le.Uint32(t[0x48:])),
	}
}

// Cycles returns how many cycles of the processor's time stamp counter a thread has run; false where
// the system does not count them, as in Wine.
func Cycles(thread windows.Handle) (n uint64, ok bool) {
	r, _, _ := queryThreadCycleTime.Call(uintptr(thread), uintptr(unsafe.Pointer(&n)))
	return n, r != 0
}

// ThreadTimes returns when a thread was created (FILETIME) and its time on a CPU in ns.
func ThreadTimes(thread windows.Handle) (created int64, cpu uint64, ok bool) {
	var c, e, k, u uint64
	r, _, _ := getThreadTimes.Call(uintptr(thread), uintptr(unsafe.Pointer(&c)), uintptr(unsafe.Pointer(&e)), uintptr(unsafe.Pointer(&k)), uintptr(unsafe.Pointer(&u)))
	return int64(c), 100 * (k + u), r != 0
}

// Description returns the name that the program gave a thread (SetThreadDescription), "" if none.
func Description(thread windows.Handle) string {
	if getThreadDescription.Find() != nil {
		return ""
	}
	var text *uint16
	r, _, _ := getThreadDescription.Call(uintptr(thread), uintptr(unsafe.Pointer(&text)))
	if int32(r) < 0 || text == nil {
		return ""
	}
	defer windows.LocalFree(windows.Handle(unsafe.Pointer(text)))
	return windows.UTF16PtrToString(text)
}
