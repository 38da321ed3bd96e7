/* SPDX-License-Identifier: MIT */
/*
 * The free blocks of one pool on one stream, in (size, place) order: PyTorch's best fit is the
 * first block at or after (request, 0). A block's place is its address or, in a set by age, that in
 * the segment map (segment_map.h): the blocks of the oldest segment come first, as in PyTorch since
 * 2.13 (pytorch #183591). Such a set always takes the slow path of an insertion, where the place is
 * looked up; a removal needs it only where a bin has several leaves.
 *
 * Sizes are counted in units of 512 bytes. Below 64 KiB each is a class of its own; above, each
 * power of two is divided into 64 classes. A class is a bin (bin.h); two levels of bitmaps say
 * which bins are not empty, so that the next larger class is found with two bit scans. The bins of
 * a power of two are a chunk, which is created when first needed. The few blocks that are too large
 * for a bin, or at too high a place, are in a sorted list.
 *
 * An insertion cannot fail: a block for which the host has no memory is linked (linked.h) until it
 * has, and is found like any other.
 *
 * Also here, because blocks move between the two: the unmapped ranges of expandable segments, by
 * address.
 *
 * Cost: find, insert and remove O(1) outside the bin, and O(log segments) for a place by age;
 * 0.4 KiB for the set and 4 KiB for a chunk.
 */
#ifndef TN_ALLOC_POOL_FREE_SET_H
#define TN_ALLOC_POOL_FREE_SET_H

#include "alloc/pool/bin.h"
#include "alloc/pool/core.h"
#include "alloc/pool/linked.h"

enum {
    TN_CHUNK_BINS = 64,
    TN_CHUNKS = TN_BIN_KEY_SIZE_BITS + 2, /* below 64 units, and each power of two up to the end */
    TN_NO_CLASS = TN_CHUNKS * TN_CHUNK_BINS
};

/* A sorted array, for few blocks. */
struct tn_block_list {
    struct tn_block **blocks;
    uint32_t count;
    uint32_t capacity;
};

struct tn_free_set {
    struct tn_pool *pool;
    tarn_stream stream;
    const int64_t *find_count; /* the pool's */
    const struct tn_segment_map
        *by_age;                      /* whose places order blocks of one size; NULL: addresses */
    uint64_t chunk_bits;              /* chunks with a bin that is not empty */
    uint64_t bin_bits[TN_CHUNKS];     /* bins that are not empty, by chunk */
    struct tn_bin *chunks[TN_CHUNKS]; /* TN_CHUNK_BINS bins each; NULL if not created yet */
    struct tn_leaf_store leaves;
    struct tn_block_list far;      /* blocks that bins cannot hold, in the order of the set */
    struct tn_linked linked;       /* blocks that wait for host memory */
    uint32_t outside;              /* how many blocks are in either of these */
    struct tn_block_list unmapped; /* by address */
};

/* Caller owns, free with tn_free_set_destroy. NULL when host memory is missing. */
struct tn_free_set *tn_free_set_create(struct tn_pool *pool, tarn_stream stream,
                                       const struct tn_segment_map *by_age) TN_MUST_CHECK;
void tn_free_set_destroy(struct tn_free_set *set);

/* Changes the order. */
void tn_free_set_reorder(struct tn_free_set *set, const struct tn_segment_map *by_age);

/* Of a set by age: looks all places up again after the map was packed. */
void tn_free_set_rekey(struct tn_free_set *set);

/* Class of a size (> 0, below TN_BIN_SIZE_END); classes never decrease as sizes grow. */
static inline unsigned tn_free_set_class(uint64_t size)
{
    tn_assert(size < TN_BIN_SIZE_END);
    const uint64_t units = size / TN_MIN_BLOCK_SIZE;
    const unsigned dropped = tn_bin_dropped_bits(units);

    return dropped * TN_CHUNK_BINS + (unsigned)(units >> dropped);
}

/* False only if no block has that size or more. O(1). */
static inline bool tn_free_set_may_reach(const struct tn_free_set *set, uint64_t size)
{
    return set->outside > 0 || size >= TN_BIN_SIZE_END ||
           set->chunk_bits >> tn_free_set_class(size) / TN_CHUNK_BINS != 0;
}

/* Its chunk exists. */
static inline struct tn_bin *tn_free_set_bin(const struct tn_free_set *set, unsigned class)
{
    return &set->chunks[class / TN_CHUNK_BINS][class % TN_CHUNK_BINS];
}

