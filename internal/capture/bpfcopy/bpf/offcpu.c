// SPDX-License-Identifier: GPL-2.0
//go:build ignore

/*
 * What tells of time that threads are off the CPU. A thread that leaves it has
 * the time noted; when it is back, in its own context, its stack is copied if it
 * was away for long enough. A thread that sleeps on costs nothing.
 *
 * How much of that time it waited for a CPU is the kernel's own account
 * (sched_info), so wakeups need not be watched.
 */
#include "offcpu.h"

/* Set by the loader. */
const volatile __u64 min_sleep = 0;   /* of off-cpu, ns; 0: it is not asked for */
const volatile __u64 wall_period = 0; /* of wall, ns; 0: it is not asked for */
const volatile __u32 skip = 0;	      /* frames between a program and the scheduler */

/* Set by the reader: CLOCK_MONOTONIC, ns; threads that sleep already do so from then on. */
__u64 started = 0;

/* A part of least to begin with, so that what is left at the end is made good on average. */
INLINE __u64 part(__u64 least)
{
	return (bpf_get_prandom_u32() * (least >> 8)) >> 24;
}

INLINE struct away *track(struct task_struct *task)
{
	struct away *a = bpf_task_storage_get(&aways, task, 0, 0);
	if (a)
		return a;
	a = bpf_task_storage_get(&aways, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!a) {
		count_lost();
		return 0;
	}
	a->sleep_rest = part(min_sleep);
	a->wall_rest = part(wall_period);
	a->ready_rest = part(wall_period);
	a->ran = part(wall_period);
	return a;
}

INLINE __u32 state_of(struct task_struct *task)
{
	__u32 state = task->__state;
	if (!state)
		return RUNNABLE;
	return state & 2 ? UNINTERRUPTIBLE : SLEEPING; /* TASK_UNINTERRUPTIBLE */
}

/* ns; a wakeup is not longer before its switch, or its thread has waited. */
#define EARLY 10000000

SEC("tp_btf/sched_switch")
int on_leave(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	__u64 now = bpf_ktime_get_ns();
	struct away *a;

	if (!(prev->flags & PF_KTHREAD) && (a = bpf_task_storage_get(&aways, prev, 0, 0))) {
		/* What is preempted on its way to sleep does not sleep yet. */
		a->state = ctx[0] & 1 ? RUNNABLE : state_of(prev);
		a->delay = prev->sched_info.run_delay;
		a->since = now;
		if (a->on && a->on < now)
			a->ran += now - a->on;
		a->on = 0;
		__u64 charged = prev->se.sum_exec_runtime - a->charged;
		if (a->back && charged < EARLY + (now - a->back) && charged > now - a->back) {
			a->ran += charged - (now - a->back);
			a->early += charged - (now - a->back);
		}
	}
	if (!(next->flags & PF_KTHREAD) && (a = bpf_task_storage_get(&aways, next, 0, 0))) {
		a->back = now;
		a->on = now;
		a->charged = next->se.sum_exec_runtime;
	}
	return 0;
}

/* A new thread of a target is followed from its birth. */
SEC("tp_btf/sched_process_fork")
int on_birth(__u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	__u32 pid, tid;

	if (!bpf_task_storage_get(&aways, parent, 0, 0))
		return 0;
	if (parent->tgid != child->tgid && !all) {
		numbers(parent, &pid, &tid);
		struct target *t = bpf_map_lookup_elem(&targets, &pid);
		if (!t || !(t->flags & TARGET_CHILDREN))
			return 0;
	}
	track(child);
	return 0;
}

/*
 * What a stretch of time stands for: itself if it is long. Short ones are summed
 * up, and the one that completes a period stands for all of it: each then has
 * its share on average.
 */
INLINE __u64 due(__u64 time, __u64 period, __u64 *rest)
{
	if (!period || !time)
		return 0;
	if (time >= period)
		return time;
	*rest += time;
	if (*rest < period)
		return 0;
	*rest -= period;
	return period;
}

