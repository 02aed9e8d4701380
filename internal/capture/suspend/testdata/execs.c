/* Becomes itself again and again, each time from another thread's hands or its
 * own, with others running. Argument: how often. Then it says "done". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **args;

static void *spin(void *arg)
{
	for (;;)
		for (volatile int i = 0; i < 1000; i++);
	return arg;
}

static void *again(void *arg)
{
	for (volatile int i = 0; i < 3000000; i++);
	execv("/proc/self/exe", args);
	perror("exec");
	exit(1);
}

int main(int argc, char **argv)
{
	char left[16];
	int n = atoi(argv[1]);
	pthread_t t;
	if (n < 0) { /* the first time */
		n = -n;
		printf("ready\n");
		fflush(stdout);
	}
	if (n == 0) {
		printf("done\n");
		fflush(stdout);
		getchar();
		return 0;
	}
	snprintf(left, sizeof left, "%d", n - 1);
	args = (char *[]){argv[0], left, 0};
	if (pthread_create(&t, 0, spin, 0) || pthread_create(&t, 0, spin, 0)) {
		perror("pthread_create");
		return 1;
	}
	if (n % 2)
		again(0);
	if (pthread_create(&t, 0, again, 0)) {
		perror("pthread_create");
		return 1;
	}
	pthread_join(t, 0);
}
