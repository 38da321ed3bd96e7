/* SPDX-License-Identifier: MIT */
/*
 * Lanes: threads that work on different streams do not meet.
 *
 * While several threads want the engine's lock for several streams, each of these streams gets a
 * lane: a trail (trail.h) of its own with a lock of its own. Steps forward and back on it, which is
 * what programs do most, take that lock only. Everything else takes the engine's lock and then the
 * locks of all open lanes; so whoever holds the engine's lock sees and changes what is there as if
 * there were no lanes. Lanes open when there is contention and close when they do not pay, and
 * whenever something begins that moves free blocks from outside (see trail.h).
 *
 * Counters stay exact, and so do their peaks: a peak is the largest sum there ever was, not the sum
 * of the lanes' own. What the peaks leave above the present values is room in which nothing can
 * become a new peak, whoever fills it. The engine lends each lane what its trail wants, as far as
 * that goes, and the lane's trail is limited to the steps for which it is enough. A lane that wants
 * to go further takes from another lane; if none has enough, the call goes the engine's way, where
 * the sum is known and the peak can rise.
 *
 * Invariant, for every counter, "all" and each pool: what the lanes were lent and the engine's peak
 * add up to the true peak; no lane adds more than it was lent.
 * Locks: engine, then lanes in the order of their numbers. A thread that holds a lane's lock waits
 * for no other: it only tries those of the lanes it takes room from.
 * Owns: its trail. Lanes live as long as the engine.
 */
#ifndef TN_ALLOC_FAST_LANE_H
#define TN_ALLOC_FAST_LANE_H

#include "alloc/engine/counters.h"
#include "alloc/fast/trail.h"
#include "base/biased_lock.h"
#include "tarn/allocator.h"

enum {
    TN_LANES_MAX = 64, /* streams beyond that have none */
    TN_LANE_COUNTERS = 5
};

/* Amounts by counter (blocks, bytes, requested, split, split bytes): "all" and each pool. */
struct tn_lane_amounts {
    int64_t of[TN_LANE_COUNTERS][TARN_STAT_POOLS];
};

struct tn_lane {
    struct tn_biased_lock lock;
    tarn_stream stream; /* constant */
    uint32_t number;    /* constant: index among the lanes */
    bool open;
    struct tn_lane_amounts lent; /* may be negative, when more was freed than taken from here */
    struct tn_trail trail;
};

/* All of an engine. All zero but `id`: none. */
struct tn_lanes {
    uint64_t id;            /* constant: no other engine has it, ever */
    _Atomic bool open;      /* some lane is; also read without a lock, as a hint */
    _Atomic uint32_t count; /* also read by who takes room; lanes never go */
    struct tn_lane *lane[TN_LANES_MAX];

    uint32_t waits_seen; /* of the engine's lock, when contention was looked at last */
    uint32_t changes;    /* of the stream from call to call since then */
    uint32_t calls_left; /* that open lanes for their streams */
    uint32_t patience;   /* waits until lanes open; doubled when they did not pay */
    uint32_t first;      /* lane that room is lent to first, the next time */
    uint64_t slow_calls; /* calls that took all lanes, and their steps, since the last look */
    uint64_t steps;
    tarn_stream last_stream;
};

void tn_lanes_init(struct tn_lanes *lanes);

/* Every trail is forgotten. */
void tn_lanes_fini(struct tn_lanes *lanes);

/* ---- without the engine's lock ---- */

/* The next step of the stream's trail, if it is this request. False when the call has to go the
 * engine's way. */
bool tn_lane_alloc(struct tn_lanes *lanes, uint64_t requested, tarn_stream stream,
                   struct tarn_handle *handle_out);

/* Frees the newest step of the trail of the lane that this thread used last, if it is this pointer.
 */
bool tn_lane_free(struct tn_lanes *lanes, tarn_ptr ptr);

/* ---- with the engine's lock, for engine.h ---- */

/* Takes the locks of all open lanes and puts their counters together; and the reverse. */
void tn_lanes_gather(struct tn_lanes *lanes, struct tn_counters *counters);
void tn_lanes_spread(struct tn_lanes *lanes, struct tn_counters *counters);

/* The lane of the stream, or NULL when it has none that is open. */
struct tn_lane *tn_lanes_find(const struct tn_lanes *lanes, tarn_stream stream);

/* This thread allocates for the stream: from now on it looks in its lane first, if there is one. */
void tn_lanes_remember(const struct tn_lanes *lanes, tarn_stream stream);

/* Closes all; they are gathered, and their trails forgotten. */
void tn_lanes_close(struct tn_lanes *lanes);

/* Looks whether threads wait for the engine's lock on behalf of several streams, and then opens
 * lanes, this call's first. True when one was opened. */
bool tn_lanes_consider_slow(struct tn_lanes *lanes, uint32_t waits, tarn_stream stream);

/* Whether there is something to look at. */
static inline bool tn_lanes_may_open(const struct tn_lanes *lanes,
                                     const struct tn_biased_lock *lock)
{
    return lanes->calls_left > 0 || lock->waits != lanes->waits_seen;
}

static inline bool tn_lanes_consider(struct tn_lanes *lanes, const struct tn_biased_lock *lock,
                                     tarn_stream stream)
{
    return tn_unlikely(tn_lanes_may_open(lanes, lock)) &&
           tn_lanes_consider_slow(lanes, lock->waits, stream);
}

/* A call took all lanes: whether they pay for that. */
bool tn_lanes_pay(struct tn_lanes *lanes);

#endif
