/* SPDX-License-Identifier: MIT */
/*
 * A ranked lock: one word, acquired with one atomic operation when it is free. A waiting thread
 * spins briefly (critical sections take well below a microsecond) and then sleeps until the lock is
 * released. Not fair and not recursive.
 *
 * The ranks (lock_rank.h) define the order of acquisition.
 */
#ifndef TN_BASE_LOCK_H
#define TN_BASE_LOCK_H

#include "base/lock_rank.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tn_lock {
    _Atomic uint32_t state; /* enum tn_lock_state in lock.c */
    enum tn_lock_rank rank;
};

void tn_lock_init(struct tn_lock *lock, enum tn_lock_rank rank);

/* The lock must not be held. */
void tn_lock_fini(struct tn_lock *lock);

void tn_lock_acquire(struct tn_lock *lock);
void tn_lock_release(struct tn_lock *lock);

#endif
