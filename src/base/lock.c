/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/os_wait.h"

enum tn_lock_state {
    LOCK_FREE,
    LOCK_TAKEN,
    LOCK_AWAITED /* taken, and a thread may be sleeping */
};

enum {
#ifdef TN_SCHEDULED /* tests/schedule: whoever waits sleeps soon */
    SPIN_ROUNDS = 1
#else
    SPIN_ROUNDS = 200
#endif
};

void tn_lock_init(struct tn_lock *lock, enum tn_lock_rank rank)
{
    tn_assert((unsigned)rank < TN_LOCK_RANK_COUNT);
    atomic_init(&lock->state, LOCK_FREE);
    lock->rank = rank;
}

void tn_lock_fini(struct tn_lock *lock)
{
    tn_assert(atomic_load(&lock->state) == LOCK_FREE);
    (void)lock;
}

static bool lock_try(struct tn_lock *lock)
{
    uint32_t expected = LOCK_FREE;

    return atomic_compare_exchange_strong_explicit(&lock->state, &expected, LOCK_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

static TN_COLD void lock_wait(struct tn_lock *lock)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == LOCK_FREE &&
            lock_try(lock)) {
            return;
        }
        tn_os_relax();
    }
    /* A woken thread does not know whether others sleep, so it leaves the state AWAITED. */
    while (atomic_exchange_explicit(&lock->state, LOCK_AWAITED, memory_order_acquire) !=
           LOCK_FREE) {
        tn_os_wait(&lock->state, LOCK_AWAITED);
    }
}

void tn_lock_acquire(struct tn_lock *lock)
{
    tn_lock_taking(lock, lock->rank);
    if (tn_unlikely(!lock_try(lock))) {
        lock_wait(lock);
    }
    tn_lock_taken(lock, lock->rank);
}

void tn_lock_release(struct tn_lock *lock)
{
    tn_lock_leaving(lock);
    if (tn_unlikely(atomic_exchange_explicit(&lock->state, LOCK_FREE, memory_order_release) ==
                    LOCK_AWAITED)) {
        tn_os_wake_one(&lock->state);
    }
}
