/* Five thousand threads that wait, half of them waking every second; one that
 * works; and one that works ten thousand calls deep. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

static void *idle(void *ms)
{
	for (;;)
		poll(0, 0, (long)ms);
}

static void *busy(void *arg)
{
	for (;;)
		for (volatile int i = 0; i < 100000; i++);
}

static int __attribute__((noinline)) deep(int n)
{
	volatile char pad[64];
	pad[0] = n;
	if (n == 0)
		busy(0);
	return deep(n - 1) + pad[0];
}

static void *recursive(void *arg) { return (void *)(long)deep(10000); }

int main(void)
{
	pthread_attr_t small;
	pthread_t t;
	long made = 0;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (long i = 0; i < 5000; i++)
		made += pthread_create(&t, &small, idle, (void *)(i % 2 ? 1000 : 100000L)) == 0;
	pthread_create(&t, 0, busy, 0);
	pthread_create(&t, 0, recursive, 0);
	printf("%ld threads\n", made);
	fflush(stdout);
	getchar();
	printf("end\n");
}
