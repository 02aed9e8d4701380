/* As many threads as asked for, all of which wait. Prints "ready". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *wait_idle(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&never, &lock);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_attr_t small;
	pthread_t t;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
		if (pthread_create(&t, &small, wait_idle, 0))
			return 1;
	puts("ready");
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}
