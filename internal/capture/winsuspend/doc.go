// Package winsuspend is the engine of Windows: a thread that has run lately is suspended, its
// registers and its stack are copied, and it is resumed. Walking happens later, on the copy.
//
// Between suspending and resuming there are two system calls and nothing else, or five if a goroutine's
// stack is copied too: a few instructions of assembly make all calls, so that neither Go's scheduler
// nor its collector, nor a lock of the process that is looked at, can come between
// (stop_windows_amd64.s).
//
// candid may be ended at any instant, and no thread stays suspended. Windows 11 and Server 2022 have
// an object for that, the thread state change: when the handle of it is closed, as it is when candid
// ends, the kernel resumes the thread. Elsewhere a second process of candid's, package guard, shares
// a page of memory with it in which the thread is named, waits for candid's end, and resumes the
// thread if that was necessary. It also resumes a thread that stands for some 20 ms, because candid
// got no CPU.
//
// A thread's samples weigh what it has run. Where the kernel counts that in ticks of 10 to 16 ms (in
// Wine) the samples wait until the next tick is counted and share it (weigh.go).
package winsuspend
