/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a thread's registers, the kernel's call chain if it is in the kernel, and
 * exactly the live bytes of its stack get into the ring buffer. Nothing here
 * waits, and nothing of the target is written.
 */
#pragma once
#include "kernel.h"

/* The kernel's own licence is asked for by most of the helpers. */
char terms[] SEC("license") = "GPL";

#define KERNEL_DEPTH 127
#define PAGE 4096UL
/* Pages of the largest copy, which may begin and end inside one. */
#define MAX_PAGES (524288 / PAGE + 1)
/* Farther than this from the thread's descriptor, a stack pointer is not on the
 * stack that belongs to it. */
#define NEAR (64UL << 20)

#if defined(__TARGET_ARCH_x86)
#define RED_ZONE 128
#define PC(r) ((r)->ip)
#define SP(r) ((r)->sp)
#define GO_G(r) ((r)->r14)
#define GO_OLD_SP(r) ((r)->r12)
#define FP(r) ((r)->bp)
#define FROM_USER(r) (((r)->cs & 3) == 3)
#else
#define RED_ZONE 0
#define PC(r) ((r)->pc)
#define SP(r) ((r)->sp)
#define GO_G(r) ((r)->regs[28])
#define GO_OLD_SP(r) ((r)->regs[20])
#define FP(r) ((r)->regs[29])
#define FROM_USER(r) (((r)->pstate & 0xf) == 0)
#endif

#define PF_KTHREAD 0x00200000

/* Flags of a record; they are capture.Flags. */
enum {
	IN_KERNEL = 1,
	STACK_CUT = 2,
	STACK_UNREAD = 4,
	NO_USER = 8,
	STACK_HOLES = 16,
	GOT_PAGE = 256, /* not told: a page was read */
};

enum { KIND_SAMPLE = 1, KIND_NOTICE = 2 };
enum { NOTICE_EXEC = 1, NOTICE_FORK = 2, NOTICE_EXIT = 3, NOTICE_COMM = 4 };

/* One sample; the kernel's chain and the stack follow it. */
struct sample {
	__u32 kind;
	__u32 flags;
	__u64 time;
	__u32 pid;
	__u32 tid;
	__u32 cpu;
	__u32 kernel_len; /* words */
	__u64 stack_addr;
	__u64 stack_top;
	__u32 stack_len;
	__u32 stack_off; /* from the record's start */
	__u64 weight;
	__u64 other_addr;
	__u32 other_len;
	__u32 other_off;
	__u64 other_pc; /* where the second stack's goroutine goes on, 0: not known */
	__u32 event;   /* as the program was attached; AWAY */
	__u32 syscall; /* the number of the call that the thread is in, plus 1 */
	__u32 state;
	__u32 pad;
	__u64 asleep; /* what the sample stands for in wall time; of AWAY, asleep */
	__u64 ready;  /* and waiting for a CPU */
	__u32 regions;	   /* how many other pieces of memory follow */
	__u32 regions_off; /* where the list of them is, from the record's start */
	struct user_regs regs;
};

/* A piece of memory that a runtime's stack goes on in. */
struct region {
	__u64 addr;
	__u32 len;
	__u32 off; /* from the record's start */
};
#define MAX_REGIONS 64

/* The event of a sample of time that a thread was off the CPU: its weight is for
 * off-cpu. */
#define AWAY 0xffff

/* States of a thread; they are capture.State. */
enum { RUNNING, RUNNABLE, SLEEPING, UNINTERRUPTIBLE };

struct notice {
	__u32 kind;
	__u32 what;
	__u64 time;
	__u32 pid;
	__u32 tid;
	__u32 parent;
	__u32 last; /* of an exit: the process's last thread */
	__u32 status; /* then: what its parent is told (wait(2)) */
	__u32 pad;
	char comm[16];
};

/*
 * A target. Its program is named by when it began: the time of the notice of its fork or
 * exec, 0 where neither has been told.
 */
struct target {
	__u64 program;
	__u32 flags;
	__u32 pad;
};

enum {
	TARGET_CHILDREN = 1,
	TARGET_PLAIN = 2, /* its program is one of plain */
};

/* The program of a process that is no target of its own, but one of all. */
#define SOME_PROGRAM (~0UL)

