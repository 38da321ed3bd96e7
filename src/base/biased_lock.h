/* SPDX-License-Identifier: MIT */
/*
 * A lock for what one thread uses most of the time. It leans towards ("is biased to") the thread
 * that took it often in a row: that thread then enters with a store and a load, without any atomic
 * read-modify-write. Another thread that wants it takes the bias away first, which costs
 * microseconds (os_barrier.h); each time that happens, it takes twice as long until the lock leans
 * again.
 *
 * Without bias it is one word, taken by one exchange and released by a plain store. A releasing
 * thread does not look whether others wait: they look again themselves, first in ever longer spins,
 * then in short sleeps. So a thread that works through many short turns is not slowed down by those
 * that wait, and a thread that waits through a device call sleeps. Not fair and not recursive.
 *
 * Why it is safe: the thread stores `inside`, then looks again whether the lock leans to it; who
 * takes the bias away says so first, has every thread pass a barrier, then reads `inside`. One of
 * the two sees the other. A thread can be stopped between its two looks for any time and then store
 * `inside` although the lock has long leaned elsewhere: so every thread has a seat of its own to
 * store it in, and a lock leans to no more threads than it has seats.
 *
 * Cost, acquired and released, measured beside each other on a shared Xeon: 1 ns with bias, 13
 * without, 20 for a mutex of POSIX threads.
 */
#ifndef TN_BASE_BIASED_LOCK_H
#define TN_BASE_BIASED_LOCK_H

#include "base/attr.h"
#include "base/lock_rank.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    TN_SEATS = 4
};

struct tn_seat {
    _Atomic uintptr_t thread; /* 0 = free; once taken it stays */
    _Atomic uint32_t inside;  /* the thread holds the lock, or is about to look whether it does */
};

struct tn_biased_lock {
    _Atomic(struct tn_seat *) leans; /* to this seat's thread, NULL = to none */
    struct tn_seat *seat;            /* where it leaned last; guarded by the lock */
    struct tn_seat seats[TN_SEATS];
    _Atomic uint32_t taken;  /* somebody holds the lock without bias */
    _Atomic uint32_t wanted; /* somebody had to wait since the last look */
    enum tn_lock_rank rank;
    bool unbiased;    /* of the present holder; this and the rest are guarded by the lock */
    uint32_t waits;   /* times that somebody had to wait for it */
    uint32_t streak;  /* times that `recent` took it in a row */
    uint32_t needed;  /* to lean to it; 0 = the lock never leans */
    uintptr_t recent; /* last thread that took it without bias */
};

void tn_biased_lock_init(struct tn_biased_lock *lock, enum tn_lock_rank rank);

/* Before it is used. False: it leans to no thread, ever. */
void tn_biased_lock_set_bias(struct tn_biased_lock *lock, bool biased);

/* The lock must not be held. */
void tn_biased_lock_fini(struct tn_biased_lock *lock);

/* For several locks of the same rank, of which the caller sees to the order: takes one; takes it if
 * nobody holds it (may fail for a moment while it leans to another thread, which ends the bias);
 * gives it back. */
void tn_biased_lock_acquire_another(struct tn_biased_lock *lock);
bool tn_biased_lock_try(struct tn_biased_lock *lock);
static inline void tn_biased_lock_leave(struct tn_biased_lock *lock);

void tn_biased_lock_acquire_slow(struct tn_biased_lock *lock, uintptr_t self);
void tn_biased_lock_release_slow(struct tn_biased_lock *lock);

/* Its address tells threads apart. That of a dead thread may come again: it is inside no lock. */
extern _Thread_local char tn_thread_mark __attribute__((tls_model("initial-exec")));

static inline bool tn_biased_lock_enter(struct tn_biased_lock *lock, uintptr_t self)
{
    struct tn_seat *seat = atomic_load_explicit(&lock->leans, memory_order_relaxed);

    if (!seat || atomic_load_explicit(&seat->thread, memory_order_relaxed) != self) {
        return false;
    }
    atomic_store_explicit(&seat->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* the processor's part is os_barrier's */
    if (tn_likely(atomic_load_explicit(&lock->leans, memory_order_acquire) == seat)) {
        return true;
    }
    atomic_store_explicit(&seat->inside, 0, memory_order_release);
    return false;
}

static inline void tn_biased_lock_acquire(struct tn_biased_lock *lock)
{
    const uintptr_t self = (uintptr_t)&tn_thread_mark;

    tn_lock_taking(lock, lock->rank);
    if (tn_unlikely(!tn_biased_lock_enter(lock, self))) {
        tn_biased_lock_acquire_slow(lock, self);
    }
    tn_lock_taken(lock, lock->rank);
}

static inline void tn_biased_lock_leave(struct tn_biased_lock *lock)
{
    if (tn_likely(!lock->unbiased)) {
        atomic_store_explicit(&lock->seat->inside, 0, memory_order_release);
    } else {
        tn_biased_lock_release_slow(lock);
    }
}

static inline void tn_biased_lock_release(struct tn_biased_lock *lock)
{
    tn_lock_leaving(lock);
    tn_biased_lock_leave(lock);
}

#endif
