/*
 * Two threads of one CPU wake each other as fast as they can. For each 30,000
 * rounds prints what a switch takes, ns.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 30000 };

static int there[2], back[2];

static void stay(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *echo(void *arg)
{
	char c;
	stay();
	while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
		;
	return arg;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(void)
{
	pthread_t t;
	char c = 0;
	if (pipe(there) || pipe(back) || pthread_create(&t, 0, echo, 0))
		return 1;
	stay();
	setvbuf(stdout, 0, _IOLBF, 0);
	puts("ready");
	for (;;) {
		double begin = now();
		for (int i = 0; i < ROUNDS; i++)
			if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
				return 1;
		printf("%.1f\n", (now() - begin) / ROUNDS / 2);
	}
}
