/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program: its allocation number FAIL_MALLOC_AT, counted from 1 over malloc,
 * calloc, realloc and posix_memalign, finds no memory.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long left = -1; /* until the one that fails; 0 = not yet known, or past */

static void left_read(void)
{
    const char *text = getenv("FAIL_MALLOC_AT");

    atomic_store(&left, text ? strtol(text, NULL, 10) : 0);
}

static int fails(void)
{
    if (atomic_load(&left) == -1) {
        left_read();
    }
    if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1) {
        return 0;
    }
    errno = ENOMEM;
    return 1;
}

EXPORT void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

EXPORT void *realloc(void *memory, size_t size)
{
    return fails() ? NULL : __libc_realloc(memory, size);
}

EXPORT int posix_memalign(void **memory_out, size_t alignment, size_t size)
{
    void *memory = fails() ? NULL : __libc_memalign(alignment, size);

    if (!memory) {
        return ENOMEM;
    }
    *memory_out = memory;
    return 0;
}
