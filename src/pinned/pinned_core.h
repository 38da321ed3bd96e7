/* SPDX-License-Identifier: MIT */
/*
 * The structures of tarn/pinned.h. A block is in one of these states, and moves down the list and
 * back up:
 *
 *   allocated by tarn_pinned_alloc
 *   waiting      freed, for the events of the streams that used it
 *   of a graph freed, but a captured graph uses its address
 *   lost         freed while the device failed (pinned_free_catch_all)
 *   cached in the free list of its size, last in, first out. Sizes are powers of two, but for those
 *          beyond pinned_max_round_threshold: the list of a power has all above the one before
 *
 * The counters follow from the blocks, and the events in the queue and out of it from those that
 * blocks wait for (tarn_pinned_check).
 */
#ifndef TN_PINNED_PINNED_CORE_H
#define TN_PINNED_PINNED_CORE_H

#include "base/bits.h"
#include "base/lock.h"
#include "base/os_fork.h"
#include "base/tree.h"
#include "base/vec.h"
#include "pinned/pinned_event.h"
#include "pinned/pinned_source.h"
#include "pinned/pinned_stats.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    TN_PINNED_SIZES = 58 /* powers of two that a request may have */
};

enum tn_pinned_state {
    TN_PINNED_CACHED,
    TN_PINNED_HANDED_OUT,
    TN_PINNED_WAITING,
    TN_PINNED_OF_GRAPH,
    TN_PINNED_LOST
};

struct tn_pinned_use {
    struct tarn_device *device;
    tarn_stream stream;
};

struct tn_pinned_block {
    struct tn_tree_node node; /* of all blocks, by address */
    struct tn_pinned_memory memory;
    enum tn_pinned_state state;
    uint64_t requested;           /* requested bytes of the last request */
    uint64_t stack;               /* of the request or the free; 0 = none, always 0 in the cache */
    bool captured;                /* a capturing stream used it */
    uint32_t event_count;         /* number of events that it waits for */
    struct tn_vec uses;           /* struct tn_pinned_use, each once */
    struct tn_pinned_block *next; /* in its free list */
};

struct tarn_pinned {
    struct tarn_device *device; /* constant, like the settings below */
    bool background;
    bool catch_all;
    uint64_t max_rounded; /* pinned_max_round_threshold or pinned_max_cached_size */
    uint64_t max_cached;  /* pinned_max_cached_size */
    struct tn_pinned_source source;
    struct tn_fork_watch fork;
    struct tn_lock lock;
    struct tn_tree blocks;
    struct tn_pinned_block *cached[TN_PINNED_SIZES]; /* by log2 of the size, rounded up */
    struct tn_pinned_events events;
    uint64_t asked; /* events taken out of the queue while they are being queried */
    struct tarn_pinned_stats stats;
    struct tarn_sink sink; /* `receive` NULL: no sink */
    bool thread_runs;
    pthread_t thread;
    atomic_bool stops; /* the thread */
};

/* Number of the free list of a size. */
static inline unsigned tn_pinned_list_of(uint64_t size)
{
    return tn_log2_floor(tn_pow2_ceil(size));
}

static inline struct tn_pinned_block *tn_pinned_block_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct tn_pinned_block, node);
}

#endif
