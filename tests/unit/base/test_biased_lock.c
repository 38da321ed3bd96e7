/* SPDX-License-Identifier: MIT */
/* Mutual exclusion while the lock leans to a thread, is taken from it and leans again. */
#define _GNU_SOURCE /* RTLD_NEXT, syscall */
#include "support/child.h"
#include "support/failing.h"
#include "support/test.h"

#include "base/biased_lock.h"
#include "base/os_barrier.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    THREADS = 4,
    ROUNDS = 20000,
    MANY = 1000, /* more than it takes to lean the first time */
    NEEDED_MAX = 1 << 20
};

FAILING_SYSCALL(SYS_membarrier, "membarrier")

static uintptr_t self(void)
{
    return (uintptr_t)&tn_thread_mark;
}

/* The thread that the lock leans to, 0 = none. */
static uintptr_t owner(struct tn_biased_lock *lock)
{
    struct tn_seat *seat = atomic_load(&lock->leans);

    return seat ? atomic_load(&seat->thread) : 0;
}

static void take_often(struct tn_biased_lock *lock, int times)
{
    for (int i = 0; i < times; i++) {
        tn_biased_lock_acquire(lock);
        tn_biased_lock_release(lock);
    }
}

static void it_leans_to_who_takes_it_often(void **state)
{
    struct tn_biased_lock lock;

    (void)state;
    tn_biased_lock_init(&lock, TN_LOCK_ALLOCATOR);
    tn_biased_lock_set_bias(&lock, true); /* as it is */
    take_often(&lock, 1);
    assert_true(owner(&lock) == 0);
    take_often(&lock, MANY);
    assert_true(owner(&lock) == (tn_os_barrier_available() ? self() : 0));
    tn_biased_lock_acquire(&lock);
    assert_true(tn_lock_is_held(&lock));
    assert_int_equal(atomic_load(&lock.seats[0].inside), tn_os_barrier_available());
    tn_biased_lock_release(&lock);
    assert_int_equal(atomic_load(&lock.seats[0].inside), 0);
    tn_biased_lock_fini(&lock);
}

static void without_bias_it_leans_to_nobody(void **state)
{
    struct tn_biased_lock lock;

    (void)state;
    tn_biased_lock_init(&lock, TN_LOCK_ALLOCATOR);
    tn_biased_lock_set_bias(&lock, false);
    take_often(&lock, MANY);
    assert_true(owner(&lock) == 0);
    tn_biased_lock_acquire(&lock);
    assert_true(tn_lock_is_held(&lock));
    tn_biased_lock_release(&lock);
    tn_biased_lock_fini(&lock);
}

static void *take_once(void *argument)
{
    tn_biased_lock_acquire(argument);
    tn_biased_lock_release(argument);
    return NULL;
}

static void in_another_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void another_thread_takes_the_bias_away(void **state)
{
    struct tn_biased_lock lock;

    (void)state;
    if (!tn_os_barrier_available()) {
        skip();
    }
    tn_biased_lock_init(&lock, TN_LOCK_ALLOCATOR);
    take_often(&lock, MANY);
    const uint32_t needed = lock.needed;

    in_another_thread(take_once, &lock);
    assert_true(owner(&lock) == 0);
    assert_int_equal(lock.needed, 2 * needed);
    take_often(&lock, MANY);
    assert_true(owner(&lock) == self());
    lock.needed = NEEDED_MAX - 1;
    in_another_thread(take_once, &lock);
    assert_int_equal(lock.needed, NEEDED_MAX); /* it grows no further */
    tn_biased_lock_fini(&lock);
}

/* Where the first command is forbidden, the slower one does. */
static void a_barrier_has_a_second_way(void **state)
{
    (void)state;
    if (!tn_os_barrier_available()) {
        skip();
    }
    fail_calls("membarrier", 0, 1, EPERM);
    tn_os_barrier();
    assert_true(fail_none());
}

static void lean_without_barrier(void *context)
{
    struct tn_biased_lock lock;

    (void)context;
    fail_calls("membarrier", 0, 1, ENOSYS);
    tn_biased_lock_init(&lock, TN_LOCK_ALLOCATOR);
    CHILD_REQUIRE(fail_none());
    take_often(&lock, MANY);
    CHILD_REQUIRE(owner(&lock) == 0);
    CHILD_REQUIRE(!tn_os_barrier_available()); /* asked once */
    tn_biased_lock_fini(&lock);
}

/* The answer is kept, so a process asks that has none yet. */
static void without_a_barrier_it_leans_to_nobody(void **state)
{
    (void)state;
    child_run(lean_without_barrier, NULL);
}

static void *take_it_often(void *argument)
{
    take_often(argument, 4 * MANY);
    return NULL;
}

struct crowd {
    struct tn_biased_lock lock;
    atomic_int turn; /* the thread that may work; they all live until the last is done */
};

struct member {
    struct crowd *crowd;
    int number;
    bool leaned;
};

static void *work_in_turn(void *argument)
{
    struct member *member = argument;
    struct crowd *crowd = member->crowd;

    while (atomic_load(&crowd->turn) != member->number) {
        (void)sched_yield();
    }
    (void)take_it_often(&crowd->lock);
    member->leaned = owner(&crowd->lock) == self();
    atomic_fetch_add(&crowd->turn, 1);
    while (atomic_load(&crowd->turn) <= TN_SEATS) {
        (void)sched_yield();
    }
    return NULL;
}

