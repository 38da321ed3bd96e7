/* SPDX-License-Identifier: MIT */
/*
 * The order in which locks are taken. A thread may take a lock only while every lock that it holds
 * has a smaller rank, so that no two threads can wait for each other. Builds with fast checks keep
 * each thread's held locks and stop the program on a reversal, on a release of a lock not held and
 * on more than TN_LOCKS_HELD_MAX at once; in other builds all of this is nothing.
 */
#ifndef TN_BASE_LOCK_RANK_H
#define TN_BASE_LOCK_RANK_H

#include "base/assertion.h"

#include <stdbool.h>

/* In the order in which they are taken, outermost first. */
enum tn_lock_rank {
    TN_LOCK_REGISTRY,     /* lists of objects: devices, allocators */
    TN_LOCK_ALLOCATOR,    /* one engine of one device */
    TN_LOCK_STREAM_CACHE, /* one stream of an engine */
    TN_LOCK_SINK,         /* who receives events: history, tracker */
    TN_LOCK_STACKS,       /* table of stacks, symbols */
    TN_LOCK_DEVICE_CHECK, /* contract checks around a device */
    TN_LOCK_DEVICE,       /* a device's own records */
    TN_LOCK_LOG,          /* the log callback */
    TN_LOCK_RANK_COUNT
};

enum {
    TN_LOCKS_HELD_MAX = 16
};

/* Name of a rank, for messages: "device". */
const char *tn_lock_rank_name(enum tn_lock_rank rank);

/* What the functions below do where checks are on; `lock` is any address that stands for one. */
void tn_held_check(const void *lock, enum tn_lock_rank rank);
void tn_held_add(const void *lock, enum tn_lock_rank rank);
void tn_held_remove(const void *lock);
bool tn_held_has(const void *lock);

/* Before this thread takes the lock, once it has it, and before it gives it back. */
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

/* Whether this thread holds the lock. For assertions only: builds without fast checks do not know
 * and say true. */
static inline bool tn_lock_is_held(const void *lock)
{
    return !TN_CHECKS_FAST || tn_held_has(lock);
}

#endif
