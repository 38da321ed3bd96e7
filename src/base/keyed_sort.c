/* SPDX-License-Identifier: MIT */
#include "base/keyed_sort.h"

#include "base/host_mem.h"

#include <string.h>

enum {
    BYTES = 256,
    BYTE_BITS = 8
};

static size_t byte_of(const struct tn_keyed *item, unsigned shift)
{
    return item->key >> shift & (BYTES - 1);
}

/* From one array to the other, by one byte. */
static void pass(const struct tn_keyed *from, struct tn_keyed *to, size_t count, unsigned shift)
{
    size_t next[BYTES] = {0}; /* where the next one with that byte goes */
    size_t before = 0;

    for (size_t i = 0; i < count; i++) {
        next[byte_of(&from[i], shift)]++;
    }
    for (size_t i = 0; i < BYTES; i++) {
        const size_t here = next[i];

        next[i] = before;
        before += here;
    }
    for (size_t i = 0; i < count; i++) {
        to[next[byte_of(&from[i], shift)]++] = from[i];
    }
}

/* Bits in which keys differ. */
static uint64_t difference_of(const struct tn_keyed *items, size_t count)
{
    uint64_t difference = 0;

    for (size_t i = 1; i < count; i++) {
        difference |= items[i].key ^ items[0].key;
    }
    return difference;
}

bool tn_keyed_sort(struct tn_keyed *items, size_t count)
{
    const uint64_t difference = difference_of(items, count);
    struct tn_keyed *const copy = difference ? tn_host_alloc(count * sizeof *copy) : NULL;
    struct tn_keyed *from = items;
    struct tn_keyed *to = copy;

    if (difference && !copy) {
        return false;
    }
    for (unsigned shift = 0; shift < 64; shift += BYTE_BITS) {
        if (difference >> shift & (BYTES - 1)) {
            struct tn_keyed *const sorted = to;

            pass(from, to, count, shift);
            to = from;
            from = sorted;
        }
    }
    if (from != items) {
        memcpy(items, from, count * sizeof *items);
    }
    tn_host_free(copy, copy ? count * sizeof *copy : 0);
    return true;
}
