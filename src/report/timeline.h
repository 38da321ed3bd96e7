/* SPDX-License-Identifier: MIT */
/*
 * The trace of one device as lives of blocks: from which entry to which each was in use. What was
 * there before the first entry is found from what the trace frees without having allocated it, and
 * from the blocks in use at the end that it does not know. So the bytes in use are exact at every
 * entry, also in a trace that begins in mid-run.
 *
 * Bytes of blocks are those that were asked for, as in PyTorch's `requested_bytes`: a block counts
 * until its free is complete. Reserved bytes are those of segments: what the snapshot has, less
 * what the trace added to it.
 *
 * Owns: its arrays; borrows the model. Immutable once made. Cost: O(entries + final blocks).
 */
#ifndef TN_REPORT_TIMELINE_H
#define TN_REPORT_TIMELINE_H

#include "base/vec.h"
#include "snapshot/model.h"

#define TN_NEVER UINT64_MAX

/* Use of a block from its allocation until it is free again. */
struct tn_life {
    uint64_t address;
    uint64_t size; /* bytes asked for */
    uint64_t stream;
    uint64_t start;     /* entry of the allocation; TN_NEVER: before the first */
    uint64_t requested; /* entry that asked for the free, TN_NEVER: none did */
    uint64_t end;       /* entry from which it is not in use, TN_NEVER: in use at the end */
    uint32_t stack;     /* of the allocation; TN_STACK_NONE: unknown */
};

/* The device right after an entry; TN_NEVER as `entry` is before the first. */
struct tn_moment {
    uint64_t entry;
    uint64_t requested;
    uint64_t reserved;
};

struct tn_timeline {
    const struct tn_model *model;
    const struct tn_trace *trace;
    int64_t device;
    struct tn_vec lives;    /* struct tn_life, in order of what first told of them */
    struct tn_moment start; /* before the first entry */
    struct tn_moment end;
    struct tn_moment requested_peak; /* the first of equals */
    struct tn_moment reserved_peak;
    struct tn_vec ooms;      /* uint64_t: entries */
    struct tn_vec deltas;    /* uint64_t an entry: bytes it adds, modulo 2^64 */
    uint64_t before_count;   /* lives that began before the first entry */
    uint64_t doubled_allocs; /* of an address in use: its free is missing */
    uint64_t unknown_frees;  /* of an address that the trace freed already */
};

/* `device` must be one that has a trace. False when host memory is missing; then there is nothing
 * to release. */
bool tn_timeline_init(struct tn_timeline *timeline, const struct tn_model *model,
                      size_t device) TN_MUST_CHECK;
void tn_timeline_fini(struct tn_timeline *timeline);

/* Whether the block was in use right after the entry (TN_NEVER: before the first). */
static inline bool tn_life_is_at(const struct tn_life *life, uint64_t entry)
{
    if (life->start == TN_NEVER) {
        return entry == TN_NEVER || life->end == TN_NEVER || entry < life->end;
    }
    return entry != TN_NEVER && life->start <= entry &&
           (life->end == TN_NEVER || entry < life->end);
}

/* Totals right after an entry. Cost: O(entries). */
struct tn_moment tn_timeline_at(const struct tn_timeline *timeline, uint64_t entry);

/* Most bytes reserved at any moment up to an entry. Cost: O(entries). */
uint64_t tn_timeline_reserved_max(const struct tn_timeline *timeline, uint64_t entry);

/* Bytes that an entry adds to the segments of its device; negative when it takes away. */
int64_t tn_reserved_delta(const struct tn_trace_entry *entry);

static inline const struct tn_life *tn_timeline_lives(const struct tn_timeline *timeline)
{
    return timeline->lives.items;
}

#endif
