package suspend

import "bytes"

// If a call that a stop interrupted cannot be mended, only threads are stopped that are certainly
// not in a call, nor about to enter one.

// clearOfCall is how long a thread must have run without going to sleep, in ns of CPU time, before
// it may be stopped. It has then certainly left the call in which it last slept. A thread that
// keeps running for that long also rarely enters the next such call in the microsecond between the
// last look at it and the stop, in which it may get a CPU after all: with threads that work for 0.2
// ms between two calls, one stop in some hundred interrupted a call on a virtual machine whose CPUs
// were often taken away.
const clearOfCall = 500e3

// wasPreempted reports whether a thread that is runnable and has no CPU lost it in its own code. A
// thread that went to sleep in a call and was woken is runnable too, but still inside of the call.
// Since the kernel does not report which was the last, this takes two looks: if the thread has run
// for a while since the first one and has not gone to sleep, then it was preempted.
func (th *thread) wasPreempted(a account, r *reader) bool {
	known := th.sleptKnown
	before, at := th.slept, th.sleptAt
	if !th.noteSleeps(r) {
		return false
	}
	if !known || th.slept != before || a.turns <= at.turns || a.run-at.run < clearOfCall {
		return false
	}
	return !th.seenInCall(r)
}

// inCall is part of the name of every function that is a system call.
var inCall = []byte("_sys_")

// seenInCall reports whether the kernel shows a thread to be inside of a system call, which it does
// with CAP_SYS_ADMIN only. The time limit of a call may expire just before the thread falls asleep
// in it, most of all if the hypervisor takes its CPU for a while; then it has not slept, but is not
// in its own code.
func (th *thread) seenInCall(r *reader) bool {
	return bytes.Contains(th.read(r, &th.kernelFD, "stack"), inCall)
}

// noteSleeps does the first look, and keeps what an earlier one saw if the thread has not slept
// since.
func (th *thread) noteSleeps(r *reader) bool {
	known := th.sleptKnown
	th.sleptKnown = false
	n, ok := parseVoluntary(th.read(r, &th.statusFD, "status"))
	if !ok {
		return false
	}
	if known && n == th.slept {
		th.sleptKnown = true
		return true
	}
	// The order matters: a turn that is counted after the sleeps has not ended in one of them.
	a, ok := r.account(th.schedFD)
	if !ok {
		return false
	}
	th.slept, th.sleptAt, th.sleptKnown = n, a, true
	return true
}
