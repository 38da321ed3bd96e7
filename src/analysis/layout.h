/* SPDX-License-Identifier: MIT */
/*
 * The segments of a device right after an entry of its trace, and what is free in them by pool and
 * stream. Segments come from the snapshot with all later entries undone, blocks from the timeline.
 *
 * A block takes its bytes rounded up to 512. What follows it is a free block only if PyTorch would
 * have split it off: more than 1 MiB in the large pool, 512 bytes in the small one, and nothing of
 * a block from max_split_size on. The rest of it is slack of the block. So
 *     reserved = used + slack + free
 * holds for each row. Slack before a free block cannot be distinguished from it and counts as
 * free.
 */
#ifndef TN_ANALYSIS_LAYOUT_H
#define TN_ANALYSIS_LAYOUT_H

#include "analysis/timeline.h"

/* Free memory of one pool on one stream. */
struct tn_layout_row {
    struct tn_pool_id pool;
    uint64_t stream;
    bool is_large;
    uint64_t segments; /* count; the pieces of an expandable segment count each */
    uint64_t reserved;
    uint64_t used;    /* blocks handed out or waiting, rounded up to 512 bytes */
    uint64_t waiting; /* the part of `used` whose free was requested and is not complete */
    uint64_t slack;
    uint64_t free;
    uint64_t free_runs; /* count */
    uint64_t largest_free;
    uint64_t whole; /* bytes of segments that are free as a whole */
};

/* One segment, or adjacent ones that are the pieces of one expandable segment. */
struct tn_layout_piece {
    uint64_t address;
    struct tn_layout_row row;
    size_t first; /* its blocks: `lifetimes` [first, first + count) */
    size_t count;
};

struct tn_layout {
    struct tn_vec rows;      /* struct tn_layout_row, by pool, stream and size class */
    struct tn_vec pieces;    /* struct tn_layout_piece, by address */
    struct tn_vec lifetimes; /* const struct tn_lifetime *, of the timeline, by address */
    struct tn_layout_row total;
    uint64_t outside; /* bytes of blocks in no segment: the trace does not say where they are */
};

/* False when host memory is missing; then there is nothing to release. */
bool tn_layout_collect(struct tn_layout *layout, const struct tn_timeline *timeline,
                       uint64_t entry) TN_MUST_CHECK;
void tn_layout_fini(struct tn_layout *layout);

#endif
