/* SPDX-License-Identifier: MIT */
/*
 * The free blocks of one pool on one stream, in (size, address) order: PyTorch's best fit is the
 * first block at or after (request, 0).
 *
 * Sizes are counted in units of 512 bytes. Below 64 KiB each is a class of its own; above, each
 * power of two is divided into 64 classes. A class is a bin (bin.h); two levels of bitmaps say
 * which bins are not empty, so that the next larger class is found with two bit scans. The bins of
 * a power of two are a chunk, which is made when first needed. The few blocks that are too large
 * for a bin, or at addresses too high, are a sorted list.
 *
 * Also here, because the same blocks leave one for the other: the unmapped ranges of expandable
 * segments, by address.
 *
 * Cost: find, insert and remove O(1) outside the bin, 400 bytes for the set and 4 KiB a chunk.
 */
#ifndef TN_ALLOC_POOL_FREE_SET_H
#define TN_ALLOC_POOL_FREE_SET_H

#include "alloc/pool/bin.h"
#include "alloc/pool/core.h"

enum {
    TN_CHUNK_BINS = 64,
    TN_CHUNKS = TN_BIN_KEY_SIZE_BITS + 2 /* below 64 units, and each power of two up to the end */
};

/* Sorted, for few. */
struct tn_block_list {
    struct tn_block **blocks;
    uint32_t count;
    uint32_t capacity;
    bool is_by_size; /* in (size, address) order, else by address */
};

struct tn_free_set {
    struct tn_pool *pool;
    tarn_stream stream;
    uint64_t count;                   /* blocks */
    uint64_t chunk_bits;              /* chunks with a bin that is not empty */
    uint64_t bin_bits[TN_CHUNKS];     /* bins that are not empty, by chunk */
    struct tn_bin *chunks[TN_CHUNKS]; /* TN_CHUNK_BINS bins each, or NULL */
    struct tn_block_list far;         /* blocks that bins cannot hold */
    struct tn_block_list unmapped;
};

/* Caller owns, free with tn_free_set_destroy. NULL when host memory is missing. */
struct tn_free_set *tn_free_set_create(struct tn_pool *pool, tarn_stream stream) TN_MUST_CHECK;
void tn_free_set_destroy(struct tn_free_set *set);

/* Adds a free block; false when host memory is missing, and nothing changed. */
bool tn_free_set_insert(struct tn_free_set *set, struct tn_block *block) TN_MUST_CHECK;

/* The block is in the set, with the size and address it had when it went in. */
void tn_free_set_remove(struct tn_free_set *set, const struct tn_block *block);

/* Best fit: the first block of at least `size` bytes (> 0), NULL if there is none. */
struct tn_block *tn_free_set_find(const struct tn_free_set *set, uint64_t size);

/* Neighbours in (size, address) order, NULL at the ends. The block is in the set. */
struct tn_block *tn_free_set_next(const struct tn_free_set *set, const struct tn_block *block);
struct tn_block *tn_free_set_prev(const struct tn_free_set *set, const struct tn_block *block);
struct tn_block *tn_free_set_first(const struct tn_free_set *set);
struct tn_block *tn_free_set_last(const struct tn_free_set *set);

/* Whether the block is where it says: for checkers. */
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
