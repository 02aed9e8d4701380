// Package suspend is the engine for Linux systems that permit no perf events: it stops a thread
// with ptrace for as long as it takes to copy its registers and its stack, and lets it go at once.
//
// # Which thread
//
// There is at least one sampling thread bound to each CPU. It wakes at times that are in lockstep
// with nothing and looks for the thread that it took the CPU from: the scheduler records when a
// thread lost the CPU and when another got it, and shows both in /proc/…/task/TID/sched. So a
// thread is seen in proportion to its time on a CPU, however short its turns are. A thread that was
// running code of the program does not run while the sampling thread does, and is stopped before
// its next instruction. A thread that went to sleep before the sampling thread had the CPU was in
// that call, or was elsewhere if the sampling thread came late. It is sampled there only up to the
// time that it ran in the kernel by the kernel's account. It is not stopped: its stack does not
// change until it runs again, and /proc/…/task/TID/syscall shows where it is. Otherwise the next
// sample that finds it running stands for its time.
//
// A thread that is to stop does so when it next gets a CPU. If many threads want one that takes a
// while, and another sampling thread of the same CPU goes on meanwhile; each waits for one thread
// only (cpuSampler).
//
// A sample weighs what the thread has run since its last one. The first sample of a thread that was
// born during recording also weighs what other threads of the process ran that ended without a
// sample. The time that threads have run between their last samples and the end of recording, or
// their own end, is added to those samples; if a thread has none, a sample without a stack reports
// that it ran. So the weights of a thread's samples add up to its account, however late candid gets
// a CPU. Only for what threads that ended ran after the last look at them does the kernel keep no
// account but their process's: that is shared among them by a guess (shareOut).
//
// # Threads that sleep
//
// For wall time one more thread of candid's, the sleep scanner, looks at all threads of the
// targets. The stacks of sleeping threads are read from outside; the kernel's accounts say how long
// each slept, and which have not run since the last look. When recording ends the accounts are read
// for the last time, all of each at one moment (settle): what a thread ran, waited for a CPU and
// slept is the time that it was recorded.
//
// # What the thread notices
//
// Nothing. Many system calls (epoll_wait, semop, sigtimedwait, recv with a time limit, see
// signal(7)) return EINTR to a thread that ptrace interrupts inside of them. A thread that is
// stopped was in its own code when it lost the CPU, but it may get another CPU a microsecond before
// it is interrupted and enter such a call. Its registers show that, and the kernel, which has yet
// to decide whether the call returns EINTR or is restarted, is told to restart it (mend). If that
// is not possible, only threads that have run for a while without entering a call are stopped
// (wary); threads that never do so are not sampled then.
//
// A thread is seized, stopped and detached in each tick, so that no thread stays stopped when
// candid ends.
package suspend
