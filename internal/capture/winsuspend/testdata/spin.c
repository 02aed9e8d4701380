// Three threads: two that run a chain of calls, and one that the program itself has suspended.
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
volatile long long sink;
NOINLINE long long leaf_spin(long long n) { long long s = 0; for (long long i = 0; i < n; i++) s += i ^ (s >> 3); return s; }
NOINLINE long long middle_call(long long n) { char buf[256]; buf[n & 255] = 1; sink += buf[3]; return leaf_spin(n) + 1; }
NOINLINE long long outer_call(long long n) { return middle_call(n) * 3; }
static DWORD end;
DWORD WINAPI worker(void *p) { (void)p; while ((int)(end - GetTickCount()) > 0) sink += outer_call(100000); return 0; }
DWORD WINAPI sleeper(void *p) { (void)p; for (;;) Sleep(20); }
int main(int argc, char **argv) {
	end = GetTickCount() + 1000 * (argc > 1 ? atoi(argv[1]) : 5);
	HANDLE s = CreateThread(0, 0, sleeper, 0, 0, 0);
	Sleep(50);
	SuspendThread(s);
	HANDLE w = CreateThread(0, 0, worker, 0, 0, 0);
	printf("%lu\n", GetCurrentProcessId());
	fflush(stdout);
	worker(0);
	WaitForSingleObject(w, INFINITE);
	return 7;
}