/* Set by the loader. */
const volatile __u32 all = 0;		 /* every process */
const volatile __u32 all_flags = 0;	 /* their target flags */
const volatile __u32 pid_ns = 0;	 /* inode of the profiler's pid namespace, 0 for the first */
const volatile __u32 max_stack = 0;	 /* bytes, at most 512 KiB */
const volatile __u32 max_unknown = 0;	 /* the same, where the stack's top is not known */
const volatile __u32 can_find_vma = 0;	 /* the kernel has bpf_find_vma */
const volatile __u32 red_zone = RED_ZONE;
const volatile __u64 watermark = 0;	 /* bytes waiting that wake the reader */

/* Set by the reader while it runs: wake me at the next record. */
__u32 eager = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct target);
} targets SEC(".maps");

/*
 * What the reader knows of a process's program: whether it runs Go code, and which
 * description says where its stacks go on. It is a map of its own, so that what the
 * reader finds out of one program never comes to be said of the next, however late it
 * is found out.
 */
struct known {
	__u64 program;
	__u32 goless;
	__u32 follow; /* index into follows plus 1, 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct known);
} known SEC(".maps");

/*
 * A description of memory that belongs to a sample: steps as capture.Follow has them, by
 * which a runtime leads from a thread to where its stack goes on.
 */
#define MAX_STEPS 64
#define MAX_FOLLOWS 256
#define FOLLOW_REGS 16

struct step {
	__u8 op, dst, src;
	__u8 no; /* the step to go on with if this one fails */
	__u32 arg;
	__u64 imm;
};

struct follow {
	__u32 count; /* of steps */
	__u32 ref;   /* how references are turned into addresses */
	__u32 ref_shift;
	__u32 pad;
	__u64 ref_base;
	struct step steps[MAX_STEPS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_FOLLOWS);
	__type(key, __u32);
	__type(value, struct follow);
} follows SEC(".maps");

struct chain {
	__u64 ip[KERNEL_DEPTH + 1];
};

struct plan {
	__u64 from; /* of the copy */
	__u64 sp;
	__u64 top;
	__u32 len;
	__u32 flags;
	__u64 other; /* where the copy of a second stack starts */
	__u32 other_len;
	__u64 other_pc;
};

/* What a program knows of a sample besides its stack. */
struct head {
	__u64 time;
	__u32 pid;
	__u32 tid;
	__u64 weight;
	__u32 event;
	__u32 syscall;
	__u32 state;
	__u32 pad;
	__u64 asleep;
	__u64 ready;
};

/*
 * What is worked out about a sample before it is copied. It lies in a map and not
 * on the BPF stack, because the verifier does not follow values there: what comes
 * after each step is then gone through once and not for every way that led to it,
 * which is most of the time that loading takes. On each CPU the kernel runs one
 * program of a kind at a time, so each CPU has one of these for each kind: a
 * sampling event can interrupt the others.
 */
enum { SLOT_EVENT, SLOT_AWAY, SLOT_POINT, SLOT_PROBE, SLOTS = SLOT_PROBE + 2 };

/* A description that is being followed. */
struct followed {
	__u32 at; /* the next step */
	__u32 count; /* of regions */
	__u32 bytes; /* of their content */
	__u32 pad;
	__u64 v[FOLLOW_REGS];
	struct region regions[MAX_REGIONS];
};

struct work {
	__u64 users; /* of a slot for probes */
	struct plan plan;
	struct followed followed;
	struct head head;
	struct user_regs regs;
	struct chain chain;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct work);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/*
 * What copying took of the threads' time. The kernel's own statistics of BPF programs
 * would tell it too, but turning them on and off rewrites code on every CPU, and they
 * slow down everybody's programs meanwhile.
 */
struct spent {
	__u64 copies;
	__u64 ns;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct spent);
} spending SEC(".maps");

/* A function that the verifier goes through once by itself, and not again for every state
 * of each of its callers. */
#define SEPARATE __attribute__((noinline))

/* Makes the verifier look at v anew, so that the bound after it is its own. */
#define FORGET(v) asm volatile("" : "+r"(v))

