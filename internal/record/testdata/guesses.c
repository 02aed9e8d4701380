// A thread that calls code which it has generated itself, from two functions in turn, and sleeps half of
// the time. The code calls back into C code, which computes: its callers are guesses, in two ways.
// Argument: seconds.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

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

typedef void (*code)(void (*callback)(void));

__attribute__((noinline)) void one(code c) {
	c(computes);
	usleep(3000);
}

__attribute__((noinline)) void other(code c) {
	c(computes);
	usleep(4000);
}

int main(int argc, char **argv) {
	// push %rbp; mov %rsp,%rbp; sub $32,%rsp; call *%rdi; leave; ret
	static const unsigned char calls[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3};
	char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(m, calls, sizeof calls);
	mprotect(m, 4096, PROT_READ | PROT_EXEC);
	double until = now() + (argc > 1 ? atof(argv[1]) : 1);
	while (now() < until) {
		one((code)m);
		other((code)m);
	}
	return 0;
}
