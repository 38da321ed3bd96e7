/* SPDX-License-Identifier: MIT */
/*
 * Per-stream caches: threads that work on different streams do not contend.
 *
 * While several threads want the heap's lock for several streams, each of these streams gets a
 * cache: a lock, a shard (shard.h) and an undo log of its own. What an ordinary call changes is
 * then the stream's alone: its two free sets and their blocks, the shard, the log. So a call that a
 * free block serves takes the cache's lock only. Everything else takes the heap's lock and then the
 * locks of all open caches; whoever holds the heap's lock sees and changes what is there as if
 * there were no caches, and whoever holds a cache's lock may read what the heap has. Caches open
 * under contention and close when they do not pay, and whenever free blocks begin to change without
 * calls (heap.h: busy).
 *
 * Counters stay exact, and so do their peaks: a peak is the largest sum that ever occurred, not the
 * sum of the caches' own peaks. The room between the current values and the peaks can be used by
 * any cache without a new peak. It is divided into quotas (quota.h): each cache gets what its log
 * may need and an equal part of the rest. A call that would exceed the quota takes from another
 * cache's; if none has enough, it goes to the heap, where the sum is known and the peak can rise.
 * Taking the heap's lock collects all quotas, releasing it redistributes them.
 *
 * Invariant, for every counter, "all" and each pool: the quotas and the heap's peak add up to the
 * true peak; no cache adds more than its quota. Locks: the heap's, then those of caches, in any
 * order, because only the holder of the heap's waits for more than one. A thread that holds a
 * cache's lock waits for no other: it only tries those of the caches it takes quota from. Owns:
 * shard and log. Caches live as long as the heap, and so do the maps of their shards, closed or
 * not. tests/model/stream_cache.pml is a model of all this.
 */
#ifndef TN_ALLOC_FAST_STREAM_CACHE_H
#define TN_ALLOC_FAST_STREAM_CACHE_H

#include "alloc/fast/quota.h"
#include "alloc/fast/undo_log.h"
#include "alloc/pool/heap.h"
#include "base/biased_lock.h"
#include "tarn/allocator.h"

enum {
    TN_STREAM_CACHES_MAX = 64 /* streams beyond that have none */
};

struct tn_stream_cache {
    struct tn_biased_lock lock;
    tarn_stream stream; /* constant */
    uint32_t number;    /* constant: index among the caches */
    bool open;
    struct tn_free_set *sets[TN_POOLS]; /* of the default pools; NULL: does not exist */
    struct tn_quota quota; /* may be negative, when more was freed than allocated here */
    uint64_t hits;         /* calls served since the last look whether caches pay, but for those
                              that the log has not counted yet */
    uint32_t asked;        /* times it needed quota of the others, since it was last collected */
    struct tn_shard shard;
    struct tn_undo_log log;
};

/* All caches of a heap. */
struct tn_stream_caches {
    uint64_t id;            /* constant: no other heap ever has it */
    _Atomic bool open;      /* some cache is; also read without a lock, as a hint */
    _Atomic uint32_t count; /* also read by caches that look for quota; never falls */
    struct tn_stream_cache *list[TN_STREAM_CACHES_MAX];

    uint32_t waits_seen; /* for the heap's lock, at the last look at contention */
    uint32_t changes;    /* of the stream from call to call since then */
    uint32_t calls_left; /* further calls that open a cache for their stream */
    uint32_t patience;   /* waits until caches open; doubled each time they do not pay */
    uint32_t first;      /* cache that gets its quota first next time */
    uint64_t slow_calls; /* calls that took all caches or asked them, since the last look whether
                            they pay */
    bool is_due;         /* a cache has served many calls since then */
    tarn_stream last_stream;
};

void tn_stream_caches_init(struct tn_stream_caches *caches);

/* Every log is empty, and no block is allocated. */
void tn_stream_caches_fini(struct tn_stream_caches *caches);

/* ---- without the heap's lock ---- */

/* Serve a call from the cache that this thread used last. False, and nothing has changed that can
 * be seen, if the stream has another cache or none, or if the call needs more. */
bool tn_stream_cache_alloc(struct tn_stream_caches *caches, struct tn_heap *heap,
                           uint64_t requested, tarn_stream stream, tarn_ptr *ptr_out);
bool tn_stream_cache_free(struct tn_stream_caches *caches, struct tn_heap *heap, tarn_ptr ptr);

/* ---- with the heap's lock ---- */

/* Takes the locks of all open caches and their quotas, and counts what they did; and the
 * reverse. */
void tn_stream_caches_collect(struct tn_stream_caches *caches, struct tn_heap *heap);
void tn_stream_caches_redistribute(struct tn_stream_caches *caches, struct tn_heap *heap);

/* The last collection was for a block that is not in its cache's map, because it was allocated
 * before the cache opened: that happens once per block, and does not say that caches do not pay. */
void tn_stream_caches_excuse(struct tn_stream_caches *caches);

/* The cache of the stream, or NULL when it has none that is open. */
struct tn_stream_cache *tn_stream_caches_find(const struct tn_stream_caches *caches,
                                              tarn_stream stream);

/* This thread allocates for the stream: from now on it tries its cache first, if there is one. */
void tn_stream_caches_remember(const struct tn_stream_caches *caches, tarn_stream stream);

/* Closes all; they are collected, and their logs empty. */
void tn_stream_caches_close(struct tn_stream_caches *caches);

/* Looks whether threads wait for the heap's lock on behalf of several streams, and then opens
 * caches, this call's first. True when one was opened. */
bool tn_stream_caches_consider_slow(struct tn_stream_caches *caches, struct tn_heap *heap,
                                    tarn_stream stream);

/* Whether there is something to look at. */
static inline bool tn_stream_caches_may_open(const struct tn_stream_caches *caches,
                                             const struct tn_biased_lock *lock)
{
    return TN_FAST_HAS(TN_PART_STREAM_CACHES) &&
           (caches->calls_left > 0 || lock->waits != caches->waits_seen);
}

static inline bool tn_stream_caches_consider(struct tn_stream_caches *caches, struct tn_heap *heap,
                                             tarn_stream stream)
{
    return tn_unlikely(tn_stream_caches_may_open(caches, &heap->lock)) &&
           tn_stream_caches_consider_slow(caches, heap, stream);
}

/* Whether the caches, which are held, pay although calls have to take all of them. They do if
 * several are in use: one alone serves no faster than the heap. */
bool tn_stream_caches_pay(struct tn_stream_caches *caches);

#endif
