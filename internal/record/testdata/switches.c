// On one CPU: sleeps for a moment again and again, one time in five in seldom, else in often.
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>

static void nap(void) {
	struct timespec t = {0, 100000};
	nanosleep(&t, 0);
}

__attribute__((noinline)) void seldom(void) { nap(); __asm__ volatile(""); }
__attribute__((noinline)) void often(void) { nap(); __asm__ volatile(""); }

int main(void) {
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof one, &one);
	for (int i = 0; i < 10000; i++) {
		if (i % 5 == 0)
			seldom();
		else
			often();
	}
	return 0;
}
