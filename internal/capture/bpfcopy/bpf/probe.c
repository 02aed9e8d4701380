// SPDX-License-Identifier: GPL-2.0
//go:build ignore

/*
 * What runs at places in the kernel's and in programs' code: tracepoints and
 * user probes. The cookie that a program is attached with holds the event's
 * index, and above it how many of its hits by targets make a sample.
 */
#include "copy.h"

#define EVENT_BITS 16
#define EVENTS 64

/* Hits since the last sample, by event. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENTS);
	__type(key, __u32);
	__type(value, __u64);
} hits SEC(".maps");

/* Whether this hit is a target's and makes a sample. */
INLINE int wanted(void *ctx, struct task_struct *task, struct head *h, __u64 *program)
{
	numbers(task, &h->pid, &h->tid);
	struct target *t = bpf_map_lookup_elem(&targets, &h->pid);
	if (t)
		*program = t->program;
	else if (!all)
		return 0;
	__u64 cookie = bpf_get_attach_cookie(ctx), period = cookie >> EVENT_BITS;
	h->event = cookie & ((1 << EVENT_BITS) - 1);
	h->weight = period ? period : 1;
	if (period > 1) {
		__u32 event = h->event;
		__u64 *n = bpf_map_lookup_elem(&hits, &event);
		if (!n)
			return 0;
		*n += 1;
		if (*n < period)
			return 0;
		*n = 0;
	}
	h->time = bpf_ktime_get_ns();
	return 1;
}

INLINE int on_point(void *ctx, int exact)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct head h = {};
	__u64 program = SOME_PROGRAM;

	if (!wanted(ctx, task, &h, &program))
		return 0;
	struct work *w = work_in_kernel(SLOT_POINT, &h, task);
	if (!w)
		return 0;
	return take(task, w, KERNEL_CHAIN(ctx, w, 0), program, exact);
}

SEC("tracepoint")
int point_exact(void *ctx)
{
	return on_point(ctx, 1);
}

SEC("tracepoint")
int point_sized(void *ctx)
{
	return on_point(ctx, 0);
}

/*
 * Unlike the others this program can be preempted, and another thread can run it
 * on the same CPU meanwhile. Whoever finds itself alone in a slot has it.
 */
INLINE int in_slot(struct user_regs *ctx, struct task_struct *task, struct head *h, __u64 program, __u32 slot, int exact)
{
	struct work *w = bpf_map_lookup_elem(&scratch, &slot);
	if (!w)
		return 0;
	__sync_fetch_and_add(&w->users, 1);
	if (w->users != 1) {
		__sync_fetch_and_add(&w->users, -1);
		return 1;
	}
	__builtin_memset(&w->plan, 0, sizeof(w->plan));
	w->head = *h;
	w->regs = *ctx;
	take(task, w, 0, program, exact);
	__sync_fetch_and_add(&w->users, -1);
	return 0;
}

INLINE int on_probe(struct user_regs *ctx, int exact)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct head h = {};
	__u64 program = SOME_PROGRAM;

	if (!wanted(ctx, task, &h, &program))
		return 0;
	if (in_slot(ctx, task, &h, program, SLOT_PROBE, exact) && in_slot(ctx, task, &h, program, SLOT_PROBE + 1, exact))
		count_lost();
	return 0;
}

SEC("kprobe")
int probe_exact(struct user_regs *ctx)
{
	return on_probe(ctx, 1);
}

SEC("kprobe")
int probe_sized(struct user_regs *ctx)
{
	return on_probe(ctx, 0);
}
