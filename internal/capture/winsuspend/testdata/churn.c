/* A program that loads a library, works in it and frees it again, all the time: churn SECONDS
 * MILLISECONDS LIBRARY LIBRARY. It prints its process id. Compiled with -DPLUG=name it is such a
 * library, whose functions have the name in theirs. */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
#ifdef PLUG
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
volatile long long sink;
NOINLINE long long PASTE(PLUG, _leaf)(long long n) { long long s = 0; for (long long i = 0; i < n; i++) s += i ^ (s >> 3); return s; }
NOINLINE long long PASTE(PLUG, _middle)(long long n) { char room[256]; room[n & 255] = 1; sink += room[3]; return PASTE(PLUG, _leaf)(n) + 1; }
__declspec(dllexport) void works(DWORD end) { while ((int)(end - GetTickCount()) > 0) sink += PASTE(PLUG, _middle)(20000); }
#else
NOINLINE void visits(const char *library, int ms) {
	HMODULE h = LoadLibraryA(library);
	if (!h) exit(3);
	void (*works)(DWORD) = (void (*)(DWORD))(void *)GetProcAddress(h, "works");
	works(GetTickCount() + ms);
	if (!FreeLibrary(h)) exit(4); /* and no jump there, which would leave no frame */
}
int main(int argc, char **argv) {
	DWORD end = GetTickCount() + 1000 * atoi(argv[1]);
	printf("%lu\n", GetCurrentProcessId());
	fflush(stdout);
	for (int i = 0; (int)(end - GetTickCount()) > 0; i++) visits(argv[3 + i % 2], atoi(argv[2]));
	return argc == 5 ? 0 : 1;
}
#endif