INLINE void count_lost(void)
{
	__u32 zero = 0;
	__u64 *n = bpf_map_lookup_elem(&lost, &zero);
	if (n)
		*n += 1;
}

/* Accounts for a copy that began at a time. */
INLINE void count_spent(__u64 began)
{
	__u32 zero = 0;
	struct spent *s = bpf_map_lookup_elem(&spending, &zero);
	if (!s)
		return;
	s->copies += 1;
	s->ns += bpf_ktime_get_ns() - began;
}

INLINE __u64 wakeup(void)
{
	if (eager) {
		eager = 0;
		return BPF_RB_FORCE_WAKEUP;
	}
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > watermark)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* A task's number in the profiler's pid namespace, 0 if it has none there. */
INLINE __u32 number(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	const char *first = (const char *)&pid->numbers[0];
	__u32 level = pid->level;

	for (int i = 0; i < 8; i++) {
		struct upid u = {};
		__u32 inum = 0;
		if (i > level)
			break;
		/* struct upid has been a number and a pointer since 2.6.24. */
		if (bpf_probe_read_kernel(&u, sizeof(u), first + i * sizeof(u)))
			break;
		if (bpf_probe_read_kernel(&inum, sizeof(inum), &u.ns->ns.inum))
			break;
		if (inum == pid_ns)
			return u.nr;
	}
	return 0;
}

INLINE void numbers(struct task_struct *task, __u32 *pid, __u32 *tid)
{
	if (!pid_ns) {
		*pid = task->tgid;
		*tid = task->pid;
		return;
	}
	*tid = number(task);
	*pid = number(task->group_leader);
}

struct found {
	__u64 end;
};

static long vma_found(struct task_struct *task, struct vm_area_struct *vma, struct found *f)
{
	f->end = vma->vm_end;
	return 0;
}

/*
 * Go keeps what it runs, g, in a register in the code that its compiler makes.
 * A g starts with the bounds of its stack and of the part that may be used without
 * a check, which is what tells it from anything else (runtime2.go, stack.go; the
 * guards are up to 1 KiB above the lower bound, 5 KiB on Windows, or near the end
 * of all addresses where the goroutine is asked to stop).
 */
#define GO_LARGEST (1UL << 30)
#define GO_GUARD (2 * PAGE)

struct go_stack {
	__u64 low, high, guard;
};

/* Later in it: the thread's struct m, and where the goroutine will go on. */
#define GO_RUN 48
struct go_run {
	__u64 m, sp, pc;
};

INLINE int is_go(__u64 g, struct go_stack *s)
{
	if (g < PAGE || g >= 1UL << 56 || (g & 7))
		return 0;
	if (bpf_probe_read_user(s, sizeof(*s), (void *)g))
		return 0;
	if (s->high <= s->low || s->high - s->low > GO_LARGEST || ((s->low | s->high) & 7))
		return 0;
	return s->guard - s->low <= GO_GUARD || s->guard >= -PAGE;
}

INLINE __u64 go_top(__u64 g, __u64 sp)
{
	struct go_stack s;

	if (!is_go(g, &s) || sp <= s.low || sp >= s.high)
		return 0;
	return s.high;
}

/* What the thread's register for its own storage holds. */
INLINE __u64 thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread.fsbase;
#else
	return task->thread.uw.tp_value;
#endif
}

/*
 * The address just above the current thread's stack. C libraries put a
 * thread's descriptor, which the thread register points to, at the top of its
 * stack (glibc, musl); the first thread's stack begins where exec left it.
 */
INLINE __u64 stack_top(struct task_struct *task, __u64 sp, __u64 g)
{
#if defined(__TARGET_ARCH_x86)
	__u64 tp = task->thread.fsbase;
	if (sp < tp && tp - sp <= NEAR) {
		/* The descriptor's first word points to itself in both
		 * libraries; other users of the register (Go) do not do so. */
		__u64 self = 0;
		bpf_probe_read_user(&self, sizeof(self), (void *)tp);
		if (self == tp)
			return tp;
	}
#else
	__u64 tp = task->thread.uw.tp_value;
	if (sp < tp && tp - sp <= NEAR)
		return tp;
#endif
	/* By a helper: where a program follows a pointer by itself, the verifier looks
	 * through all types of the kernel for what it may be trusted with. */
	struct mm_struct *mm = 0;
	__u64 first = 0;
	if (bpf_probe_read_kernel(&mm, sizeof(mm), &task->mm) || !mm ||
	    bpf_probe_read_kernel(&first, sizeof(first), &mm->start_stack))
		return 0;
	/* start_stack points at argc; the word above it is argv[0]. */
	first += 16;
	if (sp < first && first - sp <= NEAR)
		return first;
	return go_top(g, sp);
}

