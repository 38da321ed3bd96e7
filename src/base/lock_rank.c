/* SPDX-License-Identifier: MIT */
#include "base/lock_rank.h"

#include <stdio.h>

struct held_lock {
    const void *lock;
    enum tn_lock_rank rank;
};

/* Locks that this thread holds, in the order taken; empty in builds without fast checks. */
struct held_locks {
    unsigned count;
    struct held_lock lock[TN_LOCKS_HELD_MAX];
};

static _Thread_local struct held_locks held;

const char *tn_lock_rank_name(enum tn_lock_rank rank)
{
    static const char *const names[TN_LOCK_RANK_COUNT] = {
        [TN_LOCK_DEVICES] = "devices",
        [TN_LOCK_REGISTRY] = "registry",
        [TN_LOCK_ALLOCATOR] = "allocator",
        [TN_LOCK_STREAM_CACHE] = "stream cache",
        [TN_LOCK_SINK] = "sink",
        [TN_LOCK_STACKS] = "stacks",
        [TN_LOCK_DEVICE_CHECK] = "device check",
        [TN_LOCK_DEVICE] = "device",
        [TN_LOCK_LOG] = "log",
    };
    return (unsigned)rank < TN_LOCK_RANK_COUNT ? names[rank] : "unknown";
}

static TN_COLD void held_fail_order(enum tn_lock_rank wanted, enum tn_lock_rank other)
{
    char text[160];

    (void)snprintf(text, sizeof text, "lock order: taking rank %d (%s) while holding rank %d (%s)",
                   (int)wanted, tn_lock_rank_name(wanted), (int)other, tn_lock_rank_name(other));
    tn_assert_failed(text, __FILE__, __LINE__);
}

void tn_held_check(const void *lock, enum tn_lock_rank rank)
{
    (void)lock;
    for (unsigned i = 0; i < held.count; i++) {
        if (held.lock[i].rank >= rank) {
            held_fail_order(rank, held.lock[i].rank);
        }
    }
}

void tn_held_add(const void *lock, enum tn_lock_rank rank)
{
    held.lock[held.count++] = (struct held_lock){.lock = lock, .rank = rank};
}

void tn_held_remove(const void *lock)
{
    for (unsigned i = held.count; i-- > 0;) {
        if (held.lock[i].lock == lock) {
            held.count--;
            for (; i < held.count; i++) {
                held.lock[i] = held.lock[i + 1];
            }
            return;
        }
    }
    tn_assert_failed("release of a lock that this thread does not hold", __FILE__, __LINE__);
}

bool tn_held_has(const void *lock)
{
    for (unsigned i = 0; i < held.count; i++) {
        if (held.lock[i].lock == lock) {
            return true;
        }
    }
    return false;
}
