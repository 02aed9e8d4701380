/*
 * Threads that compute for RUN us and then sleep for SLEEP us, again and again: duty THREADS
 * RUN SLEEP. It says where work lies, and what part of the CPU time that a thread uses is in
 * it, per thousand: less than all, for going to sleep takes some too. The threads begin when
 * a byte comes to the standard input, and stay asleep for good after the next one, which is
 * answered by a line. They make no other calls: each is a place where the kernel likes to
 * switch.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long ns;

static long run, rest;
static unsigned long perMicro; /* loops */
static volatile int over;
static int there, ended;
static pthread_barrier_t begin;
extern char __start_worked[], __stop_worked[];

static ns now(clockid_t c)
{
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

__attribute__((noinline, section("worked"))) void work(unsigned long loops)
{
	for (volatile unsigned long i = loops; i > 0; i--)
		;
}

__attribute__((noinline)) void nap(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };
	nanosleep(&t, 0);
	asm volatile("");
}

static void *body(void *arg)
{
	__atomic_add_fetch(&there, 1, __ATOMIC_SEQ_CST);
	pthread_barrier_wait(&begin);
	while (!over) {
		work(run * perMicro);
		if (rest > 0)
			nap(rest);
	}
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return arg;
}

/* The part of its CPU time that a thread is in work, per thousand. */
static int share(void)
{
	ns worked = 0, began = now(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < 50; i++) {
		ns from = now(CLOCK_THREAD_CPUTIME_ID);
		work(run * perMicro);
		worked += now(CLOCK_THREAD_CPUTIME_ID) - from;
		if (rest > 0)
			nap(rest < 20000 ? rest : 20000);
	}
	return worked * 1000 / (now(CLOCK_THREAD_CPUTIME_ID) - began);
}

int main(int argc, char **argv)
{
	pthread_t t[4096];
	pthread_attr_t small;
	char c;
	int n = argc > 3 ? atoi(argv[1]) : 0;
	if (n < 1 || n > 4096)
		return 1;
	run = atol(argv[2]);
	rest = atol(argv[3]);
	for (int i = 0; i < 5; i++) {
		ns from = now(CLOCK_THREAD_CPUTIME_ID);
		work(1000000);
		unsigned long loops = 1e9 / (now(CLOCK_THREAD_CPUTIME_ID) - from);
		if (loops > perMicro)
			perMicro = loops;
	}
	int part = share();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_barrier_init(&begin, 0, n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], &small, body, 0))
			return 1;
	while (__atomic_load_n(&there, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
	printf("%p %p %d\n", (void *)__start_worked, (void *)__stop_worked, part);
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 0;
	pthread_barrier_wait(&begin);
	if (read(0, &c, 1) != 1)
		return 0;
	over = 1;
	while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < n)
		usleep(1000);
	puts("over");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	return 0;
}
