/* An agent of the JVM that takes the pages away which hold only tables that describe the VM to
 * debuggers: each has to come from a userfaultfd then, and nobody provides it. The VM itself never
 * reads them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Agent_OnLoad is called before the VM starts. */
int Agent_OnLoad(void *vm, char *options, void *reserved)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	char *table = *(char **)dlsym(RTLD_DEFAULT, "gHotSpotVMStructs"), *entry = table;
	unsigned long stride = *(unsigned long *)dlsym(RTLD_DEFAULT, "gHotSpotVMStructEntryArrayStride");
	(void)vm, (void)options, (void)reserved;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) {
		perror("userfaultfd");
		return 1;
	}
	while (*(char **)entry)
		entry += stride;
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	reg.range.start = ((unsigned long)table + 4095) & ~4095UL;
	reg.range.len = ((unsigned long)entry & ~4095UL) - reg.range.start;
	if (mmap((void *)reg.range.start, reg.range.len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &reg)) {
		perror("UFFDIO_REGISTER");
		return 1;
	}
	fprintf(stderr, "%llu bytes of tables are taken away\n", reg.range.len);
	return 0;
}
