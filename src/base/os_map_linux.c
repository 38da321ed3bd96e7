/* SPDX-License-Identifier: MIT */
/* memfd_create and anonymous mappings are not in POSIX. */
#define _GNU_SOURCE 1
#include "base/os_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static void *map_anonymous(void *at, uint64_t size, int protection, int flags)
{
    void *range =
        mmap(at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    return range == MAP_FAILED ? NULL : range;
}

void *tn_os_range_reserve(uint64_t size, bool usable)
{
    return map_anonymous(NULL, size, usable ? PROT_READ | PROT_WRITE : PROT_NONE, 0);
}

void tn_os_range_release(void *range, uint64_t size)
{
    if (range) {
        (void)munmap(range, size);
    }
}

/* An object is recognized by its name, which no other kind of file can have, and by its seals:
 * neither its size nor the seals can change. */
#define OBJECT_NAME  "tarn-%016llx"
#define OBJECT_BEGIN "/memfd:tarn-"
#define OBJECT_LINK  "/memfd:" OBJECT_NAME " (deleted)"

enum {
    OBJECT_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
    OBJECT_PATH_MAX = 64
};

int tn_os_object_open(uint64_t size)
{
    char name[OBJECT_PATH_MAX];
    unsigned long long cookie;

    if (getrandom(&cookie, sizeof cookie, 0) != (ssize_t)sizeof cookie) {
        return -1;
    }
    (void)snprintf(name, sizeof name, OBJECT_NAME, cookie);
    const int object = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (object >= 0 &&
        (ftruncate(object, (off_t)size) != 0 || fcntl(object, F_ADD_SEALS, OBJECT_SEALS) != 0)) {
        (void)close(object);
        return -1;
    }
    return object;
}

void tn_os_object_close(int object)
{
    if (object >= 0) {
        (void)close(object);
    }
}

/* The random number in the descriptor's name; false if it is not an object. */
static bool object_read_name(int descriptor, uint64_t *cookie_out)
{
    char link[OBJECT_PATH_MAX];
    char name[OBJECT_PATH_MAX + 1] = "";
    char wanted[OBJECT_PATH_MAX];

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, name, sizeof name - 1);

    if (length < 0 || strncmp(name, OBJECT_BEGIN, sizeof OBJECT_BEGIN - 1) != 0) {
        return false;
    }
    /* An invalid number gives a value whose formatted name differs from this one. */
    const unsigned long long cookie = strtoull(name + sizeof OBJECT_BEGIN - 1, NULL, 16);

    (void)snprintf(wanted, sizeof wanted, OBJECT_LINK, cookie);
    *cookie_out = cookie;
    return strcmp(name, wanted) == 0;
}

/* Reopens the file with other access rights. */
static int object_again(int descriptor, int flags)
{
    char link[OBJECT_PATH_MAX];

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    return open(link, flags | O_CLOEXEC);
}

/* Opened as O_PATH until the name is checked, read-only until the seals are, then read-write. */
static int object_check_and_open(int path_fd)
{
    uint64_t cookie;
    uint64_t size;
    int object = -1;

    if (!object_read_name(path_fd, &cookie)) {
        return -1;
    }
    const int readable = object_again(path_fd, O_RDONLY);

    if (readable >= 0 && tn_os_object_identity(readable, &cookie, &size)) {
        object = object_again(path_fd, O_RDWR);
    }
    tn_os_object_close(readable);
    return object;
}

int tn_os_object_reopen(int64_t process, int object)
{
    char path[OBJECT_PATH_MAX];

    (void)snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, object);
    const int path_fd = open(path, O_PATH | O_CLOEXEC);
    const int found = path_fd >= 0 ? object_check_and_open(path_fd) : -1;

    tn_os_object_close(path_fd);
    return found;
}

bool tn_os_object_identity(int object, uint64_t *cookie_out, uint64_t *size_out)
{
    struct stat status;
    const int seals = fcntl(object, F_GET_SEALS);

    /* Only regular files in memory have seals. */
    if (seals < 0 || (seals & OBJECT_SEALS) != OBJECT_SEALS || fstat(object, &status) != 0 ||
        !object_read_name(object, cookie_out)) {
        return false;
    }
    *size_out = (uint64_t)status.st_size;
    return true;
}

bool tn_os_object_map(int object, void *at, uint64_t size)
{
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, object, 0) != MAP_FAILED;
}

bool tn_os_range_clear(void *at, uint64_t size)
{
    return map_anonymous(at, size, PROT_NONE, MAP_FIXED) != NULL;
}