/* Notes that the class has a block. */
static inline void tn_free_set_mark(struct tn_free_set *set, unsigned class)
{
    tn_assert(class < TN_NO_CLASS);
    set->bin_bits[class / TN_CHUNK_BINS] |= (uint64_t)1 << class % TN_CHUNK_BINS;
    set->chunk_bits |= (uint64_t)1 << class / TN_CHUNK_BINS;
}

/* Notes that it has none. */
static inline void tn_free_set_unmark(struct tn_free_set *set, unsigned class)
{
    tn_assert(class < TN_NO_CLASS);
    const unsigned chunk = class / TN_CHUNK_BINS;

    set->bin_bits[chunk] &= ~((uint64_t)1 << class % TN_CHUNK_BINS);
    set->chunk_bits &= ~((uint64_t)(set->bin_bits[chunk] == 0) << chunk);
}

static inline bool tn_free_set_has_class(const struct tn_free_set *set, unsigned class)
{
    tn_assert(class < TN_NO_CLASS);
    return set->bin_bits[class / TN_CHUNK_BINS] >> class % TN_CHUNK_BINS & 1;
}

/* The first class at or after `class` that has a block, or TN_NO_CLASS. */
static TN_INLINE unsigned tn_free_set_next_class(const struct tn_free_set *set, unsigned class)
{
    tn_assert(class < TN_NO_CLASS);
    const unsigned chunk = class / TN_CHUNK_BINS;
    const uint64_t bits = set->bin_bits[chunk] & ~(uint64_t)0 << class % TN_CHUNK_BINS;

    if (bits != 0) {
        return chunk * TN_CHUNK_BINS + tn_lowest_bit(bits);
    }
    const uint64_t above = set->chunk_bits & ~(uint64_t)1 << chunk;

    if (above == 0) {
        return TN_NO_CLASS;
    }
    const unsigned next = tn_lowest_bit(above);

    return next * TN_CHUNK_BINS + tn_lowest_bit(set->bin_bits[next]);
}

uint64_t tn_free_set_place_by_age(const struct tn_free_set *set, const struct tn_block *block);

/* The block's place in the order of the set. */
static inline uint64_t tn_free_set_place(const struct tn_free_set *set,
                                         const struct tn_block *block)
{
    return tn_likely(!set->by_age) ? block->address : tn_free_set_place_by_age(set, block);
}

/* The slow paths, for blocks that bins cannot hold or have no room for yet. */
void tn_free_set_insert_slow(struct tn_free_set *set, struct tn_block *block);
void tn_free_set_remove_outside(struct tn_free_set *set, struct tn_block *block);
struct tn_block *tn_free_set_find_slow(const struct tn_free_set *set, uint64_t size);

/* Adds a free block; false, and nothing changed, if that needs host memory, bins cannot hold it, or
 * its place is not its address: then tn_free_set_insert_slow may. */
TN_MUST_CHECK static TN_INLINE bool tn_free_set_try_insert(struct tn_free_set *set,
                                                           struct tn_block *block)
{
    tn_assert(block->size % TN_MIN_BLOCK_SIZE == 0 && block->size > 0);
    if (tn_unlikely(!tn_bin_can_hold(block->size, block->address) | (set->by_age != NULL))) {
        return false;
    }
    const unsigned class = tn_free_set_class(block->size);

    if (tn_unlikely(!set->chunks[class / TN_CHUNK_BINS])) {
        return false;
    }
    struct tn_bin *bin = tn_free_set_bin(set, class);

    if (!bin->first) {
        tn_bin_insert_only(bin, block, block->address);
        tn_free_set_mark(set, class);
        return true;
    }
    if (tn_unlikely(bin->leaf.holes == 0)) {
        return false;
    }
    tn_bin_insert(bin, block, block->address);
    return true;
}

/* The block is in the set, with the size and address it had when it went in. */
static TN_INLINE void tn_free_set_remove(struct tn_free_set *set, struct tn_block *block)
{
    if (tn_unlikely(block->slot >= TN_SLOT_FAR)) {
        tn_free_set_remove_outside(set, block);
        return;
    }
    const unsigned class = tn_free_set_class(block->size);
    struct tn_bin *bin = tn_free_set_bin(set, class);

    if (tn_unlikely(bin->directory != NULL)) {
        tn_bin_remove_slow(bin, block, tn_free_set_place(set, block));
    } else if (tn_bin_remove(bin, block)) {
        tn_free_set_unmark(set, class);
    }
}

