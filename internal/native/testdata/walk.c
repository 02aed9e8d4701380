// Calls of every shape that compilers make, between two breakpoints. The test
// steps through it instruction by instruction.
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile long sink;
static jmp_buf env;

NOINLINE long leaf(long a) { return a * 3 + 1; }

NOINLINE long small(long a) {
	long v = leaf(a) + leaf(a + 1);
	sink = v;
	return v;
}

NOINLINE long tail(long a) {
	if (a & 1)
		return small(a + 2);
	return leaf(a);
}

NOINLINE long registers(long a, long b, long c, long d, long e, long f) {
	long x = leaf(a), y = leaf(b), z = leaf(c), u = leaf(d), v = leaf(e), w = leaf(f);
	for (int i = 0; i < 3; i++) {
		long t = tail(x + i);
		x += y ^ t;
		y += z;
		z += u;
		u += v;
		v += w;
	}
	return x + y + z + u + v + w;
}

NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
	return small(a + b + c + d + e + f + g + h + i);
}

NOINLINE long dynamic(int n) {
	char *p = alloca(n);
	memset(p, n, n);
	long s = 0;
	for (int i = 0; i < n; i += 16)
		s += small(p[i]);
	if (n > 32)
		s += dynamic(n / 2);
	return s;
}

NOINLINE long large(long a) {
	volatile char b[20000];
	b[0] = a;
	b[19999] = small(a);
	return b[0] + b[19999];
}

struct __attribute__((aligned(64))) wide { double v[16]; };
NOINLINE long aligned(long a) {
	volatile struct wide w;
	w.v[3] = a;
	return small(w.v[3]) + (long)w.v[3];
}

NOINLINE long variadic(int n, ...) {
	va_list ap;
	va_start(ap, n);
	long s = 0;
	while (n--)
		s += small(va_arg(ap, long));
	va_end(ap);
	return s;
}

NOINLINE long recurse(int n) {
	if (n == 0)
		return leaf(n);
	return recurse(n - 1) + n + (sink & 1);
}

NOINLINE long choose(int k, long a) {
	switch (k) {
	case 0: return small(a) + 1;
	case 1: return leaf(a) * 2;
	case 2: sink = small(a); return large(a) + 7;
	case 3: return tail(a) - 3;
	case 4: sink += leaf(a); return 9;
	case 5: return many(1, 2, 3, 4, 5, 6, 7, 8, a) * 5;
	case 6: return small(sink) ^ 77;
	}
	return -1;
}

static int compare(const void *a, const void *b) {
	return (int)leaf(*(const int *)a) - (int)leaf(*(const int *)b);
}

NOINLINE void thrower(int n) {
	if (n == 0)
		longjmp(env, 1);
	thrower(n - 1);
	sink++;
}

NOINLINE long jumper(void) {
	if (setjmp(env) == 0)
		thrower(5);
	return small(sink);
}

static void handler(int sig) { sink += small(sig); }

NOINLINE long loop(long n) {
	for (;;) {
		if (n > 6 && small(n) > 4)
			break;
		n++;
	}
	return n;
}

typedef long (*fn)(long);
static volatile fn pointers[3] = {leaf, small, tail};

NOINLINE long work(FILE *out) {
	long s = 0;
	s += registers(1, 2, 3, 4, 5, 6);
	s += many(1, 2, 3, 4, 5, 6, 7, 8, 9);
	s += dynamic(100);
	s += large(4);
	s += aligned(5);
	s += variadic(4, 1L, 2L, 3L, 4L);
	s += recurse(10);
	for (int k = 0; k < 8; k++)
		s += choose(k, k);
	for (int k = 0; k < 3; k++)
		s += pointers[k](k + 1);
	int a[] = {5, 3, 8, 1, 9, 2};
	qsort(a, 6, sizeof a[0], compare);
	s += jumper();
	s += loop(1);
	struct timespec ts; // by the vdso
	clock_gettime(CLOCK_MONOTONIC, &ts);
	s += ts.tv_nsec & 1;
	raise(SIGUSR1);
	raise(SIGUSR2);
	fprintf(out, "%ld %g %s\n", s, (double)s / 3, "text");
	return s;
}

// deep calls itself with frames of 48 bytes or more and stops at the bottom.
NOINLINE long deep(int n) {
	volatile long here[3] = {n, n + 1, n + 2};
	if (n == 0) {
		__asm__ volatile("int3");
		return here[1];
	}
	return deep(n - 1) + here[sink & 1];
}

int main(int argc, char **argv) {
	if (argc > 1)
		return deep(atoi(argv[1]));
	FILE *out = fopen("/dev/null", "w");
	static char stack[65536];
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
	sigaltstack(&ss, 0);
	struct sigaction sa = {.sa_handler = handler};
	sigaction(SIGUSR1, &sa, 0);
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &sa, 0);
	__asm__ volatile("int3");
	sink = work(out);
	__asm__ volatile("int3");
	return 0;
}
