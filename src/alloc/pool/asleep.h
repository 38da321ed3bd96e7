/* SPDX-License-Identifier: MIT */
/*
 * The pages of a private pool whose memory sleeps: they are taken away and come back, while its
 * blocks, their order and their free sets stay as they are. A page of a mapped block that is away
 * has no handle in its segment's records, and is not counted as reserved.
 *
 * Nothing may be allocated from the pool, and nothing of it mapped, unmapped or shared in between.
 * Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_POOL_ASLEEP_H
#define TN_ALLOC_POOL_ASLEEP_H

#include "alloc/pool/counters.h"
#include "alloc/pool/expandable.h"
#include "alloc/pool/saved.h"
#include "base/vec.h"
#include "tarn/base.h"

struct tn_private_pool;

/* Pages [begin, end) of a segment that belong to mapped blocks. */
struct tn_asleep_range {
    struct tn_segment *segment;
    uint64_t begin;
    uint64_t end;
};

/* A page between unmapping and release, or between creation and mapping. */
struct tn_loose_page {
    const struct tn_segment *segment;
    uint64_t index;
    tn_page_handle page;
};

/* Of one private pool. */
struct tn_asleep {
    uint64_t away[TN_POOLS]; /* bytes */
    struct tn_vec ranges;    /* struct tn_asleep_range: all of the pool, as of the last look */
    struct tn_vec loose;     /* struct tn_loose_page; there is room for every page of the ranges */
    struct tn_saved saved;   /* contents */
    bool keeps_host;         /* its memory, when the pool wakes */
    bool is_moving;          /* about to sleep or to wake, by a thread that dropped the lock */
};

/* NULL without host memory. */
struct tn_asleep *tn_asleep_create(struct tarn_device *device);
void tn_asleep_destroy(struct tn_asleep *asleep); /* may be NULL */

/* Bytes that are away. */
uint64_t tn_asleep_bytes(const struct tn_asleep *asleep);

/* Finds the pool's ranges, of expandable segments only; false without host memory. */
bool tn_asleep_look(struct tn_asleep *asleep, const struct tn_heap *heap,
                    const struct tn_private_pool *pool) TN_MUST_CHECK;

/* Notes the pages of the ranges on which something is allocated or waits, as contents to save;
 * false without host memory. */
bool tn_asleep_plan(struct tn_asleep *asleep) TN_MUST_CHECK;

/* Unmaps and releases the pages of all ranges that are there. If the device refuses to unmap one,
 * what was unmapped is mapped again if `or_nothing`; what it refuses to map again is away. */
enum tarn_status tn_asleep_leave(struct tn_asleep *asleep, struct tn_heap *heap, bool or_nothing,
                                 uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* Creates and maps the pages of all ranges that are away; none on failure. */
enum tarn_status tn_asleep_return(struct tn_asleep *asleep, struct tn_heap *heap, uint64_t stack,
                                  struct tarn_error *error) TN_MUST_CHECK;

/* The free blocks of a pool that sleeps lose their whole pages, which are away, and the contents
 * saved of them: they do not return. Not while the pool is moving; then nothing happens. On failure
 * the rest stays. */
enum tarn_status tn_asleep_forget(struct tn_private_pool *pool, struct tn_heap *heap,
                                  struct tarn_error *error) TN_MUST_CHECK;

#endif
