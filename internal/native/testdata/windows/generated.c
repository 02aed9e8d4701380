/* Code that is generated at run time, with unwind data that is registered for it: one function by
 * RtlAddFunctionTable, one by RtlAddGrowableFunctionTable. Neither has a frame pointer. Without an
 * argument the program waits for a line, and works between two breakpoints; with one it prints its
 * process id and works for that many seconds. With a second one it registers a function instead that
 * computes the unwind data when it is asked (RtlInstallFunctionTableCallback). */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

typedef long long (*function)(long long n);
volatile long long sink;

NOINLINE long long leaf(long long n) {
	long long s = 0;
	for (long long i = 0; i < n; i++) s += i ^ (s >> 3);
	return s;
}

/* push rbx; sub rsp, 0x40; mov rbx, rcx; mov rax, ...; call rax; mov rcx, rbx; mov rbx, rax; add rsp, 0x40; pop rbx; ret */
static const unsigned char small_code[] = {
	0x53, 0x48, 0x83, 0xec, 0x40, 0x48, 0x89, 0xcb, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0,
	0x48, 0x89, 0xd9, 0x48, 0x89, 0xc3, 0x48, 0x83, 0xc4, 0x40, 0x5b, 0xc3,
};
static const unsigned char small_info[] = {1, 5, 2, 0, 5, 0x72, 1, 0x30};

/* the same with sub rsp, 0x200 */
static const unsigned char large_code[] = {
	0x53, 0x48, 0x81, 0xec, 0, 2, 0, 0, 0x48, 0x89, 0xcb, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0,
	0x48, 0x89, 0xd9, 0x48, 0x89, 0xc3, 0x48, 0x81, 0xc4, 0, 2, 0, 0, 0x5b, 0xc3,
};
static const unsigned char large_info[] = {1, 8, 3, 0, 8, 0x01, 0x40, 0, 1, 0x30, 0, 0};

static unsigned char *memory;
static RUNTIME_FUNCTION small_table[1], large_table[2];

static function put(DWORD at, const unsigned char *code, size_t n, size_t immediate, void *target, const unsigned char *info, size_t m, RUNTIME_FUNCTION *f) {
	memcpy(memory + at, code, n);
	memcpy(memory + at + immediate, &target, 8);
	memcpy(memory + at + 0x80, info, m);
	f->BeginAddress = at;
	f->EndAddress = at + (DWORD)n;
	f->UnwindData = at + 0x80;
	return (function)(void *)(memory + at);
}

static RUNTIME_FUNCTION *CALLBACK compute(DWORD64 pc, void *context) {
	(void)context;
	return pc - (DWORD64)(ULONG_PTR)memory < 0x10000 ? small_table : large_table;
}

static function generate(int computed) {
	typedef DWORD (NTAPI *add_growable)(void **, RUNTIME_FUNCTION *, DWORD, DWORD, ULONG_PTR, ULONG_PTR);
	memory = VirtualAlloc(0, 0x20000, MEM_COMMIT | MEM_RESERVE, PAGE_EXECUTE_READWRITE);
	function inner = put(0x10000, large_code, sizeof large_code, 13, (void *)leaf, large_info, sizeof large_info, large_table);
	function outer = put(0x100, small_code, sizeof small_code, 10, (void *)inner, small_info, sizeof small_info, small_table);
	if (computed) {
		DWORD64 base = (DWORD64)(ULONG_PTR)memory;
		if (!RtlInstallFunctionTableCallback(base | 3, base, 0x20000, compute, 0, 0)) exit(5);
		return outer;
	}
	void *growable = 0;
	add_growable add = (add_growable)(void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlAddGrowableFunctionTable");
	if (!RtlAddFunctionTable(small_table, 1, (DWORD64)(ULONG_PTR)memory)) exit(3);
	if (add(&growable, large_table, 1, 2, (ULONG_PTR)memory + 0x10000, (ULONG_PTR)memory + 0x20000) != 0) exit(4);
	large_table[0].BeginAddress -= 0x10000;
	large_table[0].EndAddress -= 0x10000;
	large_table[0].UnwindData -= 0x10000;
	return outer;
}

NOINLINE long long computes(function f, long long n) { return f(n) + 1; }

int main(int argc, char **argv) {
	function f = generate(argc > 2);
	if (argc > 1) {
		DWORD end = GetTickCount() + 1000 * atoi(argv[1]);
		printf("%lu\n", GetCurrentProcessId());
		fflush(stdout);
		while ((int)(end - GetTickCount()) > 0) sink += computes(f, 20000);
		return 0;
	}
	char line[16];
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin)) return 1;
	__debugbreak();
	for (int i = 0; i < 40; i++) sink += computes(f, i);
	__debugbreak();
	return 0;
}
