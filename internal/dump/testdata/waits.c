/* Threads that wait in known calls, and one that does not. Each has the name of
 * its function. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long n;
static int ends[2];

static void name(const char *s) { pthread_setname_np(pthread_self(), s); }

void *reads(void *arg)
{
	char c;
	name("reads");
	while (read(ends[0], &c, 1) > 0)
		n++;
	return arg;
}

void *sleeps(void *arg)
{
	name("sleeps");
	for (;;) {
		sleep(3600);
		n++;
	}
	return arg;
}

void *locks(void *arg)
{
	name("locks");
	pthread_mutex_lock(&held);
	n++;
	return arg;
}

void *spins(void *arg)
{
	name("spins");
	for (;;)
		n++;
	return arg;
}

int polls(void)
{
	struct pollfd p = {ends[0], POLLPRI, 0};
	int r = poll(&p, 1, -1);
	n++;
	return r;
}

int main(void)
{
	pthread_t t;
	pthread_mutex_lock(&held);
	if (pipe(ends))
		return 1;
	pthread_create(&t, NULL, reads, NULL);
	pthread_create(&t, NULL, sleeps, NULL);
	pthread_create(&t, NULL, locks, NULL);
	pthread_create(&t, NULL, spins, NULL);
	name("polls");
	usleep(200000);
	puts("ready");
	fflush(stdout);
	return polls();
}
