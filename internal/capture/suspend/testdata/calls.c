/* A thread for each call that waits, in each of which a stop that came at the
 * wrong moment would end it with EINTR. Argument: rounds of work between two
 * calls. At the end of input: how often it happened, of how many calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 8 };
static volatile long broken[KINDS], calls[KINDS];
static volatile int stop;
static long rounds;

static void *run(void *arg)
{
	long kind = (long)arg;
	int epoll = epoll_create1(0), pair[2], futex = 0;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	struct timeval soon = {0, 1000};
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in any = {.sin_family = AF_INET};
	bind(listener, (void *)&any, sizeof any);
	listen(listener, 1);
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
	int sem = semget(IPC_PRIVATE, 1, 0600);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 3);
	pthread_sigmask(SIG_BLOCK, &set, 0);
	struct timespec ms = {0, 1000000};
	struct epoll_event event;
	struct pollfd fd = {pair[0], POLLIN, 0};
	struct sembuf down = {0, -1, 0};
	char c;

	while (!stop) {
		for (volatile long i = 0; i < rounds; i++);
		long r = -1;
		errno = 0;
		switch (kind) {
		case 0: r = epoll_wait(epoll, &event, 1, 1); break;
		case 1: r = recv(pair[0], &c, 1, 0); break;
		case 2: r = sigtimedwait(&set, 0, &ms); break;
		case 3: r = semtimedop(sem, &down, 1, &ms); break;
		case 4: r = poll(&fd, 1, 1); break;
		case 5: r = syscall(SYS_futex, &futex, FUTEX_WAIT, 0, &ms, 0, 0); break;
		case 6: r = nanosleep(&ms, 0); break;
		case 7: r = accept(listener, 0, 0); break;
		}
		calls[kind]++;
		if (r < 0 && errno == EINTR)
			broken[kind]++;
	}
	semctl(sem, 0, IPC_RMID);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *names[KINDS] = {"epoll_wait", "recv", "sigtimedwait", "semop", "poll", "futex", "nanosleep", "accept"};
	pthread_t threads[KINDS];
	rounds = argc > 1 ? atol(argv[1]) : 0;
	for (long i = 0; i < KINDS; i++)
		pthread_create(&threads[i], 0, run, (void *)i);
	printf("ready\n");
	fflush(stdout);
	getchar();
	stop = 1;
	long all = 0, sum = 0;
	for (int i = 0; i < KINDS; i++) {
		pthread_join(threads[i], 0);
		all += broken[i];
		sum += calls[i];
	}
	printf("%ld of %ld broken:", all, sum);
	for (int i = 0; i < KINDS; i++)
		printf(" %s %ld/%ld", names[i], broken[i], calls[i]);
	printf("\n");
}
