// SPDX-License-Identifier: GPL-2.0
//go:build ignore

/*
 * What runs while a thread is stopped by a perf event, and what tells of
 * threads and processes that begin and end. With TICKS, only what samples the CPU's
 * clock by exact copies, which is what most recordings are: to read all the others takes candid
 * longer than to load these.
 */
#include "offcpu.h"

/* A software counter's cookie holds the event's index, and above it how far apart a CPU's
 * samples shall be, ns. */
#define EVENT_BITS 16
#define EVENTS 64

#ifndef TICKS
/* What a software counter has counted on a CPU since the last sample of it. */
struct block {
	__u64 seen; /* of all processes, when it was last looked at */
	__u64 hits; /* of targets */
	__u64 began;
	__u64 size; /* how many hits shall make the sample */
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENTS);
	__type(key, __u32);
	__type(value, struct block);
} blocks SEC(".maps");
#endif

#ifdef TICKS
#define counted(ctx, h, target) 0
#else
/*
 * Whether this hit of a software counter makes a sample, and of how many. The kernel's own
 * way to so many samples a second counts what other processes do on the CPU too, and the
 * period that it tells with a sample is the one that begins with it (perf_swevent_set_period
 * puts the new one in place first). So each hit comes here, and those of targets are counted
 * exactly: a sample is the last of a block of them and stands for the block. How large the
 * next one is follows from how long this one took; when hits get rare it ends early. Where
 * the kernel left hits out, because there were too many, its count tells how many.
 */
INLINE int counted(struct bpf_perf_event_data *ctx, struct head *h, int target)
{
	struct bpf_perf_event_value value = {};
	__u64 cookie = bpf_get_attach_cookie(ctx), every = cookie >> EVENT_BITS, n = 1;

	h->event = cookie & ((1 << EVENT_BITS) - 1);
	__u32 key = h->event;
	struct block *b = bpf_map_lookup_elem(&blocks, &key);
	if (!b)
		return 0;
	if (bpf_perf_prog_read_value(ctx, &value, sizeof(value)) == 0) {
		if (b->seen && value.counter > b->seen)
			n = value.counter - b->seen;
		b->seen = value.counter;
	}
	if (!target)
		return 0;
	b->hits += n;
	__u64 age = h->time - b->began;
	if (b->hits < b->size && age < 4 * every)
		return 0;
	h->weight = b->hits;
	/* At most twice as many, for two that come together say little; and never so many that
	 * it keeps step with what the program does. */
	__u64 size = 2 * b->hits;
	if (age > every / 2)
		size = b->hits * every / age;
	b->size = size - size / 4 + bpf_get_prandom_u32() % (size / 2 + 1);
	b->hits = 0;
	b->began = h->time;
	return 1;
}
#endif

INLINE int on_event(struct bpf_perf_event_data *ctx, int exact, int wall, int counts)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct head h = {};
	__u64 program = SOME_PROGRAM;

	numbers(task, &h.pid, &h.tid);
	struct target *t = bpf_map_lookup_elem(&targets, &h.pid);
	if (t)
		program = t->program;
	else if (!all && !counts)
		return 0;

	h.time = bpf_ktime_get_ns();
	if (counts) {
		if (!counted(ctx, &h, t || all))
			return 0;
	} else {
		h.weight = ctx->sample_period;
		h.event = bpf_get_attach_cookie(ctx);
	}
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
	return take(task, w, kernel_bytes, program, exact);
}

SEC("perf_event")
int sample_exact(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 1, 0, 0);
}

#ifndef TICKS
SEC("perf_event")
int sample_sized(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 0, 0, 0);
}

/* The same where wall time is asked for. */
SEC("perf_event")
int sample_wall_exact(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 1, 1, 0);
}

SEC("perf_event")
int sample_wall_sized(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 0, 1, 0);
}

/* Software counters, each hit of them. */
SEC("perf_event")
int count_exact(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 1, 0, 1);
}

SEC("perf_event")
int count_sized(struct bpf_perf_event_data *ctx)
{
	return on_event(ctx, 0, 0, 1);
}

#endif

/* What happens to targets. */

INLINE struct target *target_of(__u32 pid)
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

/*
 * The files of programs whose code is all in files, as the reader has seen: it can wait
 * for those that run them.
 */
struct program_file {
	__u64 dev;
	__u64 inode;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct program_file);
	__type(value, __u32);
} plain SEC(".maps");

