/* Two hundred threads, or as many as asked for, that want one CPU, until its standard input ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *spin(void *arg)
{
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

int main(int argc, char **argv)
{
	cpu_set_t all, one;
	pthread_t t;
	char c;
	int cpu = 0;
	sched_getaffinity(0, sizeof all, &all);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	for (int i = argc > 1 ? atoi(argv[1]) : 200; i > 0; i--)
		if (pthread_create(&t, 0, spin, 0) || pthread_setaffinity_np(t, sizeof one, &one))
			return 1;
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	return 0;
}
