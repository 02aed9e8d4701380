/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The little of the kernel that capture.c uses, written by hand: helper
 * numbers (linux/bpf.h), register layouts (asm/ptrace.h), and the few fields of
 * kernel structures that it reads. The structures carry
 * preserve_access_index, so the loader puts the running kernel's own offsets in
 * place; only the names and the kinds of the fields matter here.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define KFUNC __attribute__((section(".ksyms")))
#define RELOCATED __attribute__((preserve_access_index))

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

/* Kinds of map and flags, linux/bpf.h. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

/* Registers as the kernel hands them to a program: the user ABI's layout,
 * which is also how struct pt_regs begins. */
#if defined(__TARGET_ARCH_x86)
struct user_regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	__u64 ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
#else
#error "only x86-64 and arm64"
#endif

struct bpf_perf_event_data {
	struct user_regs regs;
	__u64 sample_period;
	__u64 addr;
};

struct bpf_perf_event_value {
	__u64 counter, enabled, running;
};

/* Fields of kernel structures. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs;
#else
struct pt_regs {
	__s32 syscallno;
} RELOCATED;
#endif

struct ns_common {
	__u32 inum;
} RELOCATED;

struct pid_namespace {
	struct ns_common ns;
} RELOCATED;

struct upid {
	__s32 nr;
	struct pid_namespace *ns;
} RELOCATED;

struct pid {
	__u32 level;
	struct upid numbers[1];
} RELOCATED;

struct mm_struct {
	unsigned long start_stack;
} RELOCATED;

typedef struct {
	__s32 counter;
} RELOCATED atomic_t;

struct signal_struct {
	atomic_t live;
	unsigned int flags;
	int group_exit_code;
} RELOCATED;

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
} RELOCATED;
#else
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
} RELOCATED;
#endif

struct sched_info {
	unsigned long long run_delay;
} RELOCATED;

struct sched_entity {
	unsigned long long sum_exec_runtime;
} RELOCATED;

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	struct sched_entity se;
	struct sched_info sched_info;
	__s32 pid;
	__s32 tgid;
	struct mm_struct *mm;
	struct signal_struct *signal;
	int on_cpu;
	int exit_code;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
	struct thread_struct thread;
} RELOCATED;

struct super_block {
	__u32 s_dev;
} RELOCATED;

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
} RELOCATED;

struct file {
	struct inode *f_inode;
} RELOCATED;

struct linux_binprm {
	struct file *file;
} RELOCATED;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
} RELOCATED;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} RELOCATED;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} RELOCATED;

/* Helpers, by their numbers in linux/bpf.h, with the kernel that brought them. */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static __u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static long (*bpf_get_stack)(void *ctx, void *buf, __u32 size, __u64 flags) = (void *)67;		    /* 4.18 */
static long (*bpf_probe_read_user)(void *dst, __u32 size, const void *from) = (void *)112;		    /* 5.5 */
static long (*bpf_probe_read_kernel)(void *dst, __u32 size, const void *from) = (void *)113;		    /* 5.5 */
static long (*bpf_probe_read_kernel_str)(void *dst, __u32 size, const void *from) = (void *)115;	    /* 5.5 */
static long (*bpf_seq_write)(struct seq_file *seq, const void *data, __u32 len) = (void *)127;		    /* 5.7 */
static void *(*bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)131;			    /* 5.8 */
static void (*bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;				    /* 5.8 */
static __u64 (*bpf_ringbuf_query)(void *ring, __u64 flags) = (void *)134;				    /* 5.8 */
static long (*bpf_perf_prog_read_value)(struct bpf_perf_event_data *ctx, struct bpf_perf_event_value *value, __u32 size) = (void *)56;
static long (*bpf_get_task_stack)(struct task_struct *task, void *buf, __u32 size, __u64 flags) = (void *)141; /* 5.9 */
static void *(*bpf_task_storage_get)(void *map, struct task_struct *task, void *value, __u64 flags) = (void *)156; /* 5.11 */
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;				    /* 5.11 */
static __u64 (*bpf_get_attach_cookie)(void *ctx) = (void *)174;						    /* 5.15 */
static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;			    /* 5.15 */
static long (*bpf_find_vma)(struct task_struct *task, __u64 addr, void *fn, void *ctx, __u64 flags) = (void *)180; /* 5.17 */
static long (*bpf_ringbuf_reserve_dynptr)(void *ring, __u32 size, __u64 flags, struct bpf_dynptr *ptr) = (void *)198; /* 5.19 */
static void (*bpf_ringbuf_submit_dynptr)(struct bpf_dynptr *ptr, __u64 flags) = (void *)199;
static void (*bpf_ringbuf_discard_dynptr)(struct bpf_dynptr *ptr, __u64 flags) = (void *)200;
static long (*bpf_dynptr_write)(const struct bpf_dynptr *dst, __u32 offset, void *src, __u32 len, __u64 flags) = (void *)202;
static void *(*bpf_dynptr_data)(const struct bpf_dynptr *ptr, __u32 offset, __u32 len) = (void *)203;

/* Since 6.16: a copy of user memory of any length, straight into a record. */
extern int bpf_probe_read_user_dynptr(struct bpf_dynptr *dst, __u64 off, __u64 size, const void *from) KFUNC;

/* Since 6.4: a loop that the verifier goes through only until nothing changes. */
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) KFUNC;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) KFUNC;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) KFUNC;
