// Spins until its standard input ends, in its first thread.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *watch(void *arg)
{
	char c;
	while (read(0, &c, 1) > 0)
		;
	exit(0);
	return arg;
}

int main(void)
{
	pthread_t t;
	volatile unsigned long n = 0;
	pthread_create(&t, NULL, watch, NULL);
	puts("ready");
	fflush(stdout);
	for (;;)
		n++;
}
