/* Runs code of its own file and code that it made itself, and prints where that is.
 * What is at the path by which such code is named is up to the test. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) long inTheFile(long n)
{
	volatile long x = 0;
	for (long i = 0; i < n; i++)
		x += i;
	return x;
}

int main(void)
{
	static const unsigned char code[] = {
#ifdef __x86_64__
		/* push %rbp; mov %rsp,%rbp; 1: dec %rdi; jnz 1b; pop %rbp; ret */
		0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3,
#else
		/* 1: subs x0,x0,#1; b.ne 1b; ret */
		0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
#endif
	};
	unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, code, sizeof code);
	__builtin___clear_cache((char *)p, (char *)p + sizeof code);
	printf("%lx\n", (long)p);
	fflush(stdout);
	for (;;) {
		inTheFile(1000000);
		((void (*)(long))p)(2000000);
	}
}
