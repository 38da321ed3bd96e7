/* SPDX-License-Identifier: MIT */
/* A writer that keeps what it gets, and can refuse. */
#ifndef TESTS_SUPPORT_COLLECT_H
#define TESTS_SUPPORT_COLLECT_H

#include "support/test.h"
#include "tarn/writer.h"

#include <stdlib.h>
#include <string.h>

struct test_collect {
    char *text; /* NUL-terminated; free with free() */
    size_t size;
    size_t room; /* bytes taken before refusing; 0 = all */
};

static inline enum tarn_status test_collect_write(void *context, const char *bytes, size_t size)
{
    struct test_collect *collect = context;

    if (collect->room != 0 && collect->size + size > collect->room) {
        return TARN_ERR_IO;
    }
    collect->text = realloc(collect->text, collect->size + size + 1);
    assert_non_null(collect->text);
    memcpy(collect->text + collect->size, bytes, size);
    collect->size += size;
    collect->text[collect->size] = '\0';
    return TARN_OK;
}

#endif
