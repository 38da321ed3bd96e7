/* SPDX-License-Identifier: MIT */
/*
 * The segments of a device right after an entry of its trace, their blocks, and what is free in
 * them by pool and stream. Segments are those of the snapshot with all later entries undone
 * (segment_walk.h), blocks those of the timeline, as large as block_extent.h says. What no block
 * has is free:
 *     reserved = used + slack + free
 * holds for each row. `used` are the rounded requests of blocks, `slack` what blocks have beyond
 * them: remainders that were not split off.
 */
#ifndef TN_ANALYSIS_LAYOUT_H
#define TN_ANALYSIS_LAYOUT_H

#include "analysis/block_extent.h"
#include "analysis/segment_walk.h"
#include "analysis/timeline.h"

/* Free memory of one pool on one stream. */
struct tn_layout_row {
    struct tn_pool_id pool;
    uint64_t stream;
    bool is_large;
    uint64_t segments; /* count; the pieces of an expandable segment count each */
    uint64_t reserved;
    uint64_t used;        /* rounded requests of blocks allocated or waiting */
    uint64_t by_settings; /* the part of `used` that roundup_power2_divisions adds */
    uint64_t waiting;     /* the part of `used` whose free was requested and is not complete */
    uint64_t slack;
    uint64_t free;
    uint64_t free_runs; /* count */
    uint64_t largest_free;
    uint64_t whole; /* bytes of segments that are free as a whole */

    /* What the allocator can return to the device at once: segments that are free as a whole, and
     * of expandable ones whole pages. The rest of `free` is beside blocks. */
    uint64_t releasable;
    uint64_t stuck_runs;    /* count, of pieces of the rest */
    uint64_t largest_stuck; /* of these */
};

struct tn_layout_block {
    const struct tn_lifetime *lifetime; /* of the timeline */
    uint64_t end;                       /* address behind it; in a damaged file inside its segment
                                           and not behind the next block */
};

/* One segment, or adjacent ones that are the pieces of one expandable segment. */
struct tn_layout_piece {
    uint64_t address;
    struct tn_layout_row row;
    size_t first; /* its blocks: `blocks` [first, first + count) */
    size_t count;
    bool is_expandable;
};

struct tn_layout {
    struct tn_vec rows;   /* struct tn_layout_row, by pool, stream and size class */
    struct tn_vec pieces; /* struct tn_layout_piece, by address */
    struct tn_vec blocks; /* struct tn_layout_block, by address, those in no piece as well */
    struct tn_layout_row total;
    uint64_t outside; /* bytes of blocks in no segment: the trace does not say where they are */
};

/* Collects layouts of one device; from the last entry to the first is fastest. */
struct tn_layout_walk {
    const struct tn_timeline *timeline;
    struct tn_segment_walk segments;
    const struct tn_block_extents *extents; /* the timeline's, or its own */
    struct tn_block_extents own_extents;    /* not before a layout has blocks */
};

/* Borrows the timeline, which is a whole one. The walk must not move until tn_layout_walk_fini.
 * False when host memory is missing; then there is nothing to release. */
bool tn_layout_walk_init(struct tn_layout_walk *walk,
                         const struct tn_timeline *timeline) TN_MUST_CHECK;
void tn_layout_walk_fini(struct tn_layout_walk *walk);

/* The layout right after an entry, TN_NEVER: before the first. False when host memory is missing;
 * then only the walk has to be released. */
bool tn_layout_collect(struct tn_layout *layout, struct tn_layout_walk *walk,
                       uint64_t entry) TN_MUST_CHECK;
void tn_layout_fini(struct tn_layout *layout);

/* The same for one entry only. */
bool tn_layout_collect_at(struct tn_layout *layout, const struct tn_timeline *timeline,
                          uint64_t entry) TN_MUST_CHECK;

#endif
