/* SPDX-License-Identifier: MIT */
#include "base/biased_lock.h"

#include "base/os_barrier.h"
#include "base/os_wait.h"

#include <stddef.h>

enum {
    STREAK_FIRST = 64,
    STREAK_MAX = 1 << 20,
    SPINS_FIRST = 4, /* pauses between two polls, doubled up to SPINS_LAST */
    SPINS_LAST = 64,
    LOOKS_AWAKE = 6,      /* polls before the first sleep: see wait_a_while */
    LOOKS_OF_VISITOR = 12 /* then it gives up, after a millisecond or two */
};

_Thread_local char tn_thread_mark __attribute__((tls_model("initial-exec")));

void tn_biased_lock_init(struct tn_biased_lock *lock, enum tn_lock_rank rank)
{
    tn_assert((unsigned)rank < TN_LOCK_RANK_COUNT);
    atomic_init(&lock->leans, NULL);
    for (int i = 0; i < TN_SEATS; i++) {
        atomic_init(&lock->seats[i].thread, 0);
        atomic_init(&lock->seats[i].inside, 0);
    }
    atomic_init(&lock->taken, 0);
    atomic_init(&lock->wanted, 0);
    lock->seat = NULL;
    lock->rank = rank;
    lock->unbiased = false;
    lock->visited = false;
    lock->host = NULL;
    lock->recent = 0;
    lock->waits = 0;
    lock->streak = 0;
    lock->needed = tn_os_barrier_available() ? STREAK_FIRST : 0;
}

void tn_biased_lock_set_bias(struct tn_biased_lock *lock, bool biased)
{
    lock->needed = biased ? lock->needed : 0;
}

void tn_biased_lock_fini(struct tn_biased_lock *lock)
{
    for (int i = 0; i < TN_SEATS; i++) {
        tn_assert(atomic_load(&lock->seats[i].inside) == 0);
    }
    tn_assert(atomic_load(&lock->taken) == 0);
    (void)lock;
}

/* Waits between two polls of a lock that another thread holds: spinning for about 7 microseconds in
 * total, then sleeping. Sixteen threads contending for one lock take 42 ns per pair of calls; with
 * 24 polls before the first sleep it was 110 ns (measured on 16 processors). */
static void wait_a_while(unsigned look)
{
    const unsigned doubled = look < 8 ? (unsigned)SPINS_FIRST << look : SPINS_LAST;
    const unsigned spins = doubled < SPINS_LAST ? doubled : SPINS_LAST;

    if (look >= LOOKS_AWAKE) {
        tn_os_nap(look - LOOKS_AWAKE);
        return;
    }
    for (unsigned i = 0; i < spins; i++) {
        tn_os_relax();
    }
}

static bool lock_try(struct tn_biased_lock *lock)
{
    return atomic_load_explicit(&lock->taken, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire) == 0;
}

static TN_COLD void lock_wait(struct tn_biased_lock *lock)
{
    unsigned look = 0;

    do {
        if (atomic_load_explicit(&lock->wanted, memory_order_relaxed) == 0) {
            atomic_store_explicit(&lock->wanted, 1, memory_order_relaxed);
        }
        wait_a_while(look++);
    } while (!lock_try(lock));
}

/* The caller holds the word. Afterwards no thread can enter by bias, but the biased one may still
 * be inside. */
static TN_COLD void lock_end_bias(struct tn_biased_lock *lock)
{
    atomic_store_explicit(&lock->leans, NULL, memory_order_relaxed);
    tn_os_barrier();
    lock->needed = lock->needed < STREAK_MAX / 2 ? lock->needed * 2 : STREAK_MAX;
}

static bool lock_is_biased(const struct tn_biased_lock *lock)
{
    return atomic_load_explicit(&lock->leans, memory_order_relaxed) != NULL;
}

/* Needed even if the bias has already ended, because the revoking thread may not have waited.
 * Earlier biased threads cannot be inside: each was waited for before the next bias. */
static bool lock_owner_is_inside(const struct tn_biased_lock *lock)
{
    return lock->seat && atomic_load_explicit(&lock->seat->inside, memory_order_acquire) != 0;
}

/* The caller holds the word, and no thread is inside. */
static void lock_enter_unbiased(struct tn_biased_lock *lock, uintptr_t self)
{
    lock->unbiased = true;
    lock->streak = lock->recent == self ? lock->streak + 1 : 0;
    lock->recent = self;
}

TN_NOINLINE void tn_biased_lock_acquire_slow(struct tn_biased_lock *lock, uintptr_t self)
{
    const bool waited = !lock_try(lock);

    if (tn_unlikely(waited)) {
        lock_wait(lock);
    }
    if (tn_unlikely(lock_is_biased(lock))) {
        lock_end_bias(lock);
    }
    for (unsigned look = 0; tn_unlikely(lock_owner_is_inside(lock)); look++) {
        wait_a_while(look);
    }
    lock_enter_unbiased(lock, self);
    lock->waits += waited;
}

