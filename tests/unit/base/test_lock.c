/* SPDX-License-Identifier: MIT */
/* A reversal stops the process, so those tests run in a child and look at how it ended. */
#include "support/exit.h"
#include "support/test.h"

#include <pthread.h>

#include "base/assertion.h"
#include "base/lock.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 4,
    ROUNDS = 20000
};

static void expect_abort(void (*body)(void), const char *text)
{
    int ends[2];
    char output[512] = "";

    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        (void)signal(SIGABRT, child_count);
        (void)dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    (void)close(ends[1]);
    const ssize_t got = read(ends[0], output, sizeof output - 1);
    (void)close(ends[0]);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
    assert_true(got > 0 && strstr(output, text) != NULL);
}

static void take_in_wrong_order(void)
{
    struct tn_lock outer;
    struct tn_lock inner;

    tn_lock_init(&outer, TN_LOCK_ALLOCATOR);
    tn_lock_init(&inner, TN_LOCK_DEVICE);
    tn_lock_acquire(&inner);
    tn_lock_acquire(&outer);
}

static void release_one_not_held(void)
{
    struct tn_lock lock;

    tn_lock_init(&lock, TN_LOCK_DEVICE);
    tn_lock_release(&lock);
}

static void reversal_stops_the_program(void **state)
{
    (void)state;
    if (!TN_CHECKS_FAST) {
        skip();
    }
    expect_abort(take_in_wrong_order,
                 "lock order: taking rank 2 (allocator) while holding rank 7 (device)");
}

static void release_of_a_free_lock_stops_the_program(void **state)
{
    (void)state;
    if (!TN_CHECKS_FAST) {
        skip();
    }
    expect_abort(release_one_not_held, "does not hold");
}

static void held_follows_acquire_and_release(void **state)
{
    struct tn_lock outer;
    struct tn_lock inner;

    (void)state;
    tn_lock_init(&outer, TN_LOCK_ALLOCATOR);
    tn_lock_init(&inner, TN_LOCK_DEVICE);
    assert_int_equal(tn_lock_is_held(&outer), !TN_CHECKS_FAST);
    tn_lock_acquire(&outer);
    tn_lock_acquire(&inner);
    assert_true(tn_lock_is_held(&outer));
    tn_lock_release(&outer); /* not the last taken */
    assert_true(tn_lock_is_held(&inner));
    assert_int_equal(tn_lock_is_held(&outer), !TN_CHECKS_FAST);
    tn_lock_release(&inner);
    tn_lock_fini(&inner);
    tn_lock_fini(&outer);
}

static void every_rank_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < TN_LOCK_RANK_COUNT; i++) {
        assert_string_not_equal(tn_lock_rank_name((enum tn_lock_rank)i), "unknown");
    }
    assert_string_equal(tn_lock_rank_name(TN_LOCK_RANK_COUNT), "unknown");
}

struct shared {
    struct tn_lock lock;
    uint64_t sum;
};

static void *add_many(void *argument)
{
    struct shared *shared = argument;

    for (int i = 0; i < ROUNDS; i++) {
        tn_lock_acquire(&shared->lock);
        shared->sum++;
        tn_lock_release(&shared->lock);
    }
    return NULL;
}

static void threads_exclude_each_other(void **state)
{
    struct shared shared = {.sum = 0};
    pthread_t threads[THREADS];

    (void)state;
    tn_lock_init(&shared.lock, TN_LOCK_DEVICE);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &shared), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(shared.sum, THREADS * ROUNDS);
    tn_lock_fini(&shared.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reversal_stops_the_program),
        cmocka_unit_test(release_of_a_free_lock_stops_the_program),
        cmocka_unit_test(held_follows_acquire_and_release),
        cmocka_unit_test(every_rank_has_a_name),
        cmocka_unit_test(threads_exclude_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
