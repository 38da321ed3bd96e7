/* SPDX-License-Identifier: MIT */
/* memfd_create and anonymous mappings are not in POSIX. */
#define _GNU_SOURCE 1
#include "base/os_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
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

int tn_os_object_open(uint64_t size)
{
    const int object = memfd_create("tarn", MFD_CLOEXEC);

    if (object >= 0 && ftruncate(object, (off_t)size) != 0) {
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

int tn_os_object_reopen(int64_t process, int object)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, object);
    return open(path, O_RDWR | O_CLOEXEC);
}

bool tn_os_object_identity(int object, uint64_t *inode_out, uint64_t *size_out)
{
    struct stat status;

    if (fstat(object, &status) != 0 || !S_ISREG(status.st_mode)) {
        return false;
    }
    *inode_out = status.st_ino;
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
