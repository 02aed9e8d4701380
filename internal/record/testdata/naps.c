/* One thread sleeps for ever, and one for 1.3 s again and again. */
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void *naps(void *arg)
{
	prctl(PR_SET_NAME, "napper");
	for (;;) {
		struct timespec t = { 1, 300000000 };
		nanosleep(&t, 0);
	}
	return arg;
}

int main(void)
{
	prctl(PR_SET_NAME, "sleeper");
	pthread_t t;
	pthread_create(&t, 0, naps, 0);
	for (;;)
		pause();
}
