/*
 * Faults of the disk and of the clock, for LD_PRELOAD into the program under test.
 *
 * SHIM_CONTROL names a file of three 64-bit numbers, which the test may change at any time:
 *   the error that writes under SHIM_DIR fail with (0: none; -1: the process is killed),
 *   how many of them still pass before that,
 *   how many seconds the wall clock is ahead.
 * SHIM_TRACE, if set, is the file to which every change under SHIM_DIR is appended:
 *   op (1), length of path (2), length of data (4), offset (8), path below SHIM_DIR, data.
 * Calls go to the kernel directly, so that nothing here needs the allocator or the loader.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
	_Atomic int64_t error;
	_Atomic int64_t passes;
	_Atomic int64_t ahead;
};

static struct control *control;
static const char *dir;
static size_t dir_length;
static int trace = -1;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("SHIM_CONTROL");
	dir = getenv("SHIM_DIR");
	if (!path || !dir)
		return;
	dir_length = strlen(dir);
	int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
	const char *trace_path = getenv("SHIM_TRACE");
	if (trace_path)
		trace = syscall(SYS_openat, AT_FDCWD, trace_path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
	if (mapped != MAP_FAILED)
		control = mapped;
}

/* The path below the directory, "" for the directory itself, NULL for everything else. */
static const char *below(const char *path)
{
	if (strncmp(path, dir, dir_length) != 0)
		return NULL;
	if (path[dir_length] == 0)
		return path + dir_length;
	return path[dir_length] == '/' ? path + dir_length + 1 : NULL;
}

static const char *path_of(int fd, char *buffer)
{
	char link[32];
	if (!control)
		return NULL;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_MAX - 1);
	if (length <= 0)
		return NULL;
	buffer[length] = 0;
	return below(buffer);
}

static int fails(void)
{
	int64_t error = atomic_load(&control->error);
	if (error == 0 || atomic_fetch_sub(&control->passes, 1) > 0)
		return 0;
	if (error < 0)
		syscall(SYS_kill, getpid(), SIGKILL);
	errno = (int)error;
	return 1;
}

static void tell(char op, const char *path, uint64_t offset, const void *data, uint32_t length)
{
	struct __attribute__((packed)) {
		char op;
		uint16_t path_length;
		uint32_t length;
		uint64_t offset;
	} head = {op, (uint16_t)strlen(path), length, offset};
	struct iovec parts[3] = {
		{&head, sizeof head}, {(void *)path, head.path_length}, {(void *)data, length}};
	if (trace >= 0) {
		int before = errno;
		syscall(SYS_writev, trace, parts, 3);
		errno = before;
	}
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset)
{
	char buffer[PATH_MAX];
	const char *path = path_of(fd, buffer);
	if (path && fails())
		return -1;
	ssize_t written = syscall(SYS_pwrite64, fd, data, length, offset);
	if (path && written > 0)
		tell('W', path, offset, data, written);
	return written;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset)
{
	return pwrite64(fd, data, length, offset);
}

ssize_t write(int fd, const void *data, size_t length)
{
	char buffer[PATH_MAX];
	const char *path = path_of(fd, buffer);
	if (path && fails())
		return -1;
	ssize_t written = syscall(SYS_write, fd, data, length);
	if (path && written > 0)
		tell('W', path, syscall(SYS_lseek, fd, 0, SEEK_CUR) - written, data, written);
	return written;
}

int ftruncate64(int fd, off64_t length)
{
	char buffer[PATH_MAX];
	const char *path = path_of(fd, buffer);
	if (path && fails())
		return -1;
	int done = syscall(SYS_ftruncate, fd, length);
	if (path && done == 0)
		tell('T', path, length, NULL, 0);
	return done;
}

int ftruncate(int fd, off_t length)
{
	return ftruncate64(fd, length);
}

static int synced(int call, int fd)
{
	char buffer[PATH_MAX];
	const char *path = path_of(fd, buffer);
	/* A full disk and a read-only one have nothing against it. */
	if (path && atomic_load(&control->error) == EIO && fails())
		return -1;
	int done = syscall(call, fd);
	if (path && done == 0)
		tell('S', path, 0, NULL, 0);
	return done;
}

int fsync(int fd)
{
	return synced(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return synced(SYS_fdatasync, fd);
}

int unlink(const char *path)
{
	const char *inside = control ? below(path) : NULL;
	if (inside && fails())
		return -1;
	int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	if (inside && done == 0)
		tell('U', inside, 0, NULL, 0);
	return done;
}

int rename(const char *from, const char *to)
{
	const char *inside = control ? below(from) : NULL;
	const char *becomes = control ? below(to) : NULL;
	if (inside && fails())
		return -1;
	int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
	if (inside && becomes && done == 0)
		tell('R', inside, 0, becomes, strlen(becomes));
	return done;
}

static int opened(int at, const char *path, int flags, mode_t mode)
{
	const char *inside = control ? below(path) : NULL;
	struct stat is;
	if (inside && (flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR))) {
		int there = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
		int changes = (flags & O_CREAT && !there) || flags & O_TRUNC;
		/* Only a read-only disk refuses to open what is there. */
		if ((changes || atomic_load(&control->error) == EROFS) && fails())
			return -1;
		int fd = syscall(SYS_openat, at, path, flags, mode);
		if (fd >= 0 && changes && fstat(fd, &is) == 0 && S_ISREG(is.st_mode))
			tell('T', inside, 0, NULL, 0);
		return fd;
	}
	return syscall(SYS_openat, at, path, flags, mode);
}

#define MODE                                                   \
	mode_t mode = 0;                                       \
	if (flags & (O_CREAT | __O_TMPFILE)) {                 \
		va_list rest;                                  \
		va_start(rest, flags);                         \
		mode = va_arg(rest, mode_t);                   \
		va_end(rest);                                  \
	}

int open64(const char *path, int flags, ...)
{
	MODE return opened(AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	MODE return opened(AT_FDCWD, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...)
{
	MODE return opened(at, path, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	int done = syscall(SYS_clock_gettime, clock, time);
	if (done == 0 && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		time->tv_sec += atomic_load(&control->ahead);
	return done;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	(void)zone;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	time->tv_sec = now.tv_sec;
	time->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *into)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (into)
		*into = now.tv_sec;
	return now.tv_sec;
}
