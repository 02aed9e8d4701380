/*
 * Threads that sleep below functions whose frames are found by the frame pointer:
 * a large one, and one whose size is not known before it runs.
 */
#include <alloca.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static pthread_barrier_t started;

NOINLINE int large_leaf(int n)
{
	char b[9000];
	memset(b, n, sizeof b);
	__asm__ volatile("" ::"r"(b) : "memory");
	int r = poll(0, 0, -1);
	return r + b[n];
}

NOINLINE int sized_later(int n)
{
	char *b = alloca(n * 100);
	memset(b, n, n * 100);
	__asm__ volatile("" ::"r"(b) : "memory");
	int r = poll(0, 0, -1);
	return r + b[n];
}

NOINLINE int caller(int n)
{
	char b[100];
	memset(b, n, sizeof b);
	__asm__ volatile("" ::"r"(b) : "memory");
	int r = n > 4 ? large_leaf(n) : sized_later(n);
	return r + b[n];
}

static void *large(void *arg)
{
	prctl(PR_SET_NAME, "large");
	pthread_barrier_wait(&started);
	return (void *)(long)caller(7);
}

static void *later(void *arg)
{
	prctl(PR_SET_NAME, "later");
	pthread_barrier_wait(&started);
	return (void *)(long)caller(3);
}

int main(void)
{
	pthread_t t;
	pthread_barrier_init(&started, 0, 3);
	pthread_create(&t, 0, large, 0);
	pthread_create(&t, 0, later, 0);
	pthread_barrier_wait(&started);
	puts("ready");
	fflush(stdout);
	return pause();
}
