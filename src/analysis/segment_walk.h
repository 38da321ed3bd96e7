/* SPDX-License-Identifier: MIT */
/*
 * The segments of a device at any time point of its trace, as ranges of addresses: those of the
 * snapshot with later entries undone, from the end backwards.
 *
 * Ranges do not overlap. What overlaps is a contradiction of the file, which is counted: what the
 * walk meets later wins. Owns: the ranges; removed ones stay in memory until the end. Cost:
 * O(log n) per entry that adds or removes memory, O(1) for others, which are skipped if the source
 * has its changes of memory.
 */
#ifndef TN_ANALYSIS_SEGMENT_WALK_H
#define TN_ANALYSIS_SEGMENT_WALK_H

#include "analysis/trace_source.h"
#include "base/chunked_vec.h"
#include "base/tree.h"

/* A range of reserved addresses, [start, end). */
struct tn_segment_range {
    struct tn_tree_node node;
    uint64_t start;
    uint64_t end;
    uint64_t segment;    /* address of the whole that it is or was a part of */
    uint64_t given_back; /* entry that did; TN_NEVER: the snapshot has it */
    struct tn_pool_id pool;
    uint64_t stream;
    uint32_t stack;
    bool has_pool; /* else `pool` is a guess: traces of old versions do not say it */
    bool is_large;
    bool is_expandable;
};

struct tn_segment_walk {
    struct tn_trace_source source;
    uint64_t next;           /* entries from this one on are undone */
    size_t changes;          /* of source.memory that are not undone */
    struct tn_budget budget; /* without a limit */
    struct tn_chunked_vec ranges;
    struct tn_tree tree;
    uint64_t overlaps; /* ranges that shared bytes with one that was there */

    /* Called with [start, end) of a range that entry `next` reserved; false stops the walk. May be
     * NULL. */
    bool (*reserved)(void *context, const struct tn_segment_range *range, uint64_t start,
                     uint64_t end);
    void *context;
};

/* The ranges at the end of the trace. False when host memory is missing; there is nothing to
 * release then. */
bool tn_segment_walk_init(struct tn_segment_walk *walk,
                          const struct tn_trace_source *source) TN_MUST_CHECK;
void tn_segment_walk_fini(struct tn_segment_walk *walk);

/* Goes back to right after an entry, TN_NEVER: to before the first. False when host memory is
 * missing. */
bool tn_segment_walk_to(struct tn_segment_walk *walk, uint64_t entry) TN_MUST_CHECK;

/* The range that holds an address, NULL when none does. Borrowed until the walk goes on. */
const struct tn_segment_range *tn_segment_walk_find(const struct tn_segment_walk *walk,
                                                    uint64_t address);

/* In order of addresses; NULL at the end. */
const struct tn_segment_range *tn_segment_walk_first(const struct tn_segment_walk *walk);
const struct tn_segment_range *tn_segment_walk_next(const struct tn_segment_range *range);

/* start + size, or the end of the address space. */
static inline uint64_t tn_range_end(uint64_t start, uint64_t size)
{
    return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

#endif
