/* SPDX-License-Identifier: MIT */
/*
 * The trail: what was allocated lately, in order, so that a free in reverse order is a step back
 * and the same allocation again a step forward. Programs free most of what is short-lived in
 * reverse order and then ask for the same again.
 *
 *        begin                  mark                 end
 *          |  handed out          |  freed again      |
 *          +----+----+----+----+----+----+----+----+
 *
 * Best fit is a function of the free blocks, the request and the settings. So as long as nothing
 * but the steps themselves changed these, freeing the newest allocation leads back to the state
 * before it, and the same request from there leads to the same block. Such a step only moves the
 * mark: the block stays cut off and in the pointer map, as if it were handed out. Whoever looks at
 * blocks first has the steps beyond the mark merged for good (tn_trail_settle); whoever changes
 * something forgets the trail. engine.h does both when it takes the lock.
 *
 * The counters are brought up to date later, too (tn_trail_count): where the mark has been since
 * the last time says what their peaks were, and how often each step was made says what was
 * allocated and freed. Until then nothing else may move them. A step that was made so often that it
 * can hold no more goes the long way once, which counts it.
 *
 * A step is only kept while nothing but calls changes the free blocks: no pending events of other
 * streams, no requests routed to private pools, no ages that searches advance; and if the block
 * came from a free block, not from the device, and is not oversize.
 *
 * Where memory is not freed in reverse order steps only cost. So the trail looks, every
 * TN_TRAIL_STEPS steps that were left, how many were made again; if it is not one in four, none are
 * left for a while, and for longer the next time. What is allocated where does not depend on it.
 *
 * Guarded by the engine's lock, or by that of its lane (lane.h). Cost: a step is O(1) and touches
 * its own line and the block's; what is never stepped back costs a store of one line.
 */
#ifndef TN_ALLOC_FAST_TRAIL_H
#define TN_ALLOC_FAST_TRAIL_H

#include "alloc/engine/counters.h"
#include "alloc/fast/rest.h"
#include "alloc/pool/core.h"
#include "base/attr.h"

struct tn_engine;

enum {
    TN_TRAIL_STEPS = 512
};

/* One cache line. */
struct tn_trail_step {
    struct tn_block *block;
    uint64_t address;     /* of the block */
    uint64_t place;       /* in the pointer map, when it was put there */
    uint64_t requested;   /* the request that is this step */
    tarn_stream stream;   /* ... */
    uint64_t *behind;     /* requested size of the rest, if the block was cut off a larger one */
    int64_t split_bytes;  /* what the allocation did to the counters of free parts of segments */
    uint32_t passes;      /* steps forward that are not counted yet; full, it is no step */
    int16_t split_blocks; /* as split_bytes */
    uint8_t pool;         /* TN_SMALL or TN_LARGE */
};

/* All zero is an empty trail. */
struct tn_trail {
    uint32_t mark; /* steps before it are handed out, from it on freed again */
    uint32_t end;
    uint32_t floor;      /* where steps may lead: 0 and `end`; in a lane maybe less */
    uint32_t ceiling;    /* ... */
    uint32_t counted;    /* mark that the counters stand for */
    uint32_t low;        /* lowest and highest mark since */
    uint32_t high;       /* ... */
    uint32_t left;       /* steps left, and made again, since it was looked whether that pays */
    uint32_t again;      /* ... */
    struct tn_rest rest; /* of allocations that leave no step */
    uint64_t nothing;    /* what is behind blocks that were not cut off */
    struct tn_trail_step steps[TN_TRAIL_STEPS];
};

/* A step for the allocation just made, which is counted: all but `passes` is to be filled in. The
 * trail is settled and counted. */
struct tn_trail_step *tn_trail_add(struct tn_trail *trail);

/* Forgets all steps; the trail is settled and counted. */
void tn_trail_clear(struct tn_trail *trail);

/* Merges and files for good what was freed beyond the mark. Never fails. */
void tn_trail_settle_slow(struct tn_engine *engine, struct tn_trail *trail);

/* Looks whether steps pay. */
void tn_trail_judge(struct tn_trail *trail);

/* Counts the steps since the last time, and says how many that were; the second without looking at
 * peaks, for a lane: what it did was below them. */
uint64_t tn_trail_count_slow(struct tn_trail *trail, struct tn_counters *counters);
uint64_t tn_trail_count_below_peaks(struct tn_trail *trail, struct tn_counters *counters);

static inline bool tn_trail_is_settled(const struct tn_trail *trail)
{
    return trail->mark == trail->end;
}

static inline uint64_t tn_trail_count(struct tn_trail *trail, struct tn_counters *counters)
{
    return trail->low == trail->high ? 0 : tn_trail_count_slow(trail, counters);
}

/* Asked for every allocation that could be a step: whether it shall be one. */
static inline bool tn_trail_wants_step(struct tn_trail *trail)
{
    if (tn_likely(trail->rest.left > 0)) {
        trail->rest.left--;
        return false;
    }
    if (tn_unlikely(trail->left++ == TN_TRAIL_STEPS)) {
        tn_trail_judge(trail);
    }
    return trail->rest.left == 0;
}

/* The next step, if it is this request: made. Else NULL. */
static inline struct tn_trail_step *tn_trail_forward(struct tn_trail *trail, uint64_t requested,
                                                     tarn_stream stream)
{
    struct tn_trail_step *step = &trail->steps[trail->mark];

    if (trail->mark >= trail->ceiling || step->requested != requested || step->stream != stream ||
        step->passes == UINT32_MAX) {
        return NULL;
    }
    struct tn_block *block = step->block;

    trail->mark++;
    trail->high = trail->mark > trail->high ? trail->mark : trail->high;
    step->passes++;
    *step->behind = block->requested_size; /* as if it had been one block: see tn_block_split */
    block->requested_size = requested;
    return step;
}

/* The step that led here, if it is this pointer: unmade. Else NULL. */
static inline struct tn_trail_step *tn_trail_back(struct tn_trail *trail, tarn_ptr ptr)
{
    if (trail->mark <= trail->floor || trail->steps[trail->mark - 1].address != ptr) {
        return NULL;
    }
    trail->mark--;
    trail->low = trail->mark < trail->low ? trail->mark : trail->low;
    return &trail->steps[trail->mark];
}

#endif
