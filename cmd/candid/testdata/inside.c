/* Runs in a root folder of its own: a function of its file, and one that it made
 * itself and tells of in the file that perf expects, named after the number that
 * the process has where it runs. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) long inTheContainer(long n)
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
	char name[64];
	FILE *f;
	memcpy(p, code, sizeof code);
	__builtin___clear_cache((char *)p, (char *)p + sizeof code);
	snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
	f = fopen(name, "w");
	fprintf(f, "%lx %zx generatedInside\n", (long)p, sizeof code);
	fclose(f);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		inTheContainer(1000000);
		((void (*)(long))p)(2000000);
	}
}
