/* SPDX-License-Identifier: MIT */
/*
 * The thread that publishes, with sources of the test's own: what it cannot start without, sources
 * that have no place, and the end of the program. What readers see: tests/unit/watch.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/test.h"

#include "alloc/watch/publisher.h"
#include "base/os_shared.h"
#include "support/child.h"
#include "support/child_end.h"
#include "support/failing.h"
#include "support/temp.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

FAILING(int, failing.error, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old),
        (how, set, old))

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);

int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return call_is_failing("pthread_atfork") ? failing.error
                                             : __register_atfork(prepare, parent, child, NULL);
}

static struct temp_folder runtime;
static struct tarn_error error;

static bool look(void *context, struct tn_page_record *record, uint64_t now_ns, bool renews_rows)
{
    (void)context;
    (void)now_ns;
    (void)renews_rows;
    record->retries++;
    return true;
}

static enum tarn_status add(struct tn_publisher_source *source)
{
    *source = (struct tn_publisher_source){.look = look, .slot = -1};
    return tn_publisher_add(source, runtime.path, false, &error);
}

/* The file of this process's page. */
static const char *page_path(void)
{
    static char path[400];

    (void)snprintf(path, sizeof path, "%s/tarn/%lld.page", runtime.path, (long long)getpid());
    return path;
}

static bool page_exists(void)
{
    struct stat about;

    return stat(page_path(), &about) == 0;
}

/* ---- starting ---- */

static void nothing_starts_without_notice_of_forks(void **state)
{
    struct tn_publisher_source source;

    (void)state;
    fail_calls("pthread_atfork", 0, 1, ENOMEM);
    assert_int_equal(add(&source), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_int_equal(source.slot, -1);
    assert_false(page_exists());
    assert_int_equal(add(&source), TARN_OK);
    assert_int_equal(source.slot, 0);
    assert_true(page_exists());
    tn_publisher_remove(&source);
    assert_false(page_exists());
}

/* The thread would take the program's signals. */
static void no_thread_starts_with_signals(void **state)
{
    struct tn_publisher_source source;

    (void)state;
    fail_calls("pthread_sigmask", 0, 1, EINVAL);
    assert_int_equal(add(&source), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_string_equal(error.text, "no thread for what is watched");
    assert_false(page_exists());
    assert_int_equal(add(&source), TARN_OK);
    tn_publisher_remove(&source);
}

/* ---- sources without a place ---- */

static void who_has_no_place_changes_nothing(void **state)
{
    struct tn_publisher_source source;
    struct tn_publisher_source stranger = {.look = look, .slot = -1};
    const struct tn_page_oom oom = {.requested = 512};

    (void)state;
    tn_publisher_set_controlled(); /* there is no page */
    tn_publisher_remove(&stranger);
    tn_publisher_note_oom(&stranger, &oom);
    assert_int_equal(add(&source), TARN_OK);
    tn_publisher_remove(&stranger);
    stranger.slot = source.slot; /* whose place is another's */
    tn_publisher_remove(&stranger);
    tn_publisher_note_oom(&stranger, &oom);
    assert_true(page_exists());
    tn_publisher_remove(&source);
    assert_false(page_exists());
}

/* ---- the end of the program ---- */

static struct tn_publisher_source late;

static void remove_late(void)
{
    if (page_exists()) { /* it goes with the program */
        child_exit(2);
    }
    tn_publisher_remove(&late);
    child_exit(3);
}

/* A source may outlive the thread: what is registered before the library is used is called after
 * it. */
static void child_removes_late(void)
{
    if (atexit(remove_late) != 0 || add(&late) != TARN_OK || !page_exists()) {
        child_exit(1);
    }
    child_end();
}

static atomic_bool blocks;
static atomic_bool is_blocked;

static bool look_for_ever(void *context, struct tn_page_record *record, uint64_t now_ns,
                          bool renews_rows)
{
    (void)look(context, record, now_ns, renews_rows);
    atomic_store(&is_blocked, atomic_load(&blocks));
    while (atomic_load(&blocks)) {
        (void)pause();
    }
    return true;
}

/* A reader. */
static void ask(void)
{
    const int file = open(page_path(), O_RDWR);
    struct tn_page_head *head =
        mmap(NULL, TN_PAGE_HEAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (file < 0 || head == MAP_FAILED) {
        child_exit(4);
    }
    atomic_fetch_add(&head->asked, 1);
    tn_os_shared_wake(&head->asked);
}

/* ---- rows that take long ---- */

static atomic_uint looks;
static atomic_uint renewals;

static bool look_slowly(void *context, struct tn_page_record *record, uint64_t now_ns,
                        bool renews_rows)
{
    (void)look(context, record, now_ns, renews_rows);
    if (renews_rows) {
        (void)usleep(20000);
    }
    atomic_fetch_add(&renewals, renews_rows);
    atomic_fetch_add(&looks, 1);
    return true;
}

/* Of 20 ms a five-hundredth part of the time is meant: the next ones come in ten seconds. */
static void rows_that_take_long_are_renewed_seldom(void **state)
{
    struct tn_publisher_source slow = {.look = look_slowly, .slot = -1};

    (void)state;
    assert_int_equal(tn_publisher_add(&slow, runtime.path, false, &error), TARN_OK);
    while (atomic_load(&looks) < 3) {
        ask();
        (void)usleep(1000);
    }
    tn_publisher_remove(&slow);
    assert_int_equal(atomic_load(&renewals), 1);
}

/* ---- a thread that does not end ---- */

/* The program does not wait for a thread that does not end: a second at most. */
static void child_ends_with_a_thread(void)
{
    late = (struct tn_publisher_source){.look = look_for_ever, .slot = -1};
    if (tn_publisher_add(&late, runtime.path, false, NULL) != TARN_OK) {
        child_exit(1);
    }
    atomic_store(&blocks, true);
    ask();
    while (!atomic_load(&is_blocked)) {
        (void)usleep(1000);
    }
    child_end();
}

static int status_of_child(void (*run)(void))
{
    int status = 0;

    (void)fflush(NULL);
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        run();
        child_exit(9);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void sources_may_outlive_the_thread(void **state)
{
    (void)state;
    assert_int_equal(status_of_child(child_removes_late), 3);
}

static void a_thread_that_hangs_does_not_keep_the_program(void **state)
{
    (void)state;
    assert_int_equal(status_of_child(child_ends_with_a_thread), 0);
}

static int begin(void **state)
{
    (void)state;
    runtime = temp_folder_make();
    return 0;
}

static int end(void **state)
{
    char folder[300];

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/tarn", runtime.path);
    assert_int_equal(rmdir(folder), 0); /* nothing is left in it */
    temp_folder_remove(&runtime);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_may_outlive_the_thread), /* before this process publishes */
        cmocka_unit_test(nothing_starts_without_notice_of_forks),
        cmocka_unit_test(no_thread_starts_with_signals),
        cmocka_unit_test(who_has_no_place_changes_nothing),
        cmocka_unit_test(rows_that_take_long_are_renewed_seldom),
        cmocka_unit_test(a_thread_that_hangs_does_not_keep_the_program),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
