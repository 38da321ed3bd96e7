/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1 /* syscall */
#include "base/os_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

uint32_t tn_os_processors(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (uint32_t)count : 1;
}

uint64_t tn_os_random(void)
{
    uint64_t number;
    struct timespec now = {0};

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number) {
        return number;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)getpid() << 32 ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
}

int64_t tn_os_process_id(void)
{
    return getpid();
}

int tn_os_descriptor_take(int64_t process, int descriptor, bool *refused_out)
{
    const int handle = (int)syscall(SYS_pidfd_open, (pid_t)process, 0);
    int taken = -1;

    if (handle >= 0) {
        taken = (int)syscall(SYS_pidfd_getfd, handle, descriptor, 0);
    }
    *refused_out = taken < 0 && (errno == EPERM || errno == EACCES);
    tn_os_descriptor_close(handle);
    return taken;
}

int tn_os_descriptor_copy(int descriptor)
{
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
}

void tn_os_descriptor_close(int descriptor)
{
    if (descriptor >= 0) {
        (void)close(descriptor);
    }
}