/* Where a struct m may have the goroutine that its thread runs: it has moved
 * between versions. */
#define CURG_FIRST 0x80
#define CURG_WORDS 16

/*
 * Go's scheduler, collector and C code run on the thread's own stack; the
 * goroutine that called them waits on its own, of which that part is copied too.
 * The copy starts a word below where it will go on.
 */
SEPARATE int plan_other(struct work *work, __u64 base)
{
	if (!work)
		return 0;
	struct plan *p = &work->plan;
	struct user_regs *regs = &work->regs;
	__u64 g = GO_G(regs), sp = p->sp, w = 0, from = 0, to = 0;
	struct go_stack s;
	struct go_run run = {};

	p->other_len = 0;
	p->other_pc = 0;
	if (p->len == 0)
		return 0;
	if (!is_go(g, &s)) {
#if defined(__TARGET_ARCH_x86)
		/* In C code the register holds something else. */
		g = 0;
		bpf_probe_read_user(&g, sizeof(g), (void *)(base - 8));
		if (!is_go(g, &s))
#endif
			return 0;
	}
	if (sp <= s.low || sp >= s.high) {
		/* A call of the vdso, which is made on the thread's stack. */
		__u64 fp = FP(regs), old = GO_OLD_SP(regs);
		if (fp > s.low && fp < s.high)
			from = fp;
		if (old > s.low && old < s.high && (!from || old < from))
			from = old;
		to = s.high;
	}
	if (!from) {
		if (bpf_probe_read_user(&run, sizeof(run), (void *)(g + GO_RUN)))
			return 0;
		__u64 m = run.m;
		if (bpf_probe_read_user(&w, sizeof(w), (void *)m) || w != g)
			return 0;
		struct bpf_iter_num words;
		int *i;
		bpf_iter_num_new(&words, 0, CURG_WORDS);
		while ((i = bpf_iter_num_next(&words))) {
			if (bpf_probe_read_user(&w, sizeof(w), (void *)(m + CURG_FIRST + 8 * *i)))
				break;
			if (w == g || !is_go(w, &s) || bpf_probe_read_user(&run, sizeof(run), (void *)(w + GO_RUN)))
				continue;
			if (run.m != m || run.sp <= s.low + 8 || run.sp >= s.high)
				continue;
			from = run.sp - 8;
			p->other_pc = run.pc;
			to = s.high;
			break;
		}
		bpf_iter_num_destroy(&words);
	}
	from &= ~7UL;
	if (!from || to <= from || (from >= p->from && from < p->from + p->len))
		return 0;
	__u64 len = to - from;
	if (len > max_stack / 2)
		len = max_stack / 2;
	p->other = from;
	p->other_len = len;
	return 1;
}

/* What a step does; capture.Op has the same numbers. */
enum {
	STEP_SET,
	STEP_REGISTER,
	STEP_THREAD,
	STEP_ADD,
	STEP_SUM,
	STEP_LESS,
	STEP_SHIFT,
	STEP_LOAD,
	STEP_LOAD4,
	STEP_REFERENCE,
	STEP_ON_STACK,
	STEP_NOT_ZERO,
	STEP_COUNT,
	STEP_JUMP,
	STEP_COPY,
};

enum { REF_PLAIN, REF_NARROW, REF_SHIFTED, REF_COLORED };

/* Steps in all, of a sample. */
#define MOST_STEPS 2048