INLINE int is_plain(struct linux_binprm *bprm)
{
	struct program_file f = {};
	struct file *file = 0;
	struct inode *inode = 0;
	struct super_block *sb = 0;
	__u32 dev = 0;

	bpf_probe_read_kernel(&file, sizeof(file), &bprm->file);
	if (!file)
		return 0;
	bpf_probe_read_kernel(&inode, sizeof(inode), &file->f_inode);
	bpf_probe_read_kernel(&f.inode, sizeof(f.inode), &inode->i_ino);
	bpf_probe_read_kernel(&sb, sizeof(sb), &inode->i_sb);
	bpf_probe_read_kernel(&dev, sizeof(dev), &sb->s_dev);
	f.dev = dev;
	return bpf_map_lookup_elem(&plain, &f) != 0;
}

struct told {
	__u32 what;
	__u64 time;
	__u32 pid;
	__u32 tid;
	__u32 parent;
	__u32 last;
	__u32 status;
	__u32 urgent;
	const char *comm;
};

INLINE void tell(struct told *t)
{
	struct notice *n = bpf_ringbuf_reserve(&ring, sizeof(*n), 0);
	if (!n) {
		count_lost();
		return;
	}
	n->kind = KIND_NOTICE;
	n->what = t->what;
	n->time = t->time;
	n->pid = t->pid;
	n->tid = t->tid;
	n->parent = t->parent;
	n->last = t->last;
	n->status = t->status;
	n->pad = 0;
	n->comm[0] = 0;
	__u64 wake = t->urgent ? soon(n->time) : BPF_RB_NO_WAKEUP;
	if (t->comm)
		bpf_probe_read_kernel_str(n->comm, sizeof(n->comm), t->comm);
	bpf_ringbuf_submit(n, wake);
}

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct told n = {.what = NOTICE_FORK};

	numbers(parent, &n.parent, &n.tid);
	struct target *t = target_of(n.parent);
	if (!t && !all)
		return 0;
	numbers(child, &n.pid, &n.tid);
	n.time = bpf_ktime_get_ns();
	if (n.pid != n.parent) {
		struct target value = {.program = n.time, .flags = t ? t->flags : all_flags};
		if (!(value.flags & TARGET_CHILDREN) && !all)
			return 0;
		if (value.flags & TARGET_CHILDREN)
			bpf_map_update_elem(&targets, &n.pid, &value, BPF_ANY);
	}
	tell(&n);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct told n = {.what = NOTICE_EXEC};

	numbers(task, &n.pid, &n.tid);
	struct target *t = target_of(n.pid);
	if (!t && !all)
		return 0;
	n.time = bpf_ktime_get_ns();
	/* Of a process that was there before, the program is told apart from now on. */
	int plain = is_plain((struct linux_binprm *)ctx[2]);
	struct target value = {.program = n.time, .flags = t ? t->flags & ~TARGET_PLAIN : all_flags};
	if (plain)
		value.flags |= TARGET_PLAIN;
	if (t)
		*t = value;
	else
		bpf_map_update_elem(&targets, &n.pid, &value, BPF_ANY);
	n.urgent = !plain;
	n.comm = task->comm;
	tell(&n);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct told n = {.what = NOTICE_EXIT};

	numbers(task, &n.pid, &n.tid);
	struct target *t = target_of(n.pid);
	if (!t && !all)
		return 0;
	/* A runtime may have been found in it all the same. */
	struct known *k = bpf_map_lookup_elem(&known, &n.pid);
	int plain = t && t->flags & TARGET_PLAIN && !(k && k->follow);
	/* The count is taken down just before this. Pointers are followed by a helper, as in
	 * stack_top. */
	struct signal_struct *signal = 0;
	struct task_struct *leader = 0;
	__s32 live = 1;
	__u32 flags = 0;
	bpf_probe_read_kernel(&signal, sizeof(signal), &task->signal);
	bpf_probe_read_kernel(&live, sizeof(live), &signal->live.counter);
	bpf_probe_read_kernel(&flags, sizeof(flags), &signal->flags);
	n.urgent = !plain && (live == 0 || flags & SIGNAL_GROUP_EXIT);
	if (live == 0) {
		n.last = 1;
		if (flags & SIGNAL_GROUP_EXIT) {
			bpf_probe_read_kernel(&n.status, sizeof(n.status), &signal->group_exit_code);
		} else {
			bpf_probe_read_kernel(&leader, sizeof(leader), &task->group_leader);
			bpf_probe_read_kernel(&n.status, sizeof(n.status), &leader->exit_code);
		}
		bpf_map_delete_elem(&targets, &n.pid);
		bpf_map_delete_elem(&known, &n.pid);
	}
	n.time = bpf_ktime_get_ns();
	tell(&n);
	return 0;
}

SEC("tp_btf/task_rename")
int on_rename(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct told n = {.what = NOTICE_COMM, .comm = (const char *)ctx[1]};

	numbers(task, &n.pid, &n.tid);
	if (!target_of(n.pid) && !all)
		return 0;
	n.time = bpf_ktime_get_ns();
	tell(&n);
	return 0;
}
