/* SPDX-License-Identifier: MIT */
/*
 * The entries of a part of a trace that are about blocks which this part both allocates and frees:
 * their allocations, frees and annotations. A free counts when it is completed: until then the
 * snapshot has the block.
 *
 * Owns: both arrays. Guarded by its owner. Cost: O(1) expected per entry.
 */
#ifndef TN_EXPORT_FREED_BLOCKS_H
#define TN_EXPORT_FREED_BLOCKS_H

#include "base/attr.h"
#include "base/vec.h"
#include "snapshot/model.h"

struct tn_freed_blocks {
    struct tn_vec of_entry; /* uint64_t, the block of each entry, or none */
    struct tn_vec blocks;   /* struct tn_freed_block, in the order in which they are mentioned */
};

void tn_freed_blocks_init(struct tn_freed_blocks *freed);
void tn_freed_blocks_fini(struct tn_freed_blocks *freed);

/* Looks at entries [first, limit). Once. False without host memory. */
bool tn_freed_blocks_find(struct tn_freed_blocks *freed, const struct tn_model *model,
                          const struct tn_trace *trace, uint64_t first,
                          uint64_t limit) TN_MUST_CHECK;

/* Whether the entry, counted from the part's first, is one of them. */
bool tn_freed_blocks_have(const struct tn_freed_blocks *freed, uint64_t entry);

#endif