/* Does one step; 0 if it fails. */
SEPARATE int do_step(struct work *w, struct follow *f, struct step *s, __u64 base)
{
	if (!w || !f || !s)
		return 0;
	struct followed *r = &w->followed;
	__u64 *dst = &r->v[s->dst & (FOLLOW_REGS - 1)];
	__u64 a = r->v[s->src & (FOLLOW_REGS - 1)], v = 0;
	__u32 half = 0;

	switch (s->op) {
	case STEP_SET:
		*dst = s->imm;
		return 1;
	case STEP_REGISTER: {
		__u32 n = s->arg;
		if (n >= sizeof(w->regs) / 8)
			return 0;
		*dst = ((__u64 *)&w->regs)[n];
		return 1;
	}
	case STEP_THREAD:
		*dst = base;
		return 1;
	case STEP_ADD:
		*dst = a + s->imm;
		return 1;
	case STEP_SUM:
		*dst += a;
		return 1;
	case STEP_LESS:
		*dst -= a;
		return 1;
	case STEP_SHIFT:
		*dst <<= s->arg & 63;
		return 1;
	case STEP_LOAD:
		if (a + s->imm < PAGE || bpf_probe_read_user(&v, sizeof(v), (void *)(a + s->imm)))
			return 0;
		*dst = v;
		return 1;
	case STEP_LOAD4:
		if (a + s->imm < PAGE || bpf_probe_read_user(&half, sizeof(half), (void *)(a + s->imm)))
			return 0;
		*dst = half;
		return 1;
	case STEP_REFERENCE:
		if (a + s->imm < PAGE)
			return 0;
		if (f->ref == REF_NARROW) {
			if (bpf_probe_read_user(&half, sizeof(half), (void *)(a + s->imm)) || !half)
				return 0;
			*dst = f->ref_base + ((__u64)half << (f->ref_shift & 63));
			return 1;
		}
		if (bpf_probe_read_user(&v, sizeof(v), (void *)(a + s->imm)))
			return 0;
		if (f->ref == REF_SHIFTED)
			v >>= f->ref_shift & 63;
		if (f->ref == REF_COLORED) {
			/* One of four bits is set, and which it is says how far the address lies up. */
			__u32 bits = (v >> 12) & 15, up = 13;
			if (bits & 1)
				up = 13;
			else if (bits & 2)
				up = 14;
			else if (bits & 4)
				up = 15;
			else if (bits & 8)
				up = 16;
			else
				up = 0;
			v >>= up;
		}
		if (!v)
			return 0;
		*dst = v;
		return 1;
	case STEP_ON_STACK:
		return *dst >= w->plan.sp && *dst - w->plan.sp < NEAR && !(*dst & 7) && (!w->plan.top || *dst < w->plan.top);
	case STEP_NOT_ZERO:
		return *dst != 0;
	case STEP_COUNT:
		*dst -= 1;
		return *dst < 1UL << 32;
	case STEP_COPY: {
		__u64 len = s->arg ? s->arg : a;
		__u32 n = r->count;
		if (n >= MAX_REGIONS || *dst < PAGE || len == 0 || len > max_stack / 2 || r->bytes + len > max_stack / 2)
			return 0;
		r->regions[n].addr = *dst;
		r->regions[n].len = len;
		r->count = n + 1;
		r->bytes += (len + 7) & ~7UL;
		return 1;
	}
	}
	return 0;
}

/* Finds out which other memory belongs to a sample, by a runtime's description. */
INLINE void plan_regions(struct work *w, __u64 base, __u32 index)
{
	struct followed *r = &w->followed;
	struct bpf_iter_num steps;
	__u32 key = index - 1;

	struct follow *f = bpf_map_lookup_elem(&follows, &key);
	if (!f || w->plan.len == 0)
		return;
	bpf_iter_num_new(&steps, 0, MOST_STEPS);
	while (bpf_iter_num_next(&steps)) {
		__u32 at = r->at;
		if (at >= MAX_STEPS || at >= f->count)
			break;
		struct step *s = &f->steps[at];
		r->at = s->op != STEP_JUMP && do_step(w, f, s, base) ? at + 1 : s->no;
	}
	bpf_iter_num_destroy(&steps);
}

