/* SPDX-License-Identifier: MIT */
/* What this process has of the system: addresses and descriptors, for tests that nothing of them is
 * left. */
#ifndef TESTS_SUPPORT_SYSTEM_USE_H
#define TESTS_SUPPORT_SYSTEM_USE_H

#include "support/test.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether the page at that address is mapped, with or without memory. */
static inline bool is_mapped(void *page)
{
    return msync(page, 1, MS_ASYNC) == 0;
}

/* Bytes of all that is mapped. */
static inline uint64_t mapped_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    char text[64] = "";

    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_int_equal(fclose(file), 0);
    return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static inline int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder)) {
        count++;
    }
    assert_int_equal(closedir(folder), 0);
    return count;
}

#endif
