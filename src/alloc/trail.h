/* SPDX-License-Identifier: MIT */
/*
 * The trail: what was allocated lately, in order, so that a free in reverse order is a step back
 * and the same allocation again a step forward. Programs free most of what is short-lived in
 * reverse order and then ask for the same sizes again.
 *
 *        begin                  mark                 end
 *          |  handed out          |  freed again      |
 *          +----+----+----+----+----+----+----+----+
 *
 * Best fit is a function of the free blocks, the request and the settings. So as long as nothing
 * but the steps themselves changed these, freeing the newest allocation leads back to the state
 * before it, and the same request from there leads to the same block. Stepping back only moves the
 * mark and the counters: the block stays cut off and in the pointer map, as if it were handed out.
 * Whoever looks at blocks first has the steps beyond the mark merged for good (tn_trail_settle);
 * whoever changes something forgets the trail (tn_trail_forget). engine.h does both when it takes
 * the lock.
 *
 * A step is only kept while nothing but calls changes the free blocks: no pending events of other
 * streams, no requests routed to private pools, no ages that searches advance, and the block came
 * from a free block, not from the device.
 *
 * Guarded by the engine's lock, or by that of its lane (lane.h). Cost: a step forward or back is O(1) and touches one block; what is
 * never stepped back costs one store of 48 bytes.
 */
#ifndef TN_ALLOC_TRAIL_H
#define TN_ALLOC_TRAIL_H

#include "alloc/core.h"
#include "alloc/size_class.h"
#include "base/assertion.h"

struct tn_engine;

enum {
    TN_TRAIL_STEPS = 512
};

struct tn_trail_step {
    struct tn_block *block;
    tarn_stream stream;
    uint64_t requested;   /* the last request that was this step, and what requests of this step */
    uint64_t rounded;     /* are rounded to: a block that is not cut is larger */
    int64_t split_bytes;  /* what the allocation did to the counters of free parts of segments */
    int32_t split_blocks; /* ... */
    bool cut;             /* the block was cut off a larger one, which goes on behind it */
    uint8_t pool;         /* TN_SMALL or TN_LARGE */
};

/* All zero is an empty trail. */
struct tn_trail {
    uint32_t mark; /* steps before it are handed out, from it on freed again */
    uint32_t end;
    struct tn_trail_step steps[TN_TRAIL_STEPS];
};

/* Forgets the older half: those blocks are allocations like others then. */
void tn_trail_shorten(struct tn_trail *trail);

/* Merges and files for good what was freed beyond the mark. Never fails. */
void tn_trail_settle_slow(struct tn_engine *engine, struct tn_trail *trail);

static inline bool tn_trail_is_settled(const struct tn_trail *trail)
{
    return trail->mark == trail->end;
}

/* A step for the allocation just made, to be filled in. Nothing lies beyond the mark. */
static inline struct tn_trail_step *tn_trail_add(struct tn_trail *trail)
{
    tn_assert(tn_trail_is_settled(trail));
    if (tn_unlikely(trail->end == TN_TRAIL_STEPS)) {
        tn_trail_shorten(trail);
    }
    trail->mark = trail->end + 1;
    return &trail->steps[trail->end++];
}

/* The next step, if it is this request; else NULL. */
static inline struct tn_trail_step *tn_trail_next(struct tn_trail *trail, uint64_t requested,
                                                  tarn_stream stream,
                                                  const struct tarn_config *config)
{
    struct tn_trail_step *step = &trail->steps[trail->mark];

    if (trail->mark == trail->end || step->stream != stream ||
        (step->requested != requested && step->rounded != tn_round_size(requested, config))) {
        return NULL;
    }
    return step;
}

/* Hands out the next step's block again, but for counters and events. */
static inline struct tn_block *tn_trail_forward(struct tn_trail *trail, struct tn_trail_step *step,
                                                uint64_t requested, uint64_t stack)
{
    struct tn_block *block = step->block;

    trail->mark++;
    step->requested = requested;
    if (step->cut) { /* as if it had been one block: see tn_block_split */
        block->next->requested_size = block->requested_size;
    }
    block->requested_size = requested;
    block->u.stack = stack;
    return block;
}

/* The newest step that is handed out, if it is this pointer and no other stream used it; else NULL.
 */
static inline const struct tn_trail_step *tn_trail_last(const struct tn_trail *trail, tarn_ptr ptr)
{
    if (trail->mark == 0) {
        return NULL;
    }
    const struct tn_trail_step *step = &trail->steps[trail->mark - 1];

    return step->block->address == ptr && step->block->uses == 0 ? step : NULL;
}

/* Frees the newest step, but for counters and events. */
static inline void tn_trail_back(struct tn_trail *trail)
{
    trail->mark--;
    trail->steps[trail->mark].block->u.stack = 0;
}

#endif
