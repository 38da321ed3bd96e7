/* SPDX-License-Identifier: MIT */
/*
 * Segment, pool and stream of each block at its allocation, and of each entry that adds or removes
 * memory. Traces of PyTorch up to 2.11 do not contain the pool of a segment; it is known if the
 * snapshot still has the segment.
 *
 * A block's pool is that of its segment. For the pool of an entry, the entry itself takes
 * precedence (tn_entry_pool).
 *
 * Owns: the table. Immutable once made. Cost: O(entries + lifetimes log segments).
 */
#ifndef TN_ANALYSIS_POOL_STREAM_H
#define TN_ANALYSIS_POOL_STREAM_H

#include "analysis/segment_walk.h"
#include "analysis/timeline.h"
#include "tarn/selection.h"

struct tn_pool_stream {
    uint64_t segment; /* address; 0: unknown */
    uint64_t stream;
    uint32_t pool; /* number of `pools`; 0: unknown */
};

struct tn_pool_streams {
    struct tn_vec all;      /* struct tn_pool_stream; number 0 is the unknown one */
    struct tn_vec pools;    /* struct tn_pool_id; number 0 is not used */
    struct tn_vec of_entry; /* by entry, uint32_t: its pool_stream; 0 for those without memory */
};

/* Sets `pool_stream` of every lifetime of a whole timeline. False when host memory is missing; then
 * there is nothing to release. */
bool tn_pool_streams_init(struct tn_pool_streams *pool_streams,
                          struct tn_timeline *timeline) TN_MUST_CHECK;
void tn_pool_streams_fini(struct tn_pool_streams *pool_streams);

/* The pools of a trace's entries, without going through the trace. Owns: the walk. */
struct tn_entry_pools {
    struct tn_segment_walk finals; /* stays at the end */
    bool has_private; /* a segment of the snapshot is in another pool than the default */
};

/* False when host memory is missing; then there is nothing to release. */
bool tn_entry_pools_init(struct tn_entry_pools *pools,
                         const struct tn_trace_source *source) TN_MUST_CHECK;
void tn_entry_pools_fini(struct tn_entry_pools *pools);

/* The pool of an entry: as it says itself, or else that of the segment which the snapshot has at
 * its address. False when neither is there. *by_out is that segment where the answer is from it,
 * else NULL. */
bool tn_entry_pool(const struct tn_entry_pools *pools, const struct tn_trace_entry *entry,
                   struct tn_pool_id *pool_out, const struct tn_segment_range **by_out);

static inline const struct tn_pool_stream *
tn_pool_stream_at(const struct tn_pool_streams *pool_streams, uint32_t number)
{
    return (const struct tn_pool_stream *)pool_streams->all.items + number;
}

/* Whether the pool is one of those. `one` is for TARN_POOLS_ONE. */
bool tn_pool_is_of(struct tn_pool_id pool, enum tarn_pools pools, const uint64_t one[2]);

/* The same for a number; false where the pool is unknown, unless all are wanted. */
bool tn_pool_stream_is_of(const struct tn_pool_streams *pool_streams, uint32_t pool_stream,
                          enum tarn_pools pools, const uint64_t one[2]);

static inline struct tn_pool_id tn_pool_stream_pool(const struct tn_pool_streams *pool_streams,
                                                    uint32_t pool)
{
    return ((const struct tn_pool_id *)pool_streams->pools.items)[pool];
}

#endif
