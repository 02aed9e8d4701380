/* A thread runs deep in a stack of which a piece in the middle cannot be read: a page of it
 * has to come from a userfaultfd ("uffd"), or from a file of a FUSE file system that is
 * mounted at the second argument ("fuse"), and nobody provides it.
 *
 * With "program" the process is itself a file of that file system, which answers nothing any
 * more once the program runs: neither what the file holds nor what it is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define STACK (4 << 20)
#define PIECE (256 << 10)

static char *volatile piece;
static volatile int go;

__attribute__((noinline)) static long spin(long n)
{
	volatile long x = 0;
	for (long i = 0; i < n; i++)
		x += i;
	return x;
}

__attribute__((noinline)) static long deep(void)
{
	char *pad = __builtin_alloca(PIECE); /* the address to return to is above it, in the piece */
	__asm__ volatile("" : : "r"(pad) : "memory");
	piece = (char *)(((unsigned long)pad + PIECE / 2 + 4095) & ~4095UL);
	while (!go)
		;
	for (;;)
		spin(1000000);
	return 0;
}

static void *run(void *unused)
{
	char *pad = __builtin_alloca(4 * PIECE); /* the thread's descriptor, above it, is not in the piece */
	(void)unused;
	__asm__ volatile("" : : "r"(pad) : "memory");
	pad[0] = deep();
	__asm__ volatile("" : : "r"(pad) : "memory");
	return 0;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void uffd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.range = {(unsigned long)piece, PIECE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		fail("userfaultfd");
	madvise(piece, PIECE, MADV_DONTNEED);
	if (ioctl(fd, UFFDIO_REGISTER, &reg))
		fail("UFFDIO_REGISTER");
}

static void reply(int fd, unsigned long long unique, int error, const void *data, size_t len)
{
	struct fuse_out_header h = {.len = sizeof h + len, .error = error, .unique = unique};
	struct iovec parts[2] = {{&h, sizeof h}, {(void *)data, len}};
	if (writev(fd, parts, 2) < 0)
		_exit(0);
}

/* What the file holds, if anybody is told, and whether nothing is answered any more. */
static char *content;
static size_t size = PIECE;
static volatile sig_atomic_t silent;

static void be_silent(int unused)
{
	(void)unused;
	silent = 1;
}

static struct fuse_attr attr(unsigned long long node)
{
	struct fuse_attr a = {.ino = node, .nlink = 1, .blksize = 4096};
	a.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0755;
	a.size = node == 1 ? 0 : size;
	return a;
}

/* serve answers everything but what a file holds, unless it knows that. */
static void serve(int fd)
{
	static char buf[1 << 20];
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, be_silent);
	for (;;) {
		ssize_t n = read(fd, buf, sizeof buf);
		struct fuse_in_header *in = (void *)buf;
		if (n < (ssize_t)sizeof *in)
			_exit(0);
		if (silent)
			continue;
		switch (in->opcode) {
		case FUSE_INIT: {
			struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096, .max_readahead = 4096};
			reply(fd, in->unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_LOOKUP: {
			struct fuse_entry_out out = {.nodeid = 2, .attr = attr(2)};
			reply(fd, in->unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_GETATTR: {
			struct fuse_attr_out out = {.attr = attr(in->nodeid)};
			reply(fd, in->unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_OPEN:
		case FUSE_OPENDIR: {
			struct fuse_open_out out = {.fh = 1};
			reply(fd, in->unique, 0, &out, sizeof out);
			break;
		}
		case FUSE_READ: {
			struct fuse_read_in *what = (void *)(in + 1);
			size_t at = what->offset < size ? what->offset : size;
			if (content)
				reply(fd, in->unique, 0, content + at, what->size < size - at ? what->size : size - at);
			break;
		}
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		case FUSE_RELEASE:
		case FUSE_FLUSH:
			reply(fd, in->unique, 0, 0, 0);
			break;
		default:
			reply(fd, in->unique, -38, 0, 0);
		}
	}
}

static int serving(const char *dir, char *file)
{
	char options[128];
	int pid, fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	if (fd < 0 || mount("candid", dir, "fuse.candid", 0, options))
		fail("mount");
	if ((pid = fork()) == 0)
		serve(fd);
	close(fd);
	snprintf(file, 4096, "%s/file", dir);
	return pid;
}

/* program runs this program's file from the FUSE file system. */
static void program(const char *dir)
{
	char file[4096], pid[16];
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY);
	if (fd < 0 || fstat(fd, &st) || !(content = malloc(size = st.st_size)) || read(fd, content, size) != (ssize_t)size)
		fail("/proc/self/exe");
	snprintf(pid, sizeof pid, "%d", serving(dir, file));
	execl(file, file, "silent", pid, (char *)0);
	fail(file);
}

static void fuse(const char *dir)
{
	char file[4096];
	int fd;
	serving(dir, file);
	fd = open(file, O_RDONLY);
	if (fd < 0)
		fail(file);
	if (mmap(piece, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		fail("mmap");
}

int main(int argc, char **argv)
{
	pthread_t t;
	pthread_attr_t a;
	if (argc > 2 && !strcmp(argv[1], "program"))
		program(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "silent")) {
		spin(1000000);
		usleep(1); /* what is called later is loaded before nobody loads it any more */
		kill(atoi(argv[2]), SIGUSR1);
		puts("ready");
		fflush(stdout);
		for (;;)
			spin(1000000);
	}
	char *stack = mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&a);
	pthread_attr_setstack(&a, stack, STACK);
	pthread_create(&t, &a, run, 0);
	while (!piece)
		usleep(1000);
	if (argc > 2 && !strcmp(argv[1], "fuse"))
		fuse(argv[2]);
	else
		uffd();
	go = 1;
	printf("ready\n");
	fflush(stdout);
	pthread_join(t, 0);
}
