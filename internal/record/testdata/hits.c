/*
 * Does things a known number of times: touches fresh pages, allocates from two
 * functions, calls the kernel. Then it waits to be told to end, if asked to.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGES = 200000, FEW = 1000, MANY = 4000, CALLS = 3000 };

static void *volatile sink;

__attribute__((noinline)) void touch_pages(void)
{
	char *p = mmap(0, PAGES * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, PAGES * 4096L, MADV_NOHUGEPAGE);
	for (long i = 0; i < PAGES; i++)
		p[i * 4096] = 1;
	munmap(p, PAGES * 4096L);
	asm volatile("");
}

__attribute__((noinline)) void allocate_few(void)
{
	for (int i = 0; i < FEW; i++)
		sink = malloc(24);
	asm volatile("");
}

__attribute__((noinline)) void allocate_many(void)
{
	for (int i = 0; i < MANY; i++)
		sink = malloc(40);
	asm volatile("");
}

__attribute__((noinline)) void call_kernel(void)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	asm volatile("");
}

int main(int argc, char **argv)
{
	do {
		touch_pages();
		allocate_few();
		allocate_many();
		call_kernel();
	} while (argc > 1 && puts("round") > 0 && fflush(stdout) == 0 && getchar() != EOF);
	return 0;
}
