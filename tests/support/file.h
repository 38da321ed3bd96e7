/* SPDX-License-Identifier: MIT */
/* Whole files in memory, gzip undone. */
#ifndef TESTS_SUPPORT_FILE_H
#define TESTS_SUPPORT_FILE_H

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests/data" /* the build says where it is */
#endif

struct test_file {
    uint8_t *bytes; /* one NUL follows; free with free() */
    size_t size;
};

static inline struct test_file test_file_read(const char *name)
{
    char path[1024];
    struct test_file file = {NULL, 0};
    size_t capacity = 1 << 16;
    int got;

    (void)snprintf(path, sizeof path, "%s/%s", TEST_DATA_DIR, name);
    gzFile in = gzopen(path, "rb");
    assert_non_null(in);
    file.bytes = malloc(capacity + 1);
    assert_non_null(file.bytes);
    while ((got = gzread(in, file.bytes + file.size, (unsigned)(capacity - file.size))) > 0) {
        file.size += (size_t)got;
        if (file.size == capacity) {
            capacity *= 2;
            file.bytes = realloc(file.bytes, capacity + 1);
            assert_non_null(file.bytes);
        }
    }
    assert_int_equal(got, 0);
    file.bytes[file.size] = '\0';
    (void)gzclose(in);
    return file;
}

#endif
