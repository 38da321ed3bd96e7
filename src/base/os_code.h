/* SPDX-License-Identifier: MIT */
/*
 * The executable address ranges of the program's modules.
 *
 * Owns a table of up to TN_CODE_RANGES_MAX ranges, which is read without a lock. It is rebuilt at
 * most every ten milliseconds, when an address is not found and modules may have been loaded.
 * Thread-safe. Cost: a binary search.
 */
#ifndef TN_BASE_OS_CODE_H
#define TN_BASE_OS_CODE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_CODE_RANGES_MAX = 1024 /* higher ranges are not found */
};

struct tn_code_range {
    uintptr_t begin;
    uintptr_t end; /* first address after it */
};

static inline bool tn_code_range_has(const struct tn_code_range *range, uintptr_t address)
{
    return address - range->begin < range->end - range->begin;
}

/* The range that contains the address; false when there is none. */
bool tn_os_code_find(uintptr_t address, struct tn_code_range *range_out);

/* The code of this library; empty when it is linked into the program, whose own code then lies in
 * the same range. Asks the loader once. */
struct tn_code_range tn_os_code_own(void);

/* How many modules have been unloaded since the program started. What is cached by the address of
 * code stays valid until this changes. Cost: 50 ns. */
uint64_t tn_os_code_unloads(void);

#endif
