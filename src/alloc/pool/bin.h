/* SPDX-License-Identifier: MIT */
/*
 * A sorted bag of blocks: the free blocks of one size class. Order is (size, address); the smallest
 * is what an allocation takes.
 *
 * Up to two blocks (the usual case) stand in the bin itself, which is one cache line. More are one
 * array, largest first as well, so that taking the smallest is dropping the last entry. Beyond
 * TN_LEAF_MAX entries the array becomes a directory of such arrays, which bounds what an insertion
 * moves: a class of a million equal blocks still costs two short searches.
 *
 * An array stays when the bin empties, until the bin is finished: what empties fills again.
 *
 * Owns: its arrays, not the blocks. Addresses stand in the entries so that a search in a class of
 * one size touches no block. Cost: O(log n) compares, moves of at most TN_LEAF_MAX entries.
 */
#ifndef TN_ALLOC_POOL_BIN_H
#define TN_ALLOC_POOL_BIN_H

#include "alloc/pool/core.h"
#include "base/assertion.h"
#include "base/attr.h"

#include <stddef.h>

enum {
    TN_BIN_NEAR = 2,
    TN_LEAF_MAX = 128
};

#define TN_BIN_DIRECTORY UINT32_MAX

struct tn_bin_entry {
    uint64_t size;    /* == block->size */
    uint64_t address; /* == block->address */
    struct tn_block *block;
};

struct tn_bin_directory;

/* All zero is an empty bin. */
struct tn_bin {
    uint32_t count;    /* entries in all */
    uint32_t capacity; /* of the array; 0: `near`; TN_BIN_DIRECTORY: a directory */
    union {
        struct tn_bin_entry near[TN_BIN_NEAR]; /* largest first */
        struct tn_bin_entry *entries;          /* largest first */
        struct tn_bin_directory *directory;
        char line[TN_CACHE_LINE - 2 * sizeof(uint32_t)];
    } u;
};

static_assert(sizeof(struct tn_bin) == TN_CACHE_LINE, "a bin is one cache line");

/* Frees the arrays; the bin is empty afterwards. */
void tn_bin_fini(struct tn_bin *bin);

/* False when host memory is missing; the bin is as it was. `block` is not in the bin. */
bool tn_bin_insert(struct tn_bin *bin, struct tn_block *block) TN_MUST_CHECK;

/* `block` is in the bin, with the size and address it was inserted with. Never fails. */
void tn_bin_remove(struct tn_bin *bin, const struct tn_block *block);

const struct tn_bin_entry *tn_bin_directory_min(const struct tn_bin_directory *directory);

/* Smallest and largest; the bin is not empty. */
struct tn_block *tn_bin_max(const struct tn_bin *bin);

static inline const struct tn_bin_entry *tn_bin_min_entry(const struct tn_bin *bin)
{
    tn_assert(bin->count > 0);
    if (tn_unlikely(bin->capacity == TN_BIN_DIRECTORY)) {
        return tn_bin_directory_min(bin->u.directory);
    }
    return (bin->capacity == 0 ? bin->u.near : bin->u.entries) + (bin->count - 1);
}

static inline struct tn_block *tn_bin_min(const struct tn_bin *bin)
{
    return tn_bin_min_entry(bin)->block;
}

/* Smallest block at or after (size, address), or NULL. */
struct tn_block *tn_bin_find_from(const struct tn_bin *bin, uint64_t size, uint64_t address);

/* Largest block before (size, address), or NULL. */
struct tn_block *tn_bin_find_before(const struct tn_bin *bin, uint64_t size, uint64_t address);

/* Host bytes held. */
size_t tn_bin_memory(const struct tn_bin *bin);

#endif
