/* SPDX-License-Identifier: MIT */
/*
 * The free blocks of one pool on one stream, ordered by (size, address): PyTorch's best fit is the
 * first block at or after (request, 0) in that order.
 *
 * Sizes are counted in units of 512 bytes. Below 64 KiB each is a class of its own; above, each
 * power of two is divided into 64 classes. Each class is a sorted bin (bin.h); two levels of
 * bitmaps say which bins are not empty, so that the next larger class is found with two bit scans.
 * The bins of a power of two are a chunk, which is made when first needed. Blocks that were
 * inserted last are in no bin yet (recently_freed.h).
 *
 * Also here, because the same blocks leave one for the other: the unmapped ranges of expandable
 * segments, ordered by address.
 *
 * Cost: find, insert and remove O(1) outside the bin, about 1.3 KiB for the set and 4 KiB a chunk.
 */
#ifndef TN_ALLOC_POOL_FREE_SET_H
#define TN_ALLOC_POOL_FREE_SET_H

#include "alloc/config/size_class.h"
#include "alloc/pool/bin.h"
#include "alloc/pool/core.h"
#include "alloc/pool/recently_freed.h"

enum {
    TN_CHUNK_BINS = 64,
    TN_CHUNKS = 50 /* up to 63 units, and 49 powers of two: all 64 bits of a size */
};

struct tn_free_set {
    struct tn_pool *pool;
    tarn_stream stream;
    uint64_t count;                   /* blocks, recently freed or in bins */
    struct tn_recently_freed recent;  /* in no bin */
    uint64_t chunk_bits;              /* chunks with a bin that is not empty */
    uint64_t bin_bits[TN_CHUNKS];     /* bins that are not empty, by chunk */
    struct tn_bin *chunks[TN_CHUNKS]; /* TN_CHUNK_BINS bins each, or NULL */
    struct tn_block **unmapped;       /* by address */
    uint32_t unmapped_count;
    uint32_t unmapped_capacity;
};

/* Caller owns, free with tn_free_set_destroy. NULL when host memory is missing. */
struct tn_free_set *tn_free_set_create(struct tn_pool *pool, tarn_stream stream) TN_MUST_CHECK;
void tn_free_set_destroy(struct tn_free_set *set);

/* The slow paths of the two below: through the bins. */
bool tn_free_set_insert_slow(struct tn_free_set *set, struct tn_block *block) TN_MUST_CHECK;
void tn_free_set_remove_from_bin(struct tn_free_set *set, const struct tn_block *block);

/* Adds a free block; false when host memory is missing, and nothing changed. */
TN_MUST_CHECK static inline bool tn_free_set_insert(struct tn_free_set *set, struct tn_block *block)
{
    tn_assert(block->size % TN_MIN_BLOCK_SIZE == 0 && block->size > 0);
    tn_assert(block->slot == TN_SLOT_BIN);
    if (set->recent.holes == 0 || tn_unlikely(!tn_recent_can_be(block->size))) {
        return tn_free_set_insert_slow(set, block);
    }
    tn_recent_insert(&set->recent, block);
    set->count++;
    return true;
}

/* The block is in the set, with the size and address it had when it went in. */
static inline void tn_free_set_remove(struct tn_free_set *set, struct tn_block *block)
{
    if (!tn_block_is_recent(block)) {
        tn_free_set_remove_from_bin(set, block);
        return;
    }
    tn_recent_remove(&set->recent, block);
    set->count--;
}

/* Best fit: the first block of at least `size` bytes (> 0), NULL if there is none. */
struct tn_block *tn_free_set_find(const struct tn_free_set *set, uint64_t size);

/* Neighbours in (size, address) order, NULL at the ends. The block is in the set. */
struct tn_block *tn_free_set_next(const struct tn_free_set *set, const struct tn_block *block);
struct tn_block *tn_free_set_prev(const struct tn_free_set *set, const struct tn_block *block);
struct tn_block *tn_free_set_first(const struct tn_free_set *set);
struct tn_block *tn_free_set_last(const struct tn_free_set *set);

/* Whether the block is where it says, among the recently freed or in its bin: for checkers. */
bool tn_free_set_has(const struct tn_free_set *set, const struct tn_block *block);

/* Unmapped ranges. `reserve` makes room for `more` insertions, which then cannot fail. */
bool tn_free_set_reserve_unmapped(struct tn_free_set *set, uint32_t more) TN_MUST_CHECK;
void tn_free_set_insert_unmapped(struct tn_free_set *set, struct tn_block *block);
void tn_free_set_remove_unmapped(struct tn_free_set *set, const struct tn_block *block);
bool tn_free_set_has_unmapped(const struct tn_free_set *set, const struct tn_block *block);

/* Gives back host memory of empty chunks. */
void tn_free_set_trim(struct tn_free_set *set);

/* Host bytes held, the set itself included. */
size_t tn_free_set_memory(const struct tn_free_set *set);

#endif
