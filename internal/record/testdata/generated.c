// Threads that run code which they have generated themselves, as the code of a runtime
// that nobody knows: with frame pointers, without, and as traps, where a false return address
// lies where a compiler would have put the true one. They have it in memory without a file,
// a trap also in memory that a file seems to be behind: shared, of memfd_create, of a file
// that was removed, and of the program's own, its data and its code. Each calls back into C code, which
// computes. Argument: seconds.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double until;

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) void computes(void) {
	volatile uint64_t x = 1;
	for (int i = 0; i < 2000000; i++)
		x = x * 6364136223846793005ull + 1;
}

// Never called; what is called invented stands on no stack.
__attribute__((noinline)) void inner(void) {
	__asm__ volatile("");
}
__attribute__((noinline)) void invented(void) {
	inner();
	__asm__ volatile(".globl decoy\ndecoy:");
}
extern char decoy[];

typedef void (*code)(void (*callback)(void), void *decoy);

// place is where code is generated.
enum place { anonymous, shared, memfd, removed, data, text };

struct kind {
	const char *name;
	enum place place;
	const unsigned char *bytes;
	size_t size;
	code run;
};

// push %rbp; mov %rsp,%rbp; sub $32,%rsp; call *%rdi; leave; ret
static const unsigned char with_fp[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3};

// sub $40,%rsp; call *%rdi; add $40,%rsp; ret
static const unsigned char without_fp[] = {0x48, 0x83, 0xec, 0x28, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x28, 0xc3};

// push %rbx; sub $32,%rsp; mov %rsi,(%rsp); lea out(%rip),%rbx; call *%rdi; jmp *%rbx;
// out: add $32,%rsp; pop %rbx; ret
static const unsigned char trap[] = {0x53, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0x34, 0x24, 0x48, 0x8d, 0x1d, 0x04, 0, 0, 0,
	0xff, 0xd7, 0xff, 0xe3, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3};

// sub $40,%rsp; mov %rsi,(%rsp); call *%rdi; cmp %rsp,%rsp; je out; ret;
// out: add $40,%rsp; ret
static const unsigned char untaken[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0x89, 0x34, 0x24, 0xff, 0xd7, 0x48, 0x39, 0xe4,
	0x74, 0x01, 0xc3, 0x48, 0x83, 0xc4, 0x28, 0xc3};

__attribute__((noinline)) void runs(struct kind *k) {
	while (now() < until)
		k->run(computes, decoy);
	__asm__ volatile("" ::: "memory");
}

// This is no code in the program's file, and lies in a mapping of it.
static char table[2 * 4096] __attribute__((aligned(4096))) = {1};

// Room among the program's code, which is written over.
__asm__(".pushsection .text\n.balign 4096\nroom: .skip 4096, 0x90\n.balign 4096\n.popsection");
extern char room[];

static char *memory(enum place place) {
	int flags = MAP_PRIVATE | MAP_ANONYMOUS, fd = -1;
	char path[] = "generated-XXXXXX";
	switch (place) {
	case anonymous:
		break;
	case shared:
		flags = MAP_SHARED | MAP_ANONYMOUS;
		break;
	case memfd:
		flags = MAP_SHARED;
		fd = memfd_create("code", 0);
		break;
	case removed:
		flags = MAP_SHARED;
		fd = mkstemp(path);
		unlink(path);
		break;
	case data:
		return table;
	case text:
		mprotect(room, 4096, PROT_READ | PROT_WRITE);
		return room;
	}
	if (fd >= 0 && ftruncate(fd, 4096))
		return 0;
	return mmap(0, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
}

static void *thread(void *arg) {
	struct kind *k = arg;
	pthread_setname_np(pthread_self(), k->name);
	runs(k);
	return 0;
}

int main(int argc, char **argv) {
	static struct kind kinds[] = {
		{"with-fp", anonymous, with_fp, sizeof with_fp, 0},
		{"without-fp", anonymous, without_fp, sizeof without_fp, 0},
		{"trap", anonymous, trap, sizeof trap, 0},
		{"trap-shared", shared, untaken, sizeof untaken, 0},
		{"trap-memfd", memfd, untaken, sizeof untaken, 0},
		{"trap-removed", removed, untaken, sizeof untaken, 0},
		{"trap-data", data, untaken, sizeof untaken, 0},
		{"trap-text", text, untaken, sizeof untaken, 0},
	};
	enum { n = sizeof kinds / sizeof *kinds };
	pthread_t t[n];
	if (argc < 0)
		invented();
	until = now() + (argc > 1 ? atof(argv[1]) : 1);
	for (int i = 0; i < n; i++) {
		char *m = memory(kinds[i].place);
		memcpy(m + 64, kinds[i].bytes, kinds[i].size);
		mprotect(m, 4096, PROT_READ | PROT_EXEC);
		kinds[i].run = (code)(m + 64);
		if (pthread_create(&t[i], 0, thread, &kinds[i]))
			return 1;
	}
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	return 0;
}
