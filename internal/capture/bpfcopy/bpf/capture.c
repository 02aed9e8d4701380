// SPDX-License-Identifier: GPL-2.0
//go:build ignore

/*
 * What runs while a thread is stopped by a perf event, and what tells of
 * threads and processes that begin and end.
 */
#include "away.h"

INLINE int on_event(struct bpf_perf_event_data *ctx, int exact, int wall)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct head h = {};
	__u32 target = all_flags;

	numbers(task, &h.pid, &h.tid);
	__u32 *flags = bpf_map_lookup_elem(&targets, &h.pid);
	if (flags)
		target = *flags;
	else if (!all)
		return 0;

	h.time = bpf_ktime_get_ns();
	h.weight = ctx->sample_period;
	h.event = bpf_get_attach_cookie(ctx);
	if (wall) {
		/*
		 * Of wall time, the sample stands for what the thread ran since the last: its
		 * samples are all the time that it ran by the kernel's account, as its sleeps are.
		 */
		struct away *a = bpf_task_storage_get(&aways, task, 0, 0);
		if (a && a->on && a->on < h.time) {
			h.asleep = a->ran + h.time - a->on;
			a->ran = 0;
			a->on = h.time;
		}
	}
	struct work *w;
	__s64 kernel_bytes = 0;
	if (FROM_USER(&ctx->regs)) {
		w = work_at(SLOT_EVENT, &h);
		if (!w)
			return 0;
		w->regs = ctx->regs;
	} else {
		w = work_in_kernel(SLOT_EVENT, &h, task);
		if (!w)
			return 0;
		kernel_bytes = KERNEL_CHAIN(ctx, w, 0);
	}
	return take(task, w, kernel_bytes, target, exact);
}

SEC("perf_event")
int sample_exact(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 1, 0);
}

SEC("perf_event")
int sample_sized(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 0, 0);
}

/* The same where wall time is asked for. */
SEC("perf_event")
int sample_wall_exact(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 1, 1);
}

SEC("perf_event")
int sample_wall_sized(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 0, 1);
}

/* What happens to targets. */

INLINE __u32 *target_of(__u32 pid)
{
	return bpf_map_lookup_elem(&targets, &pid);
}

#define SIGNAL_GROUP_EXIT 4
#define WAKE_EVERY 5000000 /* ns */

__u64 woken = 0;

/*
 * A program that begins, or ends, should be looked at before its memory is gone.
 * Where they come and go all the time the reader is not woken for each.
 */
INLINE __u64 soon(__u64 now)
{
	if (now - woken < WAKE_EVERY)
		return BPF_RB_NO_WAKEUP;
	woken = now;
	return BPF_RB_FORCE_WAKEUP;
}

INLINE void tell(__u32 what, __u32 pid, __u32 tid, __u32 parent, __u32 last, __u32 urgent, const char *comm)
{
	struct notice *n = bpf_ringbuf_reserve(&ring, sizeof(*n), 0);
	if (!n) {
		count_lost();
		return;
	}
	n->kind = KIND_NOTICE;
	n->what = what;
	n->time = bpf_ktime_get_ns();
	n->pid = pid;
	n->tid = tid;
	n->parent = parent;
	n->last = last;
	n->comm[0] = 0;
	__u64 wake = urgent ? soon(n->time) : BPF_RB_NO_WAKEUP;
	if (comm)
		bpf_probe_read_kernel_str(n->comm, sizeof(n->comm), comm);
	bpf_ringbuf_submit(n, wake);
}

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	__u32 pid, tid, child_pid, child_tid;

	numbers(parent, &pid, &tid);
	__u32 *flags = target_of(pid);
	if (!flags && !all)
		return 0;
	numbers(child, &child_pid, &child_tid);
	if (child_pid != pid) {
		__u32 value = flags ? *flags : all_flags;
		if (!(value & TARGET_CHILDREN) && !all)
			return 0;
		if (value & TARGET_CHILDREN) {
			bpf_map_update_elem(&targets, &child_pid, &value, BPF_ANY);
		}
	}
	tell(NOTICE_FORK, child_pid, child_tid, pid, 0, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	__u32 pid, tid;

	numbers(task, &pid, &tid);
	__u32 *flags = target_of(pid);
	if (!flags && !all)
		return 0;
	if (flags)
		*flags &= ~TARGET_NO_GO; /* that was the old program */
	tell(NOTICE_EXEC, pid, tid, 0, 0, 1, task->comm);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	__u32 pid, tid, last;

	numbers(task, &pid, &tid);
	__u32 *flags = target_of(pid);
	if (!flags && !all)
		return 0;
	/* The count is taken down just before this. */
	struct signal_struct *signal = 0;
	__s32 live = 1;
	bpf_probe_read_kernel(&signal, sizeof(signal), &task->signal);
	bpf_probe_read_kernel(&live, sizeof(live), &signal->live.counter);
	last = live == 0;
	if (last)
		bpf_map_delete_elem(&targets, &pid);
	tell(NOTICE_EXIT, pid, tid, 0, last, last || task->signal->flags & SIGNAL_GROUP_EXIT, 0);
	return 0;
}

SEC("tp_btf/task_rename")
int on_rename(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	__u32 pid, tid;

	numbers(task, &pid, &tid);
	if (!target_of(pid) && !all)
		return 0;
	tell(NOTICE_COMM, pid, tid, 0, 0, 0, (const char *)ctx[1]);
	return 0;
}
