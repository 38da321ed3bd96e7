/* SPDX-License-Identifier: MIT */
/*
 * A pool: the free sets of all streams for small or for large requests. PyTorch keeps one set per
 * pool, ordered by (stream, size, address), since 2.13 with the age of the segment before the
 * address; the sets here are kept in stream order, so that walking them one after the other gives
 * the same order.
 *
 * Owns: the free sets, not the blocks. A set lives as long as its pool. Guarded by the heap's
 * lock.
 */
#ifndef TN_ALLOC_POOL_POOL_H
#define TN_ALLOC_POOL_POOL_H

#include "alloc/pool/free_set.h"

struct tn_pool {
    bool is_small;
    struct tn_private_pool *owner;       /* NULL: one of the two default pools */
    const struct tn_segment_map *by_age; /* the order of its sets (free_set.h) */
    struct tn_free_set **sets;           /* by stream handle */
    uint32_t count;
    uint32_t capacity;
    struct tn_free_set *last_found; /* last one found, or NULL */
    int64_t find_count; /* searches, counted while garbage collection is on; under the compact
                           policy its epoch (compact/stream_order.h) */
};

void tn_pool_init(struct tn_pool *pool, bool is_small, struct tn_private_pool *owner,
                  const struct tn_segment_map *by_age);

/* Changes the order of its sets. */
void tn_pool_reorder(struct tn_pool *pool, const struct tn_segment_map *by_age);

/* Of a pool by age: the map was packed. */
void tn_pool_rekey(struct tn_pool *pool);

/* Every block must be gone. */
void tn_pool_fini(struct tn_pool *pool);

/* The slow path of tn_pool_get_set: not the set that was found last. */
struct tn_free_set *tn_pool_get_set_slow(struct tn_pool *pool, tarn_stream stream) TN_MUST_CHECK;

/* The stream's free set, created if it is new; NULL when host memory is missing. */
TN_MUST_CHECK static inline struct tn_free_set *tn_pool_get_set(struct tn_pool *pool,
                                                                tarn_stream stream)
{
    return tn_likely(pool->last_found && pool->last_found->stream == stream)
               ? pool->last_found
               : tn_pool_get_set_slow(pool, stream);
}

/* Puts an idle, mapped block into its free set. */
static TN_INLINE void tn_pool_insert(struct tn_block *block)
{
    tn_assert(tn_block_is_idle(block) && block->mapped);
    block->u.gc_base = block->set->pool->find_count;
    if (tn_unlikely(!tn_free_set_try_insert(block->set, block))) {
        tn_free_set_insert_slow(block->set, block);
    }
}

/* Takes an idle block out of wherever it is: its free set or the unmapped ranges. */
static TN_INLINE void tn_pool_remove(struct tn_block *block)
{
    if (tn_likely(block->mapped)) {
        tn_free_set_remove(block->set, block);
    } else {
        tn_free_set_remove_unmapped(block->set, block);
    }
}

/* Gives linked blocks of all sets their places (tn_free_set_settle). */
void tn_pool_settle(const struct tn_pool *pool);

/* Blocks in the order of streams and, of each, that of its set. `next` requires a block that is in
 * its set. */
struct tn_block *tn_pool_first(const struct tn_pool *pool);
struct tn_block *tn_pool_next(const struct tn_pool *pool, const struct tn_block *block);

/* Bytes of all free blocks. */
uint64_t tn_pool_free_bytes(const struct tn_pool *pool);

void tn_pool_trim(struct tn_pool *pool);
size_t tn_pool_memory(const struct tn_pool *pool);

#endif
