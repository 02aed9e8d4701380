// Package wine finds, in a process of Linux that runs a Windows program in Wine, where the stacks of
// its threads are. A thread has two: Windows code runs on the one that its thread block (TEB) names,
// and Wine's own code, which does what the Windows kernel would do, on another. A system call of
// Windows switches between them and leaves a frame at the point where the first one continues.
//
// Sources: Wine 10.0, dlls/ntdll/unix/unix_private.h (struct ntdll_thread_data),
// dlls/ntdll/unix/signal_x86_64.c (struct syscall_frame, struct amd64_thread_data,
// __wine_syscall_dispatcher) and include/winternl.h (TEB). glibc, nptl/descr.h (struct pthread).
package wine
