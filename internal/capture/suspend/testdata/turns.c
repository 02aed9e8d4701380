/*
 * From the first byte of its input on it works and naps by turns. At the next one it
 * prints for how long it napped, ns, with the waits for a CPU at the end of each nap.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile int done;
static unsigned long long naps;

static unsigned long long now(clockid_t c)
{
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void *turns(void *arg)
{
	struct timespec nap = { 0, 5000000 };
	while (!done) {
		unsigned long long t = now(CLOCK_THREAD_CPUTIME_ID) + 5000000;
		while (now(CLOCK_THREAD_CPUTIME_ID) < t)
			;
		t = now(CLOCK_MONOTONIC);
		nanosleep(&nap, 0);
		naps += now(CLOCK_MONOTONIC) - t;
	}
	return arg;
}

int main(void)
{
	pthread_t t;
	char c;
	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) != 1 || pthread_create(&t, 0, turns, 0))
		return 1;
	if (read(0, &c, 1) != 1)
		return 1;
	done = 1;
	pthread_join(t, 0);
	printf("%llu\n", naps);
	fflush(stdout);
	return read(0, &c, 1) > 0;
}