/* What a search has found. */
struct tn_found {
    struct tn_block *block; /* NULL: nothing */
    unsigned class;         /* of which it is the first block; TN_NO_CLASS: it may not be one */
};

/* Best fit: the first block of at least `size` bytes (> 0). It is the least block of the first
 * class that has any, unless that is the request's own class and the block is too small. */
static TN_INLINE struct tn_found tn_free_set_search(const struct tn_free_set *set, uint64_t size)
{
    tn_assert(size % TN_MIN_BLOCK_SIZE == 0 && size > 0);
    struct tn_found found = {.class = TN_NO_CLASS};

    if (tn_unlikely((size >= TN_BIN_SIZE_END) | (set->outside > 0))) {
        found.block = tn_free_set_find_slow(set, size);
        return found;
    }
    const unsigned class = tn_free_set_next_class(set, tn_free_set_class(size));

    if (class == TN_NO_CLASS) {
        return found;
    }
    found.block = tn_free_set_bin(set, class)->first;
    if (tn_likely(found.block->size >= size)) {
        found.class = class;
    } else {
        found.block = tn_free_set_find_slow(set, size);
    }
    return found;
}

/* The same where the block is only looked at; NULL: there is none. */
static TN_INLINE struct tn_block *tn_free_set_find(const struct tn_free_set *set, uint64_t size)
{
    return tn_free_set_search(set, size).block;
}

/* Removes the block that was just found. Where its class is known, the bin changes without waiting
 * for the block's node, which is seldom in the processor's first cache. */
static TN_INLINE void tn_free_set_take(struct tn_free_set *set, struct tn_found found)
{
    struct tn_bin *bin =
        tn_likely(found.class != TN_NO_CLASS) ? tn_free_set_bin(set, found.class) : NULL;

    if (tn_unlikely(!bin || bin->directory)) {
        tn_free_set_remove(set, found.block);
    } else if (tn_bin_remove_first(bin)) {
        tn_free_set_unmark(set, found.class);
    }
}

/* Neighbours in the order of the set, NULL at the ends. The block is in the set. */
struct tn_block *tn_free_set_next(const struct tn_free_set *set, const struct tn_block *block);
struct tn_block *tn_free_set_prev(const struct tn_free_set *set, const struct tn_block *block);
struct tn_block *tn_free_set_first(const struct tn_free_set *set);
struct tn_block *tn_free_set_last(const struct tn_free_set *set);

/* Number of blocks that are in no bin, and of all: for checkers. */
uint64_t tn_free_set_outside(const struct tn_free_set *set);
uint64_t tn_free_set_count(const struct tn_free_set *set);

/* Whether the block is in the set, in the slot it names: for checkers. */
bool tn_free_set_has(const struct tn_free_set *set, const struct tn_block *block);

/* Unmapped ranges. `reserve` makes room for `more` insertions, which then cannot fail. */
bool tn_free_set_reserve_unmapped(struct tn_free_set *set, uint32_t more) TN_MUST_CHECK;
void tn_free_set_insert_unmapped(struct tn_free_set *set, struct tn_block *block);
void tn_free_set_remove_unmapped(struct tn_free_set *set, const struct tn_block *block);
bool tn_free_set_has_unmapped(const struct tn_free_set *set, const struct tn_block *block);
/* The range that contains the address; NULL if there is none. */
struct tn_block *tn_free_set_find_unmapped(const struct tn_free_set *set, uint64_t address);

/* Gives linked blocks their places in bins, as far as the host has memory again. */
void tn_free_set_settle_slow(struct tn_free_set *set);

static inline void tn_free_set_settle(struct tn_free_set *set)
{
    if (tn_unlikely(set->linked.first != NULL)) {
        tn_free_set_settle_slow(set);
    }
}

/* The pool's find_count when the block, which is in the set, went in. */
int64_t tn_free_set_base(const struct tn_block *block);

/* Gives back host memory of empty chunks. */
void tn_free_set_trim(struct tn_free_set *set);

/* Host bytes held, the set itself included. */
size_t tn_free_set_memory(const struct tn_free_set *set);

#endif