INLINE int on_back(void *ctx, int exact)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct head h = {};
	__u64 program = SOME_PROGRAM;
	struct away *a;

	if (task->flags & PF_KTHREAD)
		return 0;
	a = bpf_task_storage_get(&aways, task, 0, 0);
	if (!a || !a->since)
		return 0;
	h.time = bpf_ktime_get_ns();
	if (a->back && a->back < a->since) {
		/*
		 * on_leave was not called for the switch to this thread: seen on 6.18, a few times
		 * in a million switches. Else all of the wait would be lost.
		 */
		a->back = a->on = h.time;
		a->charged = task->se.sum_exec_runtime;
	}
	__u64 since = a->since, back = a->back;
	a->since = 0;
	if (since < started)
		since = started;
	if (!started || back <= since)
		return 0;
	__u64 time = back - since, ready = task->sched_info.run_delay - a->delay;
	if (a->state == RUNNABLE || ready > time)
		ready = time;
	__u64 slept = time - ready;
	__u64 early = slept < a->early ? slept : a->early;
	slept -= early;
	a->early -= early;
	h.weight = due(slept, min_sleep, &a->sleep_rest);
	h.asleep = due(slept, wall_period, &a->wall_rest);
	h.ready = due(ready, wall_period, &a->ready_rest);
	if (!h.weight && !h.asleep && !h.ready)
		return 0;
	h.state = a->state;
	h.event = AWAY;
	numbers(task, &h.pid, &h.tid);
	struct target *t = bpf_map_lookup_elem(&targets, &h.pid);
	if (t)
		program = t->program;
	else if (!all)
		return 0;
	struct work *w = work_in_kernel(SLOT_AWAY, &h, task);
	if (!w)
		return 0;
	return take(task, w, KERNEL_CHAIN(ctx, w, skip), program, exact);
}

/* The end of a switch, in the context of the thread that it was made to (6.14). */
SEC("tp_btf/sched_exit_tp")
int back_exact(__u64 *ctx)
{
	return on_back(ctx, 1);
}

SEC("tp_btf/sched_exit_tp")
int back_sized(__u64 *ctx)
{
	return on_back(ctx, 0);
}

/* The same on kernels before, where probes are to be had. */
SEC("kprobe/finish_task_switch")
int back_probe_exact(void *ctx)
{
	return on_back(ctx, 1);
}

SEC("kprobe/finish_task_switch")
int back_probe_sized(void *ctx)
{
	return on_back(ctx, 0);
}

/* A thread of a target, as the reader of `each` gets it. */
#define LOOK_DEPTH 32
#define WOKEN 0x100 /* in state: it does not sleep any more, but waits for a CPU */
struct look {
	__u64 since; /* 0: it runs */
	__u32 pid;
	__u32 tid;
	__u32 state;
	__u32 syscall;
	__u64 thread_base; /* the thread register */
	__u64 first_stack; /* where exec left the first thread's stack */
	__u64 kernel_len;  /* words */
	struct user_regs regs;
	__u64 kernel[LOOK_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct look);
} looks SEC(".maps");

/*
 * Goes over all threads: those of targets are followed from now on, and what is
 * known of each is written out. A thread that sleeps is not disturbed by it.
 */
SEC("iter/task")
int each(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seq_file *seq = ctx->meta->seq;
	__u32 pid, tid, zero = 0;
	struct away *a;

	if (!task || task->flags & PF_KTHREAD)
		return 0;
	numbers(task, &pid, &tid);
	if (!bpf_map_lookup_elem(&targets, &pid) && !all)
		return 0;
	a = bpf_task_storage_get(&aways, task, 0, 0);
	if (!a) {
		a = track(task);
		if (!a)
			return 0;
		if (task->__state && !a->since) {
			a->delay = task->sched_info.run_delay;
			a->state = state_of(task);
			a->since = bpf_ktime_get_ns();
		} else if (task->on_cpu && !a->on) {
			a->on = bpf_ktime_get_ns();
		}
	}
	struct look *l = bpf_map_lookup_elem(&looks, &zero);
	if (!l)
		return 0;
	l->since = a->since;
	l->pid = pid;
	l->tid = tid;
	l->state = a->state;
	if (l->since && !task->__state)
		l->state |= WOKEN;
	l->syscall = 0;
	l->kernel_len = 0;
#if defined(__TARGET_ARCH_x86)
	l->thread_base = task->thread.fsbase;
#else
	l->thread_base = task->thread.uw.tp_value;
#endif
	struct mm_struct *mm = 0;
	l->first_stack = 0;
	if (!bpf_probe_read_kernel(&mm, sizeof(mm), &task->mm) && mm)
		bpf_probe_read_kernel(&l->first_stack, sizeof(l->first_stack), &mm->start_stack);
	if (l->since) {
		__s64 got = bpf_get_task_stack(task, l->kernel, sizeof(l->kernel), 0);
		if (got > 0)
			l->kernel_len = got / 8;
		if (!bpf_probe_read_kernel(&l->regs, sizeof(l->regs), bpf_task_pt_regs(task)))
			l->syscall = syscall_of(task, &l->regs);
	}
	bpf_seq_write(seq, l, sizeof(*l));
	return 0;
}
