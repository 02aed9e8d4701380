/* A program that starts short copies of itself: brood PROCESSES MILLISECONDS, two at a time. Each
 * computes for that long. It prints how many it started, and how many ended as they should. */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
volatile long long sink;
NOINLINE long long leaf_short(long long n) { long long s = 0; for (long long i = 0; i < n; i++) s += i ^ (s >> 3); return s; }
NOINLINE long long short_life(long long n) { return leaf_short(n) + 1; }
static HANDLE begin(const char *self, const char *for_ms) {
	STARTUPINFOA s = {sizeof s};
	PROCESS_INFORMATION p;
	char line[1024];
	snprintf(line, sizeof line, "\"%s\" %s", self, for_ms);
	if (!CreateProcessA(self, line, 0, 0, 0, 0, 0, 0, &s, &p)) exit(3);
	CloseHandle(p.hThread);
	return p.hProcess;
}
int main(int argc, char **argv) {
	if (argc == 2) {
		for (DWORD end = GetTickCount() + atoi(argv[1]); (int)(end - GetTickCount()) > 0;) sink += short_life(20000);
		return 9;
	}
	char self[MAX_PATH];
	GetModuleFileNameA(0, self, sizeof self);
	int n = atoi(argv[1]), right = 0;
	for (int i = 0; i < n; i += 2) {
		HANDLE h[2] = {begin(self, argv[2]), begin(self, argv[2])};
		for (int k = 0; k < 2; k++) {
			DWORD code = 0;
			WaitForSingleObject(h[k], INFINITE);
			GetExitCodeProcess(h[k], &code);
			right += code == 9;
			CloseHandle(h[k]);
		}
	}
	printf("%d %d\n", n, right);
	return 0;
}
