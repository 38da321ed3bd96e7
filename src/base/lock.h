/* SPDX-License-Identifier: MIT */
/*
 * A lock with a rank: one word that is taken by one atomic operation when it is free. A thread that
 * finds it taken spins for a moment (what is guarded takes well below a microsecond) and then
 * sleeps until it is released. Not fair and not recursive.
 *
 * A thread may take a lock only while every lock that it holds has a smaller
 * rank, so that no two threads can wait for each other. Builds with fast checks keep each thread's
 * held locks and stop the program on a reversal, on a release of a lock not held and on more than
 * TN_LOCKS_HELD_MAX at once; other builds pay for the word only.
 */
#ifndef TN_BASE_LOCK_H
#define TN_BASE_LOCK_H

#include "base/attr.h"
#include "tarn/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In the order in which they are taken, outermost first. */
enum tn_lock_rank {
    TN_LOCK_REGISTRY,     /* lists of objects: devices, allocators */
    TN_LOCK_ALLOCATOR,    /* one engine of one device */
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

struct tn_lock {
    _Atomic uint32_t state; /* enum tn_lock_state in lock.c */
    enum tn_lock_rank rank;
};

void tn_lock_init(struct tn_lock *lock, enum tn_lock_rank rank);

/* The lock must not be held. */
void tn_lock_fini(struct tn_lock *lock);

void tn_lock_acquire(struct tn_lock *lock);
void tn_lock_release(struct tn_lock *lock);

/* Whether this thread holds the lock. For assertions only: builds without fast checks do not know
 * and say true. */
bool tn_lock_held(const struct tn_lock *lock);

/* Name of a rank, for messages: "device". */
const char *tn_lock_rank_name(enum tn_lock_rank rank);

#endif
