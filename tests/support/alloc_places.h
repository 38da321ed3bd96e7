/* SPDX-License-Identifier: MIT */
/*
 * An allocator of host memory that notes which calls come from a place that none came from before,
 * so that a test makes each of those fail once. For one source of a program, one thread.
 */
#ifndef TESTS_SUPPORT_ALLOC_PLACES_H
#define TESTS_SUPPORT_ALLOC_PLACES_H

#include "tarn/host.h"

#include <execinfo.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    PLACE_FRAMES = 12, /* of the stack: a place is the last calls that led to it */
    PLACES_MAX = 1 << 15,
    NEW_PLACES_MAX = 4096 /* of one job */
};

static struct {
    bool is_on;
    uint64_t begin;                 /* calls before the job */
    uint64_t known[PLACES_MAX];     /* a table of hashes; 0 = free */
    uint64_t fresh[NEW_PLACES_MAX]; /* numbers of calls from places that no job had before */
    size_t fresh_count;
} places;

/* False if it was known. */
static inline bool place_add(uint64_t hash)
{
    uint64_t at = hash % PLACES_MAX;

    while (places.known[at] != 0 && places.known[at] != hash) {
        at = (at + 1) % PLACES_MAX;
    }
    const bool is_new = places.known[at] == 0;

    places.known[at] = hash;
    return is_new;
}

static inline void place_note(void)
{
    void *frames[PLACE_FRAMES];
    const int count = backtrace(frames, PLACE_FRAMES);
    uint64_t hash = 1;

    for (int i = 0; i < count; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    if (places.fresh_count < NEW_PLACES_MAX && place_add(hash | 1)) {
        places.fresh[places.fresh_count++] = tarn_host_get_usage().alloc_calls - places.begin;
    }
}

static inline void *place_alloc(void *context, size_t size, size_t alignment)
{
    void *memory = NULL;

    (void)context;
    if (places.is_on) {
        place_note();
    }
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static inline void place_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

#endif
