/* SPDX-License-Identifier: MIT */
/*
 * The trace of one device as lifetimes of blocks: the events between which each was allocated.
 * Blocks from before the first event are those that the trace frees without having allocated them,
 * and those allocated at the end that the trace does not mention. So requested bytes are exact at
 * every event, also in a trace that begins mid-run.
 *
 * Bytes of blocks are requested bytes, as in PyTorch's `requested_bytes`: a block counts until its
 * free is complete. Reserved bytes are those of segments: what the snapshot has, less what the
 * trace added to it.
 *
 * Owns: its arrays; borrows the model. Immutable once made. Cost: O(entries + final blocks).
 */
#ifndef TN_ANALYSIS_TIMELINE_H
#define TN_ANALYSIS_TIMELINE_H

#include "analysis/trace_source.h"
#include "base/assertion.h"
#include "base/vec.h"

/* Use of a block from its allocation until it is free again. */
struct tn_lifetime {
    uint64_t address;
    uint64_t size; /* requested bytes */
    uint64_t stream;
    uint64_t start;     /* entry of the allocation; TN_NEVER: before the first */
    uint64_t requested; /* entry of the free request; TN_NEVER: none */
    uint64_t end;       /* entry that completed the free; TN_NEVER: allocated at the end */
    uint32_t stack;     /* of the allocation; TN_STACK_NONE: unknown */
    uint32_t extra;     /* of the allocation; TN_EXTRA_NONE: nothing, or unknown */
    uint32_t metadata;  /* string: the program's last metadata of the block, or TN_STRING_NONE */

    /* Filled in when needed, 0 until then (pool_stream.h, annotation.h, category.h). */
    uint32_t pool_stream;
    uint32_t annotation;
    uint32_t category;
};

/* The device right after an entry; TN_NEVER as `entry` is before the first. */
struct tn_time_point {
    uint64_t entry;
    uint64_t requested;
    uint64_t reserved;
    uint64_t left_out; /* requested bytes outside the selection */
    size_t memory;     /* how many of the timeline's `memory` are not behind `entry` */
};

struct tn_block_extents;
struct tn_live_sets;

struct tn_timeline {
    const struct tn_model *model;
    const struct tn_trace *trace;
    int64_t device;
    uint64_t first;             /* covers entries [first, limit) */
    uint64_t limit;             /* at most the trace's length */
    struct tn_vec lifetimes;    /* struct tn_lifetime, by first mention in the trace */
    struct tn_time_point start; /* right before entry `first` */
    struct tn_time_point end;
    struct tn_time_point requested_peak; /* the first of equals */
    struct tn_time_point reserved_peak;
    struct tn_vec ooms;      /* uint64_t: entries */
    struct tn_vec requested; /* by entry, uint64_t: requested bytes right after it, less those at
                                the start, modulo 2^64 */
    struct tn_vec highest;  /* uint64_t: the most requested bytes after an entry of the first 64, of
                                the next 64, ... */
    struct tn_vec memory;   /* struct tn_memory_change, of the segments that count; of a selection
                               those before its limit */
    bool limits_memory;     /* not all segments count */
    uint64_t request_limit; /* as of a source; of a selection 0 */
    const struct tn_timeline *whole; /* what this is a selection of, or NULL */

    /* What somebody who needs it several times has made; borrowed. NULL: whoever needs it makes it
     * (block_extent.h, live.h). */
    const struct tn_block_extents *extents;
    const struct tn_live_sets *live;
    uint64_t before_count;   /* lifetimes that began before the first entry */
    uint64_t empty_stacks;   /* lifetimes whose allocation has the empty stack */
    uint64_t doubled_allocs; /* of an allocated address: its free is missing */
    uint64_t unknown_frees;  /* of an address that the trace freed already */
};

/* A device without a trace has an empty one, whose start is what the file has. False when host
 * memory is missing; then there is nothing to release. */
bool tn_timeline_init(struct tn_timeline *timeline, const struct tn_model *model,
                      size_t device) TN_MUST_CHECK;
void tn_timeline_fini(struct tn_timeline *timeline);

/* The same with lifetimes and `memory` only: no totals, so none of the functions that return time
 * points. */
bool tn_timeline_init_lifetimes(struct tn_timeline *timeline, const struct tn_model *model,
                                size_t device) TN_MUST_CHECK;

/* Of a whole timeline; borrows from it. */
static inline struct tn_trace_source tn_timeline_source(const struct tn_timeline *timeline)
{
    struct tn_trace_source source = tn_source_of_device(timeline->model, (size_t)timeline->device);

    tn_assert(!timeline->whole);
    source.memory = &timeline->memory;
    source.request_limit = timeline->request_limit;
    return source;
}

/* Which blocks, and which part of the trace, a narrowed timeline has. */
struct tn_narrowing {
    uint64_t first; /* entries [first, limit), first < limit unless the trace is empty */
    uint64_t limit;

    /* Whether a block is wanted, by its whole lifetime; NULL: all. */
    bool (*wants)(void *context, const struct tn_lifetime *lifetime);

    /* Whether an entry that adds or removes memory counts, and what was there before the first
     * entry of the trace; NULL: all. */
    bool (*wants_memory)(void *context, uint64_t entry);
    uint64_t reserved_before;
    void *context;
};

/* A timeline of that part alone: lifetimes are cut off at both ends, and those that begin before
 * the part count as from before the trace. Borrows `whole` until it is destroyed. False as
 * tn_timeline_init. */
bool tn_timeline_narrow(struct tn_timeline *timeline, const struct tn_timeline *whole,
                        const struct tn_narrowing *narrowing) TN_MUST_CHECK;

/* As a time point: right before the first entry. */
static inline uint64_t tn_timeline_before(const struct tn_timeline *timeline)
{
    return timeline->first > 0 ? timeline->first - 1 : TN_NEVER;
}

/* Whether the block was allocated right after the entry (TN_NEVER: before the first). */
static inline bool tn_lifetime_is_at(const struct tn_lifetime *lifetime, uint64_t entry)
{
    if (lifetime->start == TN_NEVER) {
        return entry == TN_NEVER || lifetime->end == TN_NEVER || entry < lifetime->end;
    }
    return entry != TN_NEVER && lifetime->start <= entry &&
           (lifetime->end == TN_NEVER || entry < lifetime->end);
}

/* Totals right after an entry of the covered part, or right before that part. Cost: O(changes of
 * memory). */
struct tn_time_point tn_timeline_at(const struct tn_timeline *timeline, uint64_t entry);

/* The highest totals of a part of the trace, and the first entries after which they are there. */
struct tn_time_peak {
    uint64_t requested;
    uint64_t requested_entry;
    uint64_t reserved;
    uint64_t reserved_entry;
};

/* From `now`, which counts, to right before entry `limit` of the covered part, where `now` is then.
 * Cost: O(entries), of which most are only compared. */
struct tn_time_peak tn_timeline_follow(const struct tn_timeline *timeline,
                                       struct tn_time_point *now, uint64_t limit);

/* The peak of reserved bytes up to an entry. Cost: O(changes of memory). */
uint64_t tn_timeline_reserved_max(const struct tn_timeline *timeline, uint64_t entry);

static inline const struct tn_lifetime *tn_timeline_lifetimes(const struct tn_timeline *timeline)
{
    return timeline->lifetimes.items;
}

#endif
