// Package suspend is the engine for Linux systems that permit no perf events:
// it stops a thread with ptrace for as long as it takes to copy its registers
// and its stack, and lets it go at once.
//
// # Which thread
//
// There is a sampling thread bound to each CPU, at least. It wakes at times that keep step
// with nothing and looks whom the CPU was taken from: the scheduler notes when a
// thread lost the CPU and when another got it, and shows both in
// /proc/…/task/TID/sched. So a thread is seen as often as it has a CPU, however
// short its turns are. One that was running code of the program does not run
// while the sampling thread does, and is stopped before its next instruction.
// One that went to sleep before the sampling thread had the CPU was in that call, or was
// elsewhere if the sampling thread came late. It is sampled there only as far as the
// kernel says that it ran in the kernel at all. It is not stopped: its stack does not
// change until it runs again, and /proc/…/task/TID/syscall tells where it is. Otherwise
// the next sample that finds it running stands for its time.
//
// A thread that is to stop does so when it gets a CPU next. Where many want one that
// takes a while, and another sampling thread of the same CPU goes on meanwhile; each
// waits for one thread only (cpuSampler).
//
// A sample weighs what the thread has run since its last one. The first sample of
// a thread that is born while recording weighs, besides, what other threads of the
// process have run that ended without one. What threads have run since their last
// samples when recording ends is added to those; where a thread has none, a sample without
// a stack tells that it ran. So the weights of a thread's samples sum to its account.
//
// # Threads that sleep
//
// For wall time one more thread of candid's, the sleep scanner, looks at all threads of the
// targets. Those that sleep are read from outside; the kernel's accounts say for how
// long each did, and which of them have not run since the last look.
//
// # What the thread notices
//
// Nothing. Many system calls (epoll_wait, semop, sigtimedwait, recv with a time
// limit, see signal(7)) return EINTR to a thread that ptrace interrupts inside of
// them. A thread that is stopped was in its own code when it lost the CPU, but it
// may get another CPU a microsecond before it is interrupted and enter such a
// call. Its registers show that, and the kernel, which has yet to decide whether
// the call returns EINTR or is made again, is told to make it again (mend). Where
// that cannot be done only threads are stopped that have run for a while without
// entering a call (wary); those which never do are not sampled then.
//
// A thread is seized, stopped and detached in each tick, so that candid's end
// leaves none stopped.
package suspend
