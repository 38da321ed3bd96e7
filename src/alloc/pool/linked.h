/* SPDX-License-Identifier: MIT */
/*
 * Free blocks in a list that needs no memory: those of a free set for which the host has none. The
 * node has no field to spare, so its link and the find_count with which it became free (gc_base)
 * share a word: nodes are cache lines at addresses of 48 bits, which leaves 22 for the count. That
 * suffices while the count rises by less than two million until the block is taken out; the host
 * has memory for 128 bytes long before that.
 *
 * Owns nothing. Not sorted: a search looks at every block. Guarded as its free set.
 */
#ifndef TN_ALLOC_POOL_LINKED_H
#define TN_ALLOC_POOL_LINKED_H

#include "alloc/pool/core.h"

/* All zero is an empty list. */
struct tn_linked {
    struct tn_block *first;
};

/* Adds a block that is in no list. Its u.gc_base becomes part of the link. */
void tn_linked_add(struct tn_linked *list, struct tn_block *block);

/* Takes a block out that is in the list. u.gc_base is what it was; `now` is what a block that went
 * into the set at this moment would have there. */
void tn_linked_remove(struct tn_linked *list, struct tn_block *block, int64_t now);

/* u.gc_base of a block in a list. */
int64_t tn_linked_base(const struct tn_block *block, int64_t now);

/* The next block of the list; NULL at its end. */
struct tn_block *tn_linked_next(const struct tn_block *block);

/* For checkers. */
uint64_t tn_linked_count(const struct tn_linked *list);
bool tn_linked_has(const struct tn_linked *list, const struct tn_block *block);

#endif
