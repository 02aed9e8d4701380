// Package suspend is the engine for Linux systems that permit no perf events:
// it stops a thread with ptrace for as long as it takes to copy its registers
// and its stack, and lets it go at once.
//
// An interrupted thread must not notice. Many system calls (epoll_wait, semop,
// sigtimedwait, recv with a timeout, see signal(7)) return EINTR to a thread that
// ptrace interrupts inside them, and nothing outside of the thread can undo
// that. So a thread is interrupted only where it cannot be inside of one: there
// is a sampling thread bound to each CPU, and it looks only at threads that wait
// for this very CPU. Such a thread does not run while the sampling thread does.
// It is runnable, so it does not sleep in a call; and it lost the CPU on its way
// back to its own code, which is the only place where kernels take it away
// (those that are not built or booted for full preemption). The kernel stops it
// before its next instruction. A count of the times that it got a CPU, read
// before and after, tells that nothing moved it in between.
//
// The price is that threads which never run for clearOfCall without sleeping are
// not sampled, and what others do just after and before they sleep is not seen
// where it happens. The CPU time is not lost: a sample weighs what the thread has
// run since its last one.
package suspend
