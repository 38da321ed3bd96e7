/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program: the file systems have no unnamed files (O_TMPFILE), as NFS and many
 * others.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;

    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (flags & O_CREAT) {
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
