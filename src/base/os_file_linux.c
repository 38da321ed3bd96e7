/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* O_TMPFILE */
#include "base/os_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct proc_path {
    char text[40];
};

/* linkat takes a descriptor itself only from privileged processes. */
static struct proc_path proc_path_of(int file)
{
    struct proc_path path;

    (void)snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", file);
    return path;
}

int tn_os_file_unnamed(const char *folder, mode_t mode)
{
    const int file = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);

    if (file >= 0 && access(proc_path_of(file).text, F_OK) != 0) { /* /proc is not mounted */
        (void)close(file);
        return -1;
    }
    return file;
}

bool tn_os_file_name(int file, const char *path)
{
    return linkat(AT_FDCWD, proc_path_of(file).text, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}
