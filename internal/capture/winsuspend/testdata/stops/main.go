//go:build windows

// Command stops measures for how long candid suspends a thread, and for how long the four system calls
// alone do, in turn: stops PID ROUNDS. It prints the 10th percentiles, medians and 99th percentiles of
// both, in ns, and how many bytes the last copy had.
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/candid-profiler/candid/internal/capture/winsuspend"
	"github.com/candid-profiler/candid/internal/winsys"
)

var (
	ntdll   = windows.NewLazySystemDLL("ntdll.dll")
	suspend = ntdll.NewProc("NtSuspendThread")
	resume  = ntdll.NewProc("NtResumeThread")
	context = ntdll.NewProc("NtGetContextThread")
	read    = ntdll.NewProc("NtReadVirtualMemory")
)

func main() {
	pid, _ := strconv.Atoi(os.Args[1])
	rounds, _ := strconv.Atoi(os.Args[2])
	var s winsys.Snapshot
	if err := s.Take(); err != nil {
		fail("%v", err)
	}
	info := s.Process(uint32(pid))
	if info == nil {
		fail("no process %d", pid)
	}
	busiest := slices.MaxFunc(info.Threads, func(a, b winsys.ThreadInfo) int { return int(a.CPU()/1e6) - int(b.CPU()/1e6) })
	stopper, err := winsuspend.NewStopper()
	if err != nil {
		fail("%v", err)
	}
	defer stopper.Close()
	thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME|windows.THREAD_GET_CONTEXT|windows.THREAD_QUERY_INFORMATION, false, busiest.TID)
	if err != nil {
		fail("open thread: %v", err)
	}
	process, err := windows.OpenProcess(windows.PROCESS_VM_READ, false, uint32(pid))
	if err != nil {
		fail("open process: %v", err)
	}
	var candid, alone []int64
	bytes := 0
	for range rounds {
		c, err := stopper.Copy(pid, busiest.TID)
		if err != nil {
			fail("%v", err)
		}
		candid, bytes = append(candid, int64(c.Stood)), len(c.Stack)
		alone = append(alone, calls(thread, process, c.StackTop))
	}
	at := func(list []int64, share float64) int64 {
		slices.Sort(list)
		return list[int(share*float64(len(list)-1))]
	}
	for _, share := range []float64{0.1, 0.5, 0.99} {
		fmt.Print(at(candid, share), " ", at(alone, share), " ")
	}
	fmt.Println(bytes)
}

var (
	raw    [1232 + 16]byte // CONTEXT (winnt.h)
	buffer [1 << 20]byte
)

// calls makes the four calls and returns how long they took, in ns.
func calls(thread, process windows.Handle, top uint64) int64 {
	const contextFlags, contextRSP, controlInteger = 0x30, 0x98, 0x100003
	at := -uintptr(unsafe.Pointer(&raw[0])) & 15
	regs := raw[at : at+1232]
	*(*uint32)(unsafe.Pointer(&regs[contextFlags])) = controlInteger
	var got uintptr
	begin := winsys.Clock()
	suspend.Call(uintptr(thread), 0)
	context.Call(uintptr(thread), uintptr(unsafe.Pointer(&regs[0])))
	if sp := *(*uint64)(unsafe.Pointer(&regs[contextRSP])); sp < top && top-sp <= uint64(len(buffer)) {
		read.Call(uintptr(process), uintptr(sp), uintptr(unsafe.Pointer(&buffer[0])), uintptr(top-sp), uintptr(unsafe.Pointer(&got)))
	}
	resume.Call(uintptr(thread), 0)
	return int64(winsys.Clock() - begin)
}

func fail(format string, args ...any) {
	fmt.Printf("FAIL "+format+"\n", args...)
	os.Exit(1)
}
