/* SPDX-License-Identifier: MIT */
#include "base/lock.h"

#include "base/assertion.h"
#include "base/os_wait.h"

#include <stdio.h>

/* Locks that this thread holds, in the order taken; empty in builds without fast checks. */
struct held_locks {
    unsigned count;
    const struct tn_lock *lock[TN_LOCKS_HELD_MAX];
};

static _Thread_local struct held_locks held;

const char *tn_lock_rank_name(enum tn_lock_rank rank)
{
    static const char *const names[TN_LOCK_RANK_COUNT] = {
        [TN_LOCK_REGISTRY] = "registry",
        [TN_LOCK_ALLOCATOR] = "allocator",
        [TN_LOCK_SINK] = "sink",
        [TN_LOCK_STACKS] = "stacks",
        [TN_LOCK_DEVICE_CHECK] = "device check",
        [TN_LOCK_DEVICE] = "device",
        [TN_LOCK_LOG] = "log",
    };
    return (unsigned)rank < TN_LOCK_RANK_COUNT ? names[rank] : "unknown";
}

static TN_COLD void held_fail_order(const struct tn_lock *wanted, const struct tn_lock *other)
{
    char text[160];

    (void)snprintf(text, sizeof text, "lock order: taking rank %d (%s) while holding rank %d (%s)",
                   (int)wanted->rank, tn_lock_rank_name(wanted->rank), (int)other->rank,
                   tn_lock_rank_name(other->rank));
    tn_assert_failed(text, __FILE__, __LINE__);
}

static void held_check_order(const struct tn_lock *wanted)
{
    for (unsigned i = 0; i < held.count; i++) {
        if (held.lock[i]->rank >= wanted->rank) {
            held_fail_order(wanted, held.lock[i]);
        }
    }
    if (held.count == TN_LOCKS_HELD_MAX) {
        tn_assert_failed("too many locks held by one thread", __FILE__, __LINE__);
    }
}

static void held_remove(const struct tn_lock *lock)
{
    for (unsigned i = held.count; i-- > 0;) {
        if (held.lock[i] == lock) {
            held.count--;
            for (; i < held.count; i++) {
                held.lock[i] = held.lock[i + 1];
            }
            return;
        }
    }
    tn_assert_failed("release of a lock that this thread does not hold", __FILE__, __LINE__);
}

enum tn_lock_state {
    LOCK_FREE,
    LOCK_TAKEN,
    LOCK_AWAITED /* taken, and somebody may sleep */
};

enum {
    SPIN_ROUNDS = 200
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
    /* Who wakes up does not know whether others sleep: it leaves the lock awaited. */
    while (atomic_exchange_explicit(&lock->state, LOCK_AWAITED, memory_order_acquire) !=
           LOCK_FREE) {
        tn_os_wait(&lock->state, LOCK_AWAITED);
    }
}

void tn_lock_acquire(struct tn_lock *lock)
{
    if (TN_CHECKS_FAST) {
        held_check_order(lock);
    }
    if (tn_unlikely(!lock_try(lock))) {
        lock_wait(lock);
    }
    if (TN_CHECKS_FAST) {
        held.lock[held.count++] = lock;
    }
}

void tn_lock_release(struct tn_lock *lock)
{
    if (TN_CHECKS_FAST) {
        held_remove(lock);
    }
    if (tn_unlikely(atomic_exchange_explicit(&lock->state, LOCK_FREE, memory_order_release) ==
                    LOCK_AWAITED)) {
        tn_os_wake_one(&lock->state);
    }
}

bool tn_lock_held(const struct tn_lock *lock)
{
    if (!TN_CHECKS_FAST) {
        return true;
    }
    for (unsigned i = 0; i < held.count; i++) {
        if (held.lock[i] == lock) {
            return true;
        }
    }
    return false;
}