/* A seat is never given to another thread: who sat there may still write to it. */
static void it_leans_to_as_many_threads_as_it_has_seats(void **state)
{
    struct crowd crowd = {.turn = 0};
    struct member members[TN_SEATS + 1];
    pthread_t threads[TN_SEATS + 1];

    (void)state;
    if (!tn_os_barrier_available()) {
        skip();
    }
    tn_biased_lock_init(&crowd.lock, TN_LOCK_ALLOCATOR);
    for (int i = 0; i <= TN_SEATS; i++) {
        members[i] = (struct member){.crowd = &crowd, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work_in_turn, &members[i]), 0);
    }
    for (int i = 0; i <= TN_SEATS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(members[i].leaned, i < TN_SEATS);
    }
    tn_biased_lock_fini(&crowd.lock);
}

struct waiter {
    struct tn_biased_lock lock;
    atomic_bool entered;
};

static void *enter(void *argument)
{
    struct waiter *waiter = argument;

    tn_biased_lock_acquire(&waiter->lock);
    atomic_store(&waiter->entered, true);
    tn_biased_lock_release(&waiter->lock);
    return NULL;
}

/* The owner is inside when another thread comes: that one waits until the owner has left. */
static void the_owner_is_waited_for(void **state)
{
    struct waiter waiter = {.entered = false};
    pthread_t thread;

    (void)state;
    tn_biased_lock_init(&waiter.lock, TN_LOCK_ALLOCATOR);
    take_often(&waiter.lock, MANY);
    tn_biased_lock_acquire(&waiter.lock);
    assert_int_equal(pthread_create(&thread, NULL, enter, &waiter), 0);
    while (tn_os_barrier_available() && owner(&waiter.lock) != 0) {
        (void)sched_yield();
    }
    assert_false(atomic_load(&waiter.entered));
    tn_biased_lock_release(&waiter.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&waiter.entered));
    tn_biased_lock_fini(&waiter.lock);
}

static void *visit_once(void *argument)
{
    struct tn_biased_lock *lock = argument;

    assert_true(tn_biased_lock_visit(lock));
    assert_true(tn_lock_is_held(lock));
    tn_biased_lock_release(lock);
    return NULL;
}

/* A visit changes nothing for the thread that has the bias; a hundred neither. */
static void a_visitor_gives_the_bias_back(void **state)
{
    struct tn_biased_lock lock;

    (void)state;
    if (!tn_os_barrier_available()) {
        skip();
    }
    tn_biased_lock_init(&lock, TN_LOCK_ALLOCATOR);
    take_often(&lock, MANY);
    const uint32_t needed = lock.needed;

    for (int i = 0; i < 100; i++) {
        in_another_thread(visit_once, &lock);
        assert_true(owner(&lock) == self());
    }
    assert_int_equal(lock.needed, needed);
    assert_int_equal(lock.waits, 0);
    tn_biased_lock_acquire(&lock);
    tn_biased_lock_release(&lock);
    assert_true(owner(&lock) == self());
    tn_biased_lock_fini(&lock);
}

static void *visit_in_vain(void *argument)
{
    assert_false(tn_biased_lock_visit(argument));
    return NULL;
}

/* With bias and without: whoever holds it keeps it, and the visitor does not wait for long. */
static void a_visitor_does_not_wait(void **state)
{
    struct tn_biased_lock lock;

    (void)state;
    tn_biased_lock_init(&lock, TN_LOCK_ALLOCATOR);
    tn_biased_lock_acquire(&lock);
    in_another_thread(visit_in_vain, &lock);
    tn_biased_lock_release(&lock);
    take_often(&lock, MANY);
    const uintptr_t before = owner(&lock);

    tn_biased_lock_acquire(&lock);
    in_another_thread(visit_in_vain, &lock);
    assert_true(owner(&lock) == before);
    tn_biased_lock_release(&lock);
    in_another_thread(visit_once, &lock);
    tn_biased_lock_fini(&lock);
}

struct shared {
    struct tn_biased_lock lock;
    uint64_t sum;
    int bursts; /* how a thread's turns are spread: many at once let the lock lean */
};

static void *add_many(void *argument)
{
    struct shared *shared = argument;

    for (int i = 0; i < ROUNDS; i++) {
        tn_biased_lock_acquire(&shared->lock);
        shared->sum++;
        tn_biased_lock_release(&shared->lock);
        if (shared->bursts > 0 && i % shared->bursts == 0) {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void threads_exclude_each_other(void **state)
{
    static const int bursts[] = {0, 1, 300};

    (void)state;
    for (size_t b = 0; b < sizeof bursts / sizeof bursts[0]; b++) {
        struct shared shared = {.bursts = bursts[b]};
        pthread_t threads[THREADS];

        tn_biased_lock_init(&shared.lock, TN_LOCK_DEVICE);
        take_often(&shared.lock, MANY);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, add_many, &shared), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_int_equal(shared.sum, THREADS * ROUNDS);
        tn_biased_lock_fini(&shared.lock);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_barrier_it_leans_to_nobody), /* before any is asked for */
        cmocka_unit_test(it_leans_to_who_takes_it_often),
        cmocka_unit_test(without_bias_it_leans_to_nobody),
        cmocka_unit_test(another_thread_takes_the_bias_away),
        cmocka_unit_test(a_barrier_has_a_second_way),
        cmocka_unit_test(it_leans_to_as_many_threads_as_it_has_seats),
        cmocka_unit_test(the_owner_is_waited_for),
        cmocka_unit_test(a_visitor_gives_the_bias_back),
        cmocka_unit_test(a_visitor_does_not_wait),
        cmocka_unit_test(threads_exclude_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
