/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is kept of a thread whose time on and off the CPU is watched.
 */
#pragma once
#include "copy.h"

/*
 * Whose time is it? The kernel's own account is followed, so that what is told
 * of a thread adds up to what the kernel tells of it. It charges a switch to the
 * thread that it is made to: samples that are due in it are taken at its end. And
 * it may charge a thread from its wakeup on, before the switch: what its account
 * (se.sum_exec_runtime) has more than what lies between switches is taken off
 * the time asleep.
 */
struct away {
	__u64 since;	  /* when it left the CPU, 0: it is on one */
	__u64 back;	  /* when it came back, 0: not known */
	__u64 charged;	  /* the kernel's account then */
	__u64 delay;	  /* what it had waited for a CPU before */
	__u64 on;	  /* since when its time on the CPU is yet to make a sample, 0: not known */
	__u64 ran;	  /* such time before that */
	__u64 early;	  /* charged before switches, yet to be taken off time asleep */
	__u64 sleep_rest; /* of off-cpu; the rests are time that is yet to make a sample */
	__u64 wall_rest;
	__u64 ready_rest;
	__u32 state;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct away);
} aways SEC(".maps");
