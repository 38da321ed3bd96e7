/* SPDX-License-Identifier: MIT */
/* A temporary file with given contents. */
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

static inline struct temp_file temp_write(const void *bytes, size_t size)
{
    struct temp_file file;
    const char *folder = getenv("TMPDIR");

    (void)snprintf(file.path, sizeof file.path, "%s/tarn-test-XXXXXX", folder ? folder : "/tmp");
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

#endif
