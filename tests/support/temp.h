/* SPDX-License-Identifier: MIT */
/* A temporary file with given contents, and a temporary folder. */
#ifndef TESTS_SUPPORT_TEMP_H
#define TESTS_SUPPORT_TEMP_H

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct temp_file {
    char path[256];
};

struct temp_folder {
    char path[256];
};

/* A path for mkstemp or mkdtemp, which replace the six letters at its end. */
static inline void temp_template(char *path, size_t size)
{
    const char *folder = getenv("TMPDIR");

    (void)snprintf(path, size, "%s/tarn-test-XXXXXX", folder ? folder : "/tmp");
}

static inline struct temp_file temp_write(const void *bytes, size_t size)
{
    struct temp_file file;

    temp_template(file.path, sizeof file.path);
    const int fd = mkstemp(file.path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(close(fd), 0);
    return file;
}

static inline void temp_remove(struct temp_file *file)
{
    (void)unlink(file->path);
}

static inline struct temp_folder temp_folder_make(void)
{
    struct temp_folder folder;

    temp_template(folder.path, sizeof folder.path);
    assert_non_null(mkdtemp(folder.path));
    return folder;
}

/* It must be empty: nothing half is left in it. */
static inline void temp_folder_remove(const struct temp_folder *folder)
{
    assert_int_equal(rmdir(folder->path), 0);
}

#endif
