/* SPDX-License-Identifier: MIT */
/*
 * Public structs that begin with `uint32_t struct_size`: the size that the caller's header knows.
 * Fields beyond it are neither read nor written, so a program and a library of different versions
 * understand each other. Size 0 was never set.
 */
#ifndef TN_BASE_SIZED_H
#define TN_BASE_SIZED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t tn_sized_size(const void *given)
{
    uint32_t size;

    memcpy(&size, given, sizeof size);
    return size;
}

static inline size_t tn_sized_common(uint32_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whether the caller's size can be one. */
static inline bool tn_sized_is_set(const void *given)
{
    return tn_sized_size(given) >= sizeof(uint32_t);
}

/* Fills in what the caller gave over the defaults in `full`, whose own size is `size`. False, and
 * nothing changes, if the caller's size cannot be one. */
static inline bool tn_sized_read(void *full, size_t size, const void *given)
{
    const uint32_t known = tn_sized_size(given);
    const uint32_t own = (uint32_t)size;

    if (!tn_sized_is_set(given)) {
        return false;
    }
    memcpy(full, given, tn_sized_common(known, size));
    memcpy(full, &own, sizeof own);
    return true;
}

/* Writes as much of `full` as a caller with that size knows, its own size included. */
static inline void tn_sized_write(void *out, uint32_t known, const void *full, size_t size)
{
    memcpy(out, full, tn_sized_common(known, size));
    memcpy(out, &known, tn_sized_common(known, sizeof known));
}

#endif
