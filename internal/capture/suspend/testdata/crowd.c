/*
 * A thousand threads that wait all the time, and one that is in two places by
 * turns, for so long that it is taken for one of them. At the end of its input it
 * prints how long that one slept in either place, ns.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static int never[2];
static volatile int done;

static unsigned long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void *wait_for_ever(void *arg)
{
	char c;
	return read(never[0], &c, 1) == 1 ? arg : 0;
}

static unsigned long long naps, selects;

static void *wander(void *arg)
{
	while (!done) {
		unsigned long long t = now();
		struct timespec nap = { 1, 600000000 };
		nanosleep(&nap, 0);
		naps += now() - t;
		if (done)
			break;
		t = now();
		struct timeval limit = { 1, 200000 };
		select(0, 0, 0, 0, &limit);
		selects += now() - t;
	}
	return arg;
}

int main(void)
{
	pthread_t t, wanderer;
	pthread_attr_t a;
	char c;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	if (pipe(never))
		return 1;
	for (int i = 0; i < 1000; i++)
		if (pthread_create(&t, &a, wait_for_ever, 0))
			return 1;
	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 1;
	pthread_create(&wanderer, &a, wander, 0);
	puts("goes");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	done = 1;
	pthread_join(wanderer, 0);
	printf("%llu %llu\n", naps, selects);
	fflush(stdout);
	pause();
	return 0;
}
