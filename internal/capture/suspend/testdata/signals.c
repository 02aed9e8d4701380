/* Four threads that work while SIGUSR1 is sent to them again and again, each
 * one only after the last was handled. At the end of input: how many were sent,
 * how many handled, how many took longer than ten seconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4 };
static pthread_t threads[THREADS];
static volatile long sent[THREADS], handled[THREADS], late;
static volatile int stop;
static __thread long self;
static volatile int running;

static void on_signal(int sig) { handled[self]++; }

static void *work(void *arg)
{
	self = (long)arg;
	__sync_fetch_and_add(&running, 1);
	while (!stop)
		for (volatile int i = 0; i < 1000; i++);
	return 0;
}

static void *storm(void *arg)
{
	// A signal is counted for the thread that knows which it is.
	while (running < THREADS)
		sched_yield();
	for (long i = 0; !stop; i = (i + 1) % THREADS) {
		sent[i]++;
		pthread_kill(threads[i], SIGUSR1);
		for (int waits = 0; handled[i] < sent[i]; waits++) {
			struct timespec t = {0, 50000};
			nanosleep(&t, 0);
			if (waits > 100000) {
				late++;
				break;
			}
		}
	}
	return 0;
}

int main(void)
{
	pthread_t sender;
	signal(SIGUSR1, on_signal);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, work, (void *)i);
	pthread_create(&sender, 0, storm, 0);
	printf("ready\n");
	fflush(stdout);
	getchar();
	stop = 1;
	pthread_join(sender, 0);
	long all = 0, done = 0;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], 0);
		all += sent[i];
		done += handled[i];
	}
	printf("%ld sent %ld handled %ld late\n", all, done, late);
}
