/* SPDX-License-Identifier: MIT */
/*
 * Memory for the first leaves of the bins of one free set (bin.h), all of one size. It comes from
 * the host in batches: a program has a hundred classes whose blocks are two or three at a time, and
 * asking the host for each such leaf takes longer than filling it.
 *
 * Owns: the batches, which go back to the host together when no leaf is in use. Guarded as its free
 * set. Cost: O(1), and up to 1 KiB for each free set that has leaves.
 */
#ifndef TN_ALLOC_POOL_LEAF_STORE_H
#define TN_ALLOC_POOL_LEAF_STORE_H

#include "base/attr.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TN_LEAF_STORE_PIECE = 2 * TN_CACHE_LINE, /* bytes */
    TN_LEAF_STORE_BATCH = 8                  /* pieces */
};

struct tn_leaf_batch;

/* All zero is an empty store. */
struct tn_leaf_store {
    struct tn_leaf_batch *batches;
    void *spare;   /* unused pieces, each with a pointer to the next */
    uint64_t used; /* pieces */
    uint64_t batch_count;
};

/* A piece, aligned to cache lines; NULL when host memory is missing. Give it back. */
void *tn_leaf_store_take(struct tn_leaf_store *store) TN_MUST_CHECK;
void tn_leaf_store_give(struct tn_leaf_store *store, void *piece);

/* Gives the batches back to the host, unless a piece is in use. */
void tn_leaf_store_trim(struct tn_leaf_store *store);

/* Host bytes held. */
size_t tn_leaf_store_memory(const struct tn_leaf_store *store);

#endif
