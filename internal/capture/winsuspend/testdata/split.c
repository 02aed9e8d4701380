/* A program that knows its own split: five phases that do the same work for different lengths, in
 * random order. Each round has all of them, 200 ms long together; so their shares of the time are
 * 35, 25, 20, 12 and 8 percent. It prints its process id, and runs for so many seconds. */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
volatile unsigned long long sink;
NOINLINE unsigned long long burn(long long n) { unsigned long long s = n; for (long long i = 0; i < n; i++) s = s * 6364136223846793005ull + 1442695040888963407ull; return s; }
#define PHASE(x) NOINLINE void phase_##x(long long n) { sink += burn(n); sink ^= 1; }
PHASE(a) PHASE(b) PHASE(c) PHASE(d) PHASE(e)
static void (*const phases[])(long long) = {phase_a, phase_b, phase_c, phase_d, phase_e};
static const int percent[] = {35, 25, 20, 12, 8};
static long long now(void) { LARGE_INTEGER t, f; QueryPerformanceCounter(&t); QueryPerformanceFrequency(&f); return (long long)((double)t.QuadPart / (double)f.QuadPart * 1e9); }
int main(int argc, char **argv) {
	long long best = 1ll << 60;
	for (int i = 0; i < 20; i++) {
		long long begin = now();
		sink += burn(2000000);
		long long took = now() - begin;
		if (took < best) best = took;
	}
	double perms = 2000000.0 / ((double)best / 1e6);
	printf("%lu\n", GetCurrentProcessId());
	fflush(stdout);
	unsigned long long random = 42;
	for (long long end = now() + 1000000000ll * (argc > 1 ? atoi(argv[1]) : 5); now() < end;) {
		int order[5] = {0, 1, 2, 3, 4};
		for (int i = 4; i > 0; i--) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			int j = (int)((random >> 33) % (unsigned)(i + 1)), x = order[i];
			order[i] = order[j];
			order[j] = x;
		}
		for (int i = 0; i < 5; i++) phases[order[i]]((long long)(perms * 2 * percent[order[i]]));
	}
	return 0;
}
