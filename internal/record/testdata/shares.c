/*
 * Threads that spend their time in known ways, from when a byte comes to the standard
 * input: whoever looks on has begun by then. At the end each prints a line:
 *   NAME TID FUNCTION asleep ran begin end run wait     (ns)
 * asleep is the time that its FUNCTION waited, without waiting for a CPU, and ran what
 * it ran; begin and end are when the thread's account begins and ends, by
 * CLOCK_MONOTONIC, run and wait how long it ran and waited for a CPU between, as the
 * kernel counts it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long ns;

static ns until;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2], never[2];

static ns now(clockid_t c)
{
	struct timespec t;
	clock_gettime(c, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static ns wall(void) { return now(CLOCK_MONOTONIC); }

struct account { int fd; ns start, run, wait, asleep, ran, from_wall, from_run, from_wait; };

static void kernel(struct account *a, ns *run, ns *wait)
{
	char b[100] = { 0 };
	now(CLOCK_THREAD_CPUTIME_ID); /* brings the file up to date */
	if (pread(a->fd, b, sizeof(b) - 1, 0) > 0)
		sscanf(b, "%llu %llu", run, wait);
}

/* All three at once: between them the thread did not wait for a CPU. */
static void clocks(struct account *a, ns *w, ns *run, ns *wait)
{
	ns again = 0;
	do {
		kernel(a, run, wait);
		*w = wall();
		kernel(a, run, &again);
	} while (again != *wait);
}

static void begin(struct account *a, const char *name)
{
	char path[64];
	memset(a, 0, sizeof(*a));
	prctl(PR_SET_NAME, name);
	sprintf(path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	a->fd = open(path, O_RDONLY);
	clocks(a, &a->start, &a->run, &a->wait);
}

static void before(struct account *a)
{
	clocks(a, &a->from_wall, &a->from_run, &a->from_wait);
}

static void after(struct account *a)
{
	ns w = 0, run = 0, wait = 0;
	clocks(a, &w, &run, &wait);
	a->asleep += w - a->from_wall - (run - a->from_run) - (wait - a->from_wait);
	a->ran += run - a->from_run;
}

static int ended;

/* Until the process ends. */
static void stay(void)
{
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static void end(struct account *a, const char *name, const char *function)
{
	ns w = 0, run = 0, wait = 0;
	clocks(a, &w, &run, &wait);
	/* Of a thread that never waits it may be some ns less than none. */
	printf("%s %ld %s %lld %llu %llu %llu %llu %llu\n", name, syscall(SYS_gettid), function, (long long)a->asleep, a->ran, a->start, w,
	       run - a->run, wait - a->wait);
	stay();
}

__attribute__((noinline)) void work(ns time)
{
	ns e = now(CLOCK_THREAD_CPUTIME_ID) + time;
	while (now(CLOCK_THREAD_CPUTIME_ID) < e)
		;
	asm volatile("");
}

__attribute__((noinline)) void take_a_nap(ns time)
{
	struct timespec t = { 0, time };
	nanosleep(&t, 0);
	asm volatile("");
}

__attribute__((noinline)) void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
	asm volatile("");
}

__attribute__((noinline)) void wait_for_data(void)
{
	char c;
	if (read(pipes[0], &c, 1) != 1)
		exit(1);
	asm volatile("");
}

static void *napper(void *arg)
{
	struct account a;
	begin(&a, "napper");
	while (wall() < until) {
		work(4000000);
		before(&a);
		take_a_nap(16000000);
		after(&a);
	}
	end(&a, "napper", "take_a_nap");
	return 0;
}

static void *shorter(void *arg)
{
	struct account a;
	begin(&a, "shorter");
	while (wall() < until) {
		work(50000);
		before(&a);
		take_a_nap(150000);
		after(&a);
	}
	end(&a, "shorter", "take_a_nap");
	return 0;
}

static void *holder(void *arg)
{
	prctl(PR_SET_NAME, "holder");
	while (wall() < until) {
		pthread_mutex_lock(&lock);
		take_a_nap(20000000);
		pthread_mutex_unlock(&lock);
		take_a_nap(10000000);
	}
	stay();
	return 0;
}

static void *locker(void *arg)
{
	struct account a;
	begin(&a, "locker");
	while (wall() < until) {
		before(&a);
		wait_for_lock();
		after(&a);
		pthread_mutex_unlock(&lock);
		work(2000000);
	}
	end(&a, "locker", "wait_for_lock");
	return 0;
}

static void *writer(void *arg)
{
	prctl(PR_SET_NAME, "writer");
	while (wall() < until) {
		take_a_nap(7000000);
		if (write(pipes[1], "x", 1) != 1)
			exit(1);
	}
	stay();
	return 0;
}

static void *reader(void *arg)
{
	struct account a;
	begin(&a, "reader");
	while (wall() < until) {
		before(&a);
		wait_for_data();
		after(&a);
		work(1000000);
	}
	end(&a, "reader", "wait_for_data");
	return 0;
}

static void *idler(void *arg)
{
	char c;
	prctl(PR_SET_NAME, "idler");
	return read(never[0], &c, 1) == 1 ? arg : 0;
}

static void *worker(void *arg)
{
	struct account a;
	begin(&a, "worker");
	while (wall() < until) {
		before(&a);
		work(10000000);
		after(&a);
	}
	end(&a, "worker", "work");
	return 0;
}

int main(int argc, char **argv)
{
	void *(*body[])(void *) = { napper, shorter, holder, locker, writer, reader, worker, idler };
	pthread_t t[8];
	if (argc < 2 || pipe(pipes) || pipe(never))
		return 1;
	struct pollfd begin = { .fd = 0, .events = POLLIN };
	while (poll(&begin, 1, 5) == 0)
		;
	until = wall() + (ns)(atof(argv[1]) * 1e9);
	setvbuf(stdout, 0, _IOLBF, 0);
	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], 0, body[i], 0);
	while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < 7)
		usleep(50000);
	usleep(200000);
	return 0;
}