INLINE void make_plan(struct plan *p, struct task_struct *task, __u64 sp, __u64 g)
{
	__u64 end, limit = max_stack;

	p->sp = sp;
	p->from = sp - red_zone;
	p->len = 0;
	p->top = 0;
	if (sp < PAGE || sp >= 1UL << 56) {
		p->flags |= STACK_UNREAD;
		return;
	}
	p->top = end = stack_top(task, sp, g);
	if (!end) {
		struct found f = {};
		end = sp + max_unknown;
		if (can_find_vma && bpf_find_vma(task, sp, vma_found, &f, 0) == 0)
			end = f.end;
		limit = max_unknown;
	}
	__u64 len = end - p->from;
	if (len > limit) {
		len = limit;
		p->flags |= STACK_CUT;
	}
	p->len = len;
}

INLINE void fill(struct sample *s, struct plan *p, struct head *h, struct user_regs *regs, __u32 kernel_bytes)
{
	s->kind = KIND_SAMPLE;
	s->time = h->time;
	s->pid = h->pid;
	s->tid = h->tid;
	s->cpu = bpf_get_smp_processor_id();
	s->kernel_len = kernel_bytes / 8;
	s->stack_addr = p->from;
	s->stack_top = p->top;
	s->stack_len = 0;
	s->flags = 0;
	s->stack_off = sizeof(*s);
	s->weight = h->weight;
	s->other_addr = 0;
	s->other_len = 0;
	s->other_off = 0;
	s->other_pc = 0;
	s->event = h->event;
	s->syscall = h->syscall;
	s->state = h->state;
	s->pad = 0;
	s->asleep = h->asleep;
	s->ready = h->ready;
	s->regions = 0;
	s->regions_off = 0;
	s->regs = *regs;
}

/*
 * Where a page of the stack is not there, the copy is made page by page and
 * holds zeros for it. Most such pages were never written: below the stack
 * pointer, or in the unused part of a large frame. The few that were swapped
 * out cost the walk its way, not the program.
 *
 * What has been copied and found is noted in the record, because the verifier does
 * not follow values there: else it would go through every sum of pages.
 */
const char zeros[PAGE] = {};

INLINE __u64 rest_of_page(__u64 addr, __u64 left)
{
	__u64 n = PAGE - (addr & (PAGE - 1));
	return n < left ? n : left;
}

INLINE void exact_copy(struct bpf_dynptr *ptr, struct sample *s, struct plan *p, __u32 off)
{
	__u64 from = p->from, len = p->len;
	volatile __u32 *done = &s->stack_len, *got = &s->flags;
	struct bpf_iter_num pages;

	if (bpf_probe_read_user_dynptr(ptr, off, len, (void *)from) == 0) {
		s->stack_len = len;
		return;
	}
	bpf_iter_num_new(&pages, 0, MAX_PAGES);
	while (bpf_iter_num_next(&pages)) {
		__u64 at = *done;
		if (at >= len)
			break;
		__u64 n = rest_of_page(from + at, len - at);
		if (bpf_probe_read_user_dynptr(ptr, off + at, n, (void *)(from + at)) == 0)
			*got |= GOT_PAGE;
		else if (n <= sizeof(zeros)) {
			bpf_dynptr_write(ptr, off + at, (void *)zeros, n, 0);
			if (from + at + n > p->sp)
				*got |= STACK_HOLES;
		}
		*done = at + n;
	}
	bpf_iter_num_destroy(&pages);
	if (!(*got & GOT_PAGE))
		s->stack_len = 0;
}

/* Copies what plan_regions found to the end of the record, the list of it first. */
INLINE void copy_regions(struct bpf_dynptr *ptr, struct sample *s, struct followed *r, __u32 off)
{
	struct bpf_iter_num it;
	__u64 list = r->count * sizeof(struct region);
	int *i;

	r->at = off + list;
	bpf_iter_num_new(&it, 0, MAX_REGIONS);
	while ((i = bpf_iter_num_next(&it))) {
		__u32 n = *i;
		if (n >= MAX_REGIONS || n >= r->count)
			break;
		struct region *one = &r->regions[n];
		__u32 room = (one->len + 7) & ~7U;
		one->off = r->at;
		if (bpf_probe_read_user_dynptr(ptr, one->off, one->len, (void *)one->addr))
			one->len = 0;
		r->at += room;
	}
	bpf_iter_num_destroy(&it);
	FORGET(list);
	if (list > 0 && list <= sizeof(r->regions) && !bpf_dynptr_write(ptr, off, r->regions, list, 0)) {
		s->regions = r->count;
		s->regions_off = off;
	}
}

