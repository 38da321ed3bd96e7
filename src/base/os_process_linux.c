/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1 /* syscall */
#include "base/os_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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

/* Reads a file of /proc as text; false when there is none. */
static bool proc_read(const char *path, char *text_out, size_t size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text_out, size - 1) : -1;

    tn_os_descriptor_close(file);
    text_out[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool tn_os_process_start(int64_t process, uint64_t *start_out)
{
    enum {
        FIELDS_BEFORE = 20 /* from the one after the name to the start, which is the 22nd */
    };
    char path[64];
    char text[1024];

    (void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)process);
    if (!proc_read(path, text, sizeof text)) {
        return false;
    }
    const char *at = strrchr(text, ')'); /* ends the name, which may contain anything */

    for (int i = 0; at && i < FIELDS_BEFORE; i++) {
        at = strchr(at + 1, ' ');
    }
    if (!at) {
        return false;
    }
    *start_out = strtoull(at + 1, NULL, 10);
    return true;
}

void tn_os_process_name(char *name_out, size_t size)
{
    if (!proc_read("/proc/self/comm", name_out, size)) {
        name_out[0] = '\0';
    }
    name_out[strcspn(name_out, "\n")] = '\0';
}

void tn_os_thread_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
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
