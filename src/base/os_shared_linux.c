/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall, MADV_DONTFORK */
#include "base/os_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    FOLDER_MODE = 0700,
    FILE_MODE = 0600
};

/* ---- the folder ---- */

/* Whether it is a directory that only this user can enter. */
static bool folder_is_private(const char *path, bool any_owner)
{
    struct stat found;

    if (lstat(path, &found) != 0) {
        return false;
    }
    if (!S_ISDIR(found.st_mode) || (found.st_uid != geteuid() && !any_owner) ||
        (found.st_mode & 077) != 0) {
        errno = EPERM;
        return false;
    }
    return true;
}

static bool folder_open(const char *path, bool create)
{
    if (create && mkdir(path, FOLDER_MODE) != 0 && errno != EEXIST) {
        return false;
    }
    return folder_is_private(path, !create && geteuid() == 0);
}

static bool folder_name(char path_out[TN_FOLDER_PATH_MAX], const char *parent, const char *name)
{
    const int length = snprintf(path_out, TN_FOLDER_PATH_MAX, "%s/%s", parent, name);

    if ((size_t)length >= TN_FOLDER_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    return true;
}

bool tn_os_folder_private(const char *runtime, const char *name, bool create,
                          char path_out[TN_FOLDER_PATH_MAX])
{
    const bool is_given = runtime && runtime[0] == '/';
    char run_user[TN_FOLDER_PATH_MAX];

    (void)snprintf(run_user, sizeof run_user, "/run/user/%u", (unsigned)geteuid());
    if (is_given || folder_is_private(run_user, false)) {
        return folder_name(path_out, is_given ? runtime : run_user, name) &&
               folder_open(path_out, create);
    }
    (void)snprintf(path_out, TN_FOLDER_PATH_MAX, "/tmp/%s-%u", name, (unsigned)geteuid());
    return folder_open(path_out, create);
}

/* ---- the file ---- */

/* Gives the file its size and maps it; NULL with errno. */
static void *file_map_whole(int file, uint64_t size)
{
    const int failed = posix_fallocate(file, 0, (off_t)size);

    if (failed) {
        errno = failed;
        return NULL;
    }
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (memory == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(memory, size, MADV_DONTFORK);
    return memory;
}

void *tn_os_shared_create(const char *path, uint64_t size)
{
    (void)unlink(path);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);

    if (file < 0) {
        return NULL;
    }
    void *memory = file_map_whole(file, size);
    const int failed = errno;

    if (!memory) {
        (void)unlink(path);
    }
    (void)close(file);
    errno = failed;
    return memory;
}

void tn_os_shared_unmap(void *memory, uint64_t size)
{
    if (memory) {
        (void)munmap(memory, size);
    }
}

void tn_os_shared_remove(const char *path)
{
    (void)unlink(path);
}

/* ---- sleeping ---- */

void tn_os_shared_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                                  .tv_nsec = (long)(ns % 1000000000u)};

    (void)syscall(SYS_futex, word, FUTEX_WAIT, expected, ns == UINT64_MAX ? NULL : &time, NULL, 0);
}

void tn_os_shared_wake(const _Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
