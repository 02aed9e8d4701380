/* A thousand threads a second, each of which works for a fifth of a millisecond, while
 * the first one works on. At the end of input: how many there were. */
#include <pthread.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

static long at(clockid_t c)
{
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *brief(void *arg)
{
	while (at(CLOCK_THREAD_CPUTIME_ID) < 200000);
	return 0;
}

static void *steady(void *arg)
{
	for (;;)
		for (volatile int i = 0; i < 100000; i++);
}

int main(void)
{
	pthread_t t;
	pthread_attr_t detached;
	struct pollfd in = {0, POLLIN, 0};
	long made = 0, first;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_create(&t, &detached, steady, 0);
	printf("ready\n");
	fflush(stdout);
	first = at(CLOCK_MONOTONIC);
	while (poll(&in, 1, 1) == 0)
		for (int n = 0; n < 20 && made < (at(CLOCK_MONOTONIC) - first) / 1000000; n++)
			made += pthread_create(&t, &detached, brief, 0) == 0;
	printf("%ld threads\n", made);
}