bool tn_biased_lock_try(struct tn_biased_lock *lock)
{
    if (!lock_try(lock)) {
        return false;
    }
    if (lock_is_biased(lock)) {
        lock_end_bias(lock);
    }
    /* Do not wait: two threads may try each other's locks. A biased thread that enters too late
     * leaves again. */
    if (lock_owner_is_inside(lock)) {
        atomic_store_explicit(&lock->taken, 0, memory_order_release);
        return false;
    }
    lock_enter_unbiased(lock, (uintptr_t)&tn_thread_mark);
    return true;
}

void tn_biased_lock_acquire_another(struct tn_biased_lock *lock)
{
    const uintptr_t self = (uintptr_t)&tn_thread_mark;

    if (!tn_biased_lock_enter(lock, self)) {
        tn_biased_lock_acquire_slow(lock, self);
    }
}

/* Takes the word; false if another thread keeps it. */
static bool visit_begin(struct tn_biased_lock *lock)
{
    for (unsigned look = 0; look < LOOKS_OF_VISITOR; look++) {
        if (lock_try(lock)) {
            return true;
        }
        wait_a_while(look);
    }
    return false;
}

/* The caller holds the word, and no thread can enter by bias: waits until none is inside. */
static bool visit_wait(const struct tn_biased_lock *lock)
{
    for (unsigned look = 0; look < LOOKS_OF_VISITOR; look++) {
        if (!lock_owner_is_inside(lock)) {
            return true;
        }
        wait_a_while(look);
    }
    return false;
}

static bool lock_visit(struct tn_biased_lock *lock)
{
    if (!visit_begin(lock)) {
        return false;
    }
    struct tn_seat *host = atomic_load_explicit(&lock->leans, memory_order_relaxed);

    if (host) {
        atomic_store_explicit(&lock->leans, NULL, memory_order_relaxed);
        tn_os_barrier();
    }
    if (!visit_wait(lock)) { /* all is as before */
        atomic_store_explicit(&lock->leans, host, memory_order_release);
        atomic_store_explicit(&lock->taken, 0, memory_order_release);
        return false;
    }
    lock->unbiased = true;
    lock->visited = true;
    lock->host = host;
    return true;
}

bool tn_biased_lock_visit(struct tn_biased_lock *lock)
{
    tn_lock_taking(lock, lock->rank);
    const bool taken = lock_visit(lock);

    if (taken) {
        tn_lock_taken(lock, lock->rank);
    }
    return taken;
}

void tn_biased_lock_visit_another(struct tn_biased_lock *lock)
{
    while (!lock_visit(lock)) {
    }
}

/* Gives the bias back, unless somebody waits: a waiting thread would only have to end it again. The
 * thread that has it may enter at once, so everything else comes first. */
static TN_COLD void visit_end(struct tn_biased_lock *lock)
{
    struct tn_seat *host = lock->host;

    lock->visited = false;
    lock->unbiased = false;
    if (host && atomic_load_explicit(&lock->wanted, memory_order_relaxed) == 0) {
        atomic_store_explicit(&lock->leans, host, memory_order_release);
    }
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

/* The thread's seat, assigned if it has none; NULL when all are taken. */
static struct tn_seat *lock_seat_of(struct tn_biased_lock *lock, uintptr_t thread)
{
    for (int i = 0; i < TN_SEATS; i++) {
        struct tn_seat *seat = &lock->seats[i];
        const uintptr_t sitting = atomic_load_explicit(&seat->thread, memory_order_relaxed);

        if (sitting == thread || sitting == 0) {
            atomic_store_explicit(&seat->thread, thread, memory_order_relaxed);
            return seat;
        }
    }
    return NULL;
}

/* Biases the lock to the thread with a long streak, unless others are waiting. */
static TN_COLD void lock_lean(struct tn_biased_lock *lock)
{
    lock->streak = 0;
    if (atomic_exchange_explicit(&lock->wanted, 0, memory_order_relaxed) == 0) {
        struct tn_seat *seat = lock_seat_of(lock, lock->recent);

        if (seat) {
            lock->seat = seat;
            atomic_store_explicit(&lock->leans, seat, memory_order_release);
        }
    }
}

TN_NOINLINE void tn_biased_lock_release_slow(struct tn_biased_lock *lock)
{
    if (tn_unlikely(lock->visited)) {
        visit_end(lock);
        return;
    }
    if (tn_unlikely(lock->streak >= lock->needed && lock->needed > 0)) {
        lock_lean(lock);
    }
    lock->unbiased = false;
    atomic_store_explicit(&lock->taken, 0, memory_order_release);
}
