/* Waits in epoll_wait for ever. At the end of input: how many signals were
 * handled, how many calls they broke off, how many calls ended otherwise. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static volatile long handled;

static void on_signal(int sig) { handled++; }

int main(void)
{
	int epoll = epoll_create1(0);
	struct epoll_event in = {.events = EPOLLIN}, event;
	long broken = 0, ended = 0;
	signal(SIGUSR1, on_signal);
	epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &in);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll, &event, 1, -1);
		if (n == 1)
			break;
		if (n < 0 && errno == EINTR)
			broken++;
		else
			ended++;
	}
	printf("%ld handled %ld broken %ld ended\n", handled, broken, ended);
	return 0;
}
