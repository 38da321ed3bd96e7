/* SPDX-License-Identifier: MIT */
/*
 * A sorted bag of blocks: the free blocks of one size class. Order is (size, address); the smallest
 * is what an allocation takes.
 *
 * Few blocks (the usual case) are one array, largest first, so that taking the smallest is dropping
 * the last entry. Beyond TN_LEAF_MAX entries the array becomes a directory of such arrays, which
 * bounds what an insertion moves: a class of a million equal blocks still costs two short searches.
 *
 * Owns: its arrays, not the blocks. Addresses stand in the entries so that a search in a class of
 * one size touches no block. Cost: O(log n) compares, moves of at most TN_LEAF_MAX entries.
 */
#ifndef TN_ALLOC_BIN_H
#define TN_ALLOC_BIN_H

#include "alloc/core.h"
#include "base/attr.h"

#include <stddef.h>

enum {
    TN_LEAF_MAX = 128
};

struct tn_bin_entry {
    uint64_t size;    /* == block->size */
    uint64_t address; /* == block->address */
    struct tn_block *block;
};

/* All zero is an empty bin. */
struct tn_bin {
    void *memory;      /* capacity > 0: tn_bin_entry[capacity]; capacity 0: struct tn_bin_directory
                          */
    uint32_t count;    /* entries in all */
    uint32_t capacity; /* of the one array; 0 when there is none or a directory */
};

/* Frees the arrays; the bin is empty afterwards. */
void tn_bin_fini(struct tn_bin *bin);

/* False when host memory is missing; the bin is as it was. `block` is not in the bin. */
bool tn_bin_insert(struct tn_bin *bin, struct tn_block *block) TN_MUST_CHECK;

/* `block` is in the bin, with the size and address it was inserted with. Never fails. */
void tn_bin_remove(struct tn_bin *bin, const struct tn_block *block);

/* Smallest and largest; the bin is not empty. */
struct tn_block *tn_bin_min(const struct tn_bin *bin);
struct tn_block *tn_bin_max(const struct tn_bin *bin);

/* Smallest block at or after (size, address), or NULL. */
struct tn_block *tn_bin_find_from(const struct tn_bin *bin, uint64_t size, uint64_t address);

/* Largest block before (size, address), or NULL. */
struct tn_block *tn_bin_find_before(const struct tn_bin *bin, uint64_t size, uint64_t address);

/* Gives back arrays of an empty bin. */
void tn_bin_trim(struct tn_bin *bin);

/* Host bytes held. */
size_t tn_bin_memory(const struct tn_bin *bin);

#endif
