/* SPDX-License-Identifier: MIT */
/*
 * The order of lock acquisition. A thread may take a lock only if every lock that it holds has a
 * smaller rank, so that deadlocks are impossible. Builds with fast checks keep each thread's held
 * locks and stop the program on a reversal and on a release of a lock not held; other builds
 * compile it to nothing.
 */
#ifndef TN_BASE_LOCK_RANK_H
#define TN_BASE_LOCK_RANK_H

#include "base/assertion.h"

#include <stdbool.h>

/* In order of acquisition, outermost first. */
enum tn_lock_rank {
    TN_LOCK_DEVICES,      /* a table of the allocators of several devices */
    TN_LOCK_REGISTRY,     /* lists of objects: devices, allocators */
    TN_LOCK_ALLOCATOR,    /* one engine of one device */
    TN_LOCK_STREAM_CACHE, /* one stream of an engine */
    TN_LOCK_SINK,         /* event sinks: history, tracker */
    TN_LOCK_STACKS,       /* table of stacks, symbols */
    TN_LOCK_DEVICE_CHECK, /* contract checks around a device */
    TN_LOCK_DEVICE,       /* a device's own records */
    TN_LOCK_LOG,          /* the log callback */
    TN_LOCK_RANK_COUNT
};

enum {
    TN_LOCKS_HELD_MAX = TN_LOCK_RANK_COUNT /* each is of a higher rank than the one before */
};

/* Name of a rank, for messages: "device". */
const char *tn_lock_rank_name(enum tn_lock_rank rank);

/* Implementations of the functions below with checks; `lock` is any address that identifies the
 * lock. */
void tn_held_check(const void *lock, enum tn_lock_rank rank);
void tn_held_add(const void *lock, enum tn_lock_rank rank);
void tn_held_remove(const void *lock);
bool tn_held_has(const void *lock);

/* Call before acquiring the lock, after acquiring it, and before releasing it. */
static inline void tn_lock_taking(const void *lock, enum tn_lock_rank rank)
{
    if (TN_CHECKS_FAST) {
        tn_held_check(lock, rank);
    }
}

static inline void tn_lock_taken(const void *lock, enum tn_lock_rank rank)
{
    if (TN_CHECKS_FAST) {
        tn_held_add(lock, rank);
    }
}

static inline void tn_lock_leaving(const void *lock)
{
    if (TN_CHECKS_FAST) {
        tn_held_remove(lock);
    }
}

/* Whether this thread holds the lock. For assertions only: always true in builds without fast
 * checks. */
static inline bool tn_lock_is_held(const void *lock)
{
    return !TN_CHECKS_FAST || tn_held_has(lock);
}

#endif
