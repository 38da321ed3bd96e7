/* SPDX-License-Identifier: MIT */
/*
 * Where the program's code is: the executable parts of its modules.
 *
 * Owns: a table of up to TN_CODE_RANGES_MAX parts, which is read without a lock and made anew when
 * an address is not found and modules may have been loaded since, at most once in ten milliseconds.
 * Thread-safe. Cost: a binary search.
 */
#ifndef TN_BASE_OS_CODE_H
#define TN_BASE_OS_CODE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_CODE_RANGES_MAX = 1024 /* what lies above the first of these is not found */
};

struct tn_code_range {
    uintptr_t begin;
    uintptr_t end; /* first address behind it */
};

static inline bool tn_code_range_has(const struct tn_code_range *range, uintptr_t address)
{
    return address - range->begin < range->end - range->begin;
}

/* The part that has the address; false when none has. */
bool tn_os_code_find(uintptr_t address, struct tn_code_range *range_out);

#endif
