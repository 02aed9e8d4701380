/* A thousand threads that wait, each a little deeper in its stack than the one before, and two that
 * compute. The program prints its process id when all are there, and runs for so many seconds. */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
enum { many = 1000 };
static HANDLE never;
static volatile LONG there;
volatile long long sink;
NOINLINE void waits(int deep) {
	volatile char room[64];
	room[deep & 63] = 1;
	if (deep > 0) waits(deep - 1);
	else {
		InterlockedIncrement(&there);
		WaitForSingleObject(never, INFINITE);
	}
	sink += room[0];
}
DWORD WINAPI waiter(void *p) { waits((int)(INT_PTR)p % 20); return 0; }
NOINLINE long long leaf_spin(long long n) { long long s = 0; for (long long i = 0; i < n; i++) s += i ^ (s >> 3); return s; }
NOINLINE long long outer_call(long long n) { return leaf_spin(n) * 3; }
static DWORD end;
DWORD WINAPI computes(void *p) { (void)p; while ((int)(end - GetTickCount()) > 0) sink += outer_call(100000); return 0; }
int main(int argc, char **argv) {
	never = CreateEventA(0, 1, 0, 0);
	for (int i = 0; i < many; i++) {
		HANDLE h = CreateThread(0, 64 << 10, waiter, (void *)(INT_PTR)i, STACK_SIZE_PARAM_IS_A_RESERVATION, 0);
		if (!h) return 3;
		CloseHandle(h);
	}
	while (there < many) Sleep(1);
	end = GetTickCount() + 1000 * (argc > 1 ? atoi(argv[1]) : 5);
	HANDLE h = CreateThread(0, 0, computes, 0, 0, 0);
	printf("%lu\n", GetCurrentProcessId());
	fflush(stdout);
	computes(0);
	WaitForSingleObject(h, INFINITE);
	return 0;
}
