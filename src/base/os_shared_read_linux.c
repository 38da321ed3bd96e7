/* SPDX-License-Identifier: MIT */
/* What only readers of shared files need. */
#include "base/os_shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool tn_os_folder_list(const char *path, bool (*visit)(void *context, const char *name),
                       void *context)
{
    DIR *folder = opendir(path);
    bool goes_on = true;

    if (!folder) {
        return false;
    }
    while (goes_on) {
        const struct dirent *entry = readdir(folder);

        goes_on = entry && visit(context, entry->d_name);
    }
    (void)closedir(folder);
    return true;
}

void tn_os_shared_remove_same(int file, const char *path)
{
    struct stat opened;
    struct stat named;

    if (fstat(file, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
        opened.st_ino == named.st_ino) {
        (void)unlink(path);
    }
}

static int file_open_either(const char *path, bool *writable_out)
{
    const int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK; /* a pipe must not block */
    const int file = open(path, O_RDWR | flags);

    *writable_out = file >= 0;
    return file >= 0 ? file : open(path, O_RDONLY | flags);
}

int tn_os_shared_open(const char *path, bool *writable_out)
{
    struct stat found;
    const int file = file_open_either(path, writable_out);

    if (file < 0) {
        return -1;
    }
    if (fstat(file, &found) != 0 || !S_ISREG(found.st_mode) ||
        (found.st_uid != geteuid() && geteuid() != 0)) {
        (void)close(file);
        errno = EPERM;
        return -1;
    }
    return file;
}

bool tn_os_shared_exists(const char *path)
{
    struct stat found;

    return lstat(path, &found) == 0;
}

bool tn_os_shared_read(int file, uint64_t offset, void *bytes_out, size_t size)
{
    return pread(file, bytes_out, size, (off_t)offset) == (ssize_t)size;
}

bool tn_os_shared_write(int file, uint64_t offset, const void *bytes, size_t size)
{
    return pwrite(file, bytes, size, (off_t)offset) == (ssize_t)size;
}

void *tn_os_shared_map(int file, uint64_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    return memory == MAP_FAILED ? NULL : memory;
}