INLINE int take_exact(struct plan *p, struct head *h, struct user_regs *regs, struct chain *chain, struct followed *r, __u32 kernel_bytes)
{
	struct bpf_dynptr ptr;
	struct sample *s;
	__u32 regions = r->count * sizeof(struct region) + r->bytes;

	if (bpf_ringbuf_reserve_dynptr(&ring, sizeof(*s) + kernel_bytes + p->len + p->other_len + regions, 0, &ptr)) {
		bpf_ringbuf_discard_dynptr(&ptr, BPF_RB_NO_WAKEUP);
		count_lost();
		return 0;
	}
	s = bpf_dynptr_data(&ptr, 0, sizeof(*s));
	if (!s) {
		bpf_ringbuf_discard_dynptr(&ptr, BPF_RB_NO_WAKEUP);
		return 0;
	}
	fill(s, p, h, regs, kernel_bytes);
	s->stack_off = sizeof(*s) + kernel_bytes;
	__u64 kernel_size = kernel_bytes;
	FORGET(kernel_size);
	if (kernel_size > 0 && kernel_size <= sizeof(*chain))
		bpf_dynptr_write(&ptr, sizeof(*s), chain, kernel_size, 0);
	if (p->len)
		exact_copy(&ptr, s, p, sizeof(*s) + kernel_bytes);
	if (p->other_len) {
		__u32 off = sizeof(*s) + kernel_bytes + p->len;
		if (bpf_probe_read_user_dynptr(&ptr, off, p->other_len, (void *)p->other) == 0) {
			s->other_addr = p->other;
			s->other_len = p->other_len;
			s->other_off = off;
			s->other_pc = p->other_pc;
		}
	}
	if (r->count)
		copy_regions(&ptr, s, r, sizeof(*s) + kernel_bytes + p->len + p->other_len);
	if (!s->stack_len)
		p->flags |= STACK_UNREAD;
	s->flags = p->flags | (s->flags & STACK_HOLES);
	bpf_ringbuf_submit_dynptr(&ptr, wakeup());
	return 0;
}

/* The record has room for size bytes and a page more, which only the verifier
 * needs; a read that fails leaves zeros. */
INLINE void sized_copy(struct sample *s, struct plan *p, __u8 *to, __u32 size)
{
	__u64 from = p->from, len = p->len;
	volatile __u32 *done = &s->stack_len, *got = &s->flags;

	FORGET(len);
	if (len > size)
		len = size;
	if (bpf_probe_read_user(to, len, (void *)from) == 0) {
		s->stack_len = len;
		return;
	}
	for (int i = 0; i < size / PAGE + 2; i++) {
		__u64 at = *done;
		if (at >= len)
			break;
		__u64 n = rest_of_page(from + at, len - at);
		FORGET(n);
		FORGET(at);
		at &= size - 1;
		if (n > PAGE)
			break;
		if (bpf_probe_read_user(to + at, n, (void *)(from + at)) == 0)
			*got |= GOT_PAGE;
		else if (from + at + n > p->sp)
			*got |= STACK_HOLES;
		*done = at + n;
	}
	if (!(*got & GOT_PAGE))
		s->stack_len = 0;
}

#define SIZED(size)                                                                                        \
	if (p->len <= (size)) {                                                                            \
		struct sized_##size {                                                                      \
			struct sample s;                                                                   \
			struct chain chain;                                                                \
			__u8 stack[size + PAGE];                                                               \
		} *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);                                          \
		if (!r) {                                                                                  \
			count_lost();                                                                      \
			return 0;                                                                          \
		}                                                                                          \
		fill(&r->s, p, h, regs, kernel_bytes);                                                    \
		r->s.stack_off = sizeof(struct sample) + sizeof(struct chain);                             \
		__u64 kernel_size = kernel_bytes;                                                          \
		FORGET(kernel_size);                                                                       \
		if (kernel_size > 0 && kernel_size <= sizeof(*chain))                                      \
			bpf_probe_read_kernel(&r->chain, kernel_size, chain);                              \
		if (p->len)                                                                                \
			sized_copy(&r->s, p, r->stack, size);                                              \
		if (!r->s.stack_len)                                                                       \
			p->flags |= STACK_UNREAD;                                                          \
		r->s.flags = p->flags | (r->s.flags & STACK_HOLES);                                                                 \
		bpf_ringbuf_submit(r, wakeup());                                                           \
		return 0;                                                                                  \
	}

