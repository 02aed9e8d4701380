package winsys

import (
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32 = windows.NewLazySystemDLL("kernel32.dll")
	ntdll    = windows.NewLazySystemDLL("ntdll.dll")

	queryCounter   = kernel32.NewProc("QueryPerformanceCounter")
	queryFrequency = kernel32.NewProc("QueryPerformanceFrequency")
)

var frequency = sync.OnceValue(func() uint64 {
	var f uint64
	queryFrequency.Call(uintptr(unsafe.Pointer(&f)))
	return max(f, 1)
})

// Clock returns the time of the performance counter in ns, which never goes back and is the same in
// all processes. It counts from about the time when the machine started.
func Clock() uint64 {
	var c uint64
	queryCounter.Call(uintptr(unsafe.Pointer(&c)))
	return CounterNS(c)
}

// CounterNS converts a value of the performance counter to ns.
func CounterNS(c uint64) uint64 {
	hi, lo := bits.Mul64(c, 1e9)
	ns, _ := bits.Div64(hi%frequency(), lo, frequency())
	return ns
}
