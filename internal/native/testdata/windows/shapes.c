/* Shapes of frames that compilers for Windows make. The program waits for a line, and works between
 * two breakpoints. */
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

volatile long sink;
typedef struct { long a, b, c, d, e; } five;

NOINLINE long leaf(long n) { return n * 3 + 1; }
NOINLINE long small(long n) { return leaf(n) + leaf(n + 1); }
NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h) { return a + leaf(b) * c - d + leaf(e) + f * g - h; }
NOINLINE long variadic(int n, ...) {
	va_list l;
	long s = 0;
	va_start(l, n);
	for (int i = 0; i < n; i++) s += leaf(va_arg(l, long));
	va_end(l);
	return s;
}
NOINLINE five returned(long n) {
	five f = {n, leaf(n), n + 2, n + 3, leaf(n + 4)};
	return f;
}
NOINLINE long dynamic(long n) {
	long *p = alloca(n * sizeof *p);
	for (long i = 0; i < n; i++) p[i] = leaf(i);
	long s = small(p[n / 2]);
	for (long i = 0; i < n; i++) s += p[i];
	return s;
}
NOINLINE long large(long n) {
	volatile char room[100000];
	room[n] = 1;
	room[99999 - n] = (char)leaf(n);
	return room[n] + small(n);
}
NOINLINE long middling(long n) {
	volatile char room[4000];
	room[n] = (char)leaf(n);
	return room[n] + leaf(n);
}
NOINLINE long tail(long n) { return n & 1 ? small(n + 1) : leaf(n - 1); }
NOINLINE long tails(long n) {
	long s = small(n);
	sink += s;
	return tail(s & 15);
}
NOINLINE long recursive(long n) { return n ? recursive(n - 1) + leaf(n) : 0; }
NOINLINE long selftail(long n, long s) {
	if (n == 0) return s;
	sink += small(n);
	return selftail(n - 1, s + n);
}
NOINLINE long early(long n, long *p) {
	if (n == 0) return 7; /* before anything is saved, if the compiler shrink-wraps */
	long a = small(n), b = small(a & 7), c = small(b & 7), d = leaf(c);
	*p = a + b + c + d;
	return a * b - c * d + *p;
}
NOINLINE long choose(long n) {
	switch (n) {
	case 0: return leaf(1);
	case 1: return small(2) + 1;
	case 2: return variadic(3, 1L, 2L, 3L);
	case 3: return many(1, 2, 3, 4, 5, 6, 7, 8);
	case 4: return dynamic(5);
	case 5: return middling(9);
	case 6: return tails(3);
	case 7: return recursive(3);
	}
	return 0;
}
NOINLINE double floating(double x, double y, double z, double w) {
	double a = x * y, b = z * w, c = sqrt(x + y), d = x - w, e = y - z, f = z / (w + 1);
	sink += leaf((long)a);
	return a + b * c - d * e / f + sin(x);
}
typedef long (*function)(long);
function table[] = {leaf, small, tail, tails, recursive, large, middling, dynamic};
NOINLINE long through(int i, long n) { return table[i](n) + 1; }
NOINLINE long throughTail(int i, long n) { return table[i](n); }
int compare(const void *a, const void *b) { return (int)(leaf(*(const long *)a) - leaf(*(const long *)b)); }
NOINLINE long library(void) {
	char text[200];
	long v[24];
	for (long i = 0; i < 24; i++) v[i] = (i * 7919) % 24;
	qsort(v, 24, sizeof v[0], compare);
	sprintf(text, "%ld %s %5.2f %08x", v[3], "text", 3.25, 0x1234);
	char *copy = malloc(strlen(text) + 1);
	strcpy(copy, text);
	long s = strtol(copy, 0, 10) + (long)strlen(copy);
	free(copy);
	return s;
}
jmp_buf place;
NOINLINE void jumps(long n) {
	if (n == 0) longjmp(place, 1);
	jumps(n - 1);
	sink++;
}
NOINLINE long jumped(void) {
	if (setjmp(place) == 0) jumps(4);
	return small(3);
}
NOINLINE void work(void) {
	long p = 0;
	for (long i = 0; i < 8; i++) sink += choose(i) + through((int)i, 3) + throughTail((int)i, 5) + early(i & 3, &p);
	five f = returned(3);
	sink += f.a + f.e + large(50) + selftail(4, 0) + (long)floating(1.5, 2.5, 3.5, 4.5);
	sink += library();
#ifdef JUMPS
	sink += jumped();
#endif
}
int main(void) {
	puts("ready");
	fflush(stdout);
	getchar();
	__asm__ volatile("int3");
	work();
	__asm__ volatile("int3");
	return 0;
}