INLINE int take_sized(struct plan *p, struct head *h, struct user_regs *regs, struct chain *chain, __u32 kernel_bytes)
{
	SIZED(2048)
	SIZED(4096)
	SIZED(8192)
	SIZED(16384)
	SIZED(32768)
	SIZED(65536)
	SIZED(131072)
	SIZED(262144)
	SIZED(524288)
	return 0;
}

/* The number of the system call that registers are of, plus 1; 0: of none. */
INLINE __u32 syscall_of(struct task_struct *task, struct user_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	/* Interrupts and faults put something below zero there. */
	__s64 nr = regs->orig_ax;
#else
	__s32 nr = -1;
	bpf_probe_read_kernel(&nr, sizeof(nr), &bpf_task_pt_regs(task)->syscallno);
#endif
	return nr < 0 || nr > 0xffff ? 0 : nr + 1;
}

/* What the reader knows of the program that a process runs, 0: nothing. */
INLINE struct known *known_of(__u32 pid, __u64 program)
{
	struct known *k = bpf_map_lookup_elem(&known, &pid);
	return k && k->program == program ? k : 0;
}

/*
 * Copies and lets go. How the stack gets into the ring differs: `exact` reserves
 * just what is needed (6.16 and later), otherwise there are records of fixed
 * sizes. The caller passes a constant, so that each program holds one way only.
 */
INLINE int take(struct task_struct *task, struct work *w, __s64 kernel_bytes, __u64 program, int exact)
{
	struct plan *p = &w->plan;
	struct user_regs *regs = &w->regs;

	w->followed.at = w->followed.count = w->followed.bytes = 0;
	if (PC(regs) == 0)
		p->flags |= NO_USER;
	else
		make_plan(p, task, SP(regs), GO_G(regs));
	/* Where there is no Go, what its register holds is as good as any address, and
	 * each that cannot be read costs the thread a fault of the processor. */
	if (exact && PC(regs)) {
		struct known *k = known_of(w->head.pid, program);
		if (!k || !k->goless)
			plan_other(w, thread_pointer(task));
		if (k && k->follow)
			plan_regions(w, thread_pointer(task), k->follow);
	}
	__u32 n = kernel_bytes;
	FORGET(n);
	if (n > KERNEL_DEPTH * 8)
		n = 0;
	if (exact)
		take_exact(p, &w->head, regs, &w->chain, &w->followed, n);
	else
		take_sized(p, &w->head, regs, &w->chain, n);
	count_spent(w->head.time);
	return 0;
}

/* Where to work out a sample that comes of itself, 0: nowhere. */
INLINE struct work *work_at(__u32 slot, struct head *h)
{
	struct work *w = bpf_map_lookup_elem(&scratch, &slot);
	if (!w)
		return 0;
	__builtin_memset(&w->plan, 0, sizeof(w->plan));
	w->head = *h;
	return w;
}

/* The same for a thread that is in the kernel: with its user registers. */
INLINE struct work *work_in_kernel(__u32 slot, struct head *h, struct task_struct *task)
{
	struct work *w = work_at(slot, h);
	if (!w)
		return 0;
	w->plan.flags |= IN_KERNEL;
	__builtin_memset(&w->regs, 0, sizeof(w->regs));
	if (task->flags & PF_KTHREAD)
		return w;
	bpf_probe_read_kernel(&w->regs, sizeof(w->regs), bpf_task_pt_regs(task));
	w->head.syscall = syscall_of(task, &w->regs);
	return w;
}

/* The kernel's part of the current thread's stack, bytes. */
#define KERNEL_CHAIN(ctx, w, skip)                                                                         \
	({                                                                                                 \
		__s64 got = bpf_get_stack((ctx), &(w)->chain, KERNEL_DEPTH * 8, (skip));                   \
		got > 0 ? got : 0;                                                                         \
	})
