/* SPDX-License-Identifier: MIT */
/*
 * The thread that publishes, with sources of the test's own: what it cannot start without, sources
 * that have no place, and the end of the program. What readers see: tests/unit/watch.
 */
#define _GNU_SOURCE    /* RTLD_NEXT */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/test.h"

#include "alloc/watch/publisher.h"
#include "base/os_shared.h"
#include "support/child.h"
#include "support/child_end.h"
#include "support/failing.h"
#include "support/temp.h"
#include "tarn/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

FAILING(int, failing.error, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old),
        (how, set, old))

FAILING(ssize_t, -1, read, (int file, void *bytes, size_t size), (file, bytes, size))

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);

int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return call_is_failing("pthread_atfork") ? failing.error
                                             : __register_atfork(prepare, parent, child, NULL);
}

/* The monotonic clock may stand still. */
static _Atomic uint64_t clock_ns; /* 0: it runs */

int clock_gettime(clockid_t id, struct timespec *now)
{
    __typeof__(&clock_gettime) real;
    void *const found = dlsym(RTLD_NEXT, "clock_gettime");
    const uint64_t ns = atomic_load(&clock_ns);

    memcpy(&real, &found, sizeof real);
    if (id != CLOCK_MONOTONIC || ns == 0) {
        return real(id, now);
    }
    *now =
        (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    return 0;
}

static uint64_t ns_of(clockid_t id)
{
    struct timespec now = {0};

    assert_int_equal(clock_gettime(id, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
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

/* A reader's view of the page's head. */
static struct tn_page_head *head_open(void)
{
    const int file = open(page_path(), O_RDWR);
    void *head = file < 0
                     ? MAP_FAILED
                     : mmap(NULL, TN_PAGE_HEAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    assert_true(head != MAP_FAILED);
    (void)close(file);
    return head;
}

/* Asks and waits for the answer. */
static void ask_of(struct tn_page_head *head)
{
    const uint32_t wanted = atomic_fetch_add(&head->asked, 1) + 1;

    tn_os_shared_wake(&head->asked);
    while (atomic_load(&head->answered) != wanted) {
        (void)usleep(200);
    }
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
    (void)munmap(head, TN_PAGE_HEAD_SIZE);
    (void)close(file);
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

/* ---- when it looks ---- */

/* A source that counts; renewing its rows takes `cost_ns` on the clock that stands still. */
struct counting {
    struct tn_publisher_source source;
    atomic_uint looks;
    atomic_uint renewals;
    _Atomic uint64_t now_ns; /* the time of day at the last look */
    uint64_t cost_ns;
};

static bool look_counting(void *context, struct tn_page_record *record, uint64_t now_ns,
                          bool renews_rows)
{
    struct counting *counting = context;

    (void)record;
    atomic_fetch_add(&counting->looks, 1);
    atomic_fetch_add(&counting->renewals, renews_rows);
    atomic_store(&counting->now_ns, now_ns);
    if (renews_rows && counting->cost_ns != 0) {
        atomic_fetch_add(&clock_ns, counting->cost_ns);
    }
    return true;
}

static struct tn_page_head *counting_open(struct counting *counting)
{
    *counting = (struct counting){.cost_ns = counting->cost_ns};
    counting->source =
        (struct tn_publisher_source){.context = counting, .look = look_counting, .slot = -1};
    if (tn_publisher_add(&counting->source, runtime.path, true, &error) != TARN_OK) {
        fail_msg("%s", error.text);
    }
    return head_open();
}

static void counting_close(struct counting *counting, struct tn_page_head *head)
{
    (void)munmap(head, TN_PAGE_HEAD_SIZE);
    tn_publisher_remove(&counting->source);
}

static void rows_are_renewed_once_a_second(void **state)
{
    const uint64_t begin = ns_of(CLOCK_MONOTONIC);
    struct counting counting = {.cost_ns = 0};

    (void)state;
    atomic_store(&clock_ns, begin);
    struct tn_page_head *head = counting_open(&counting);

    assert_int_equal(atomic_load(&counting.renewals), 1);
    ask_of(head);
    atomic_store(&clock_ns, begin + 999999999);
    ask_of(head);
    assert_int_equal(atomic_load(&counting.renewals), 1);
    atomic_store(&clock_ns, begin + 1000000000);
    ask_of(head);
    assert_int_equal(atomic_load(&counting.renewals), 2);
    assert_int_equal(atomic_load(&counting.looks), 4);
    atomic_store(&clock_ns, 0);
    counting_close(&counting, head);
}

/* One part in 500 of the time, at most: of 20 ms the next ones come after ten seconds. */
static void rows_take_a_small_share_of_the_time(void **state)
{
    const uint64_t begin = ns_of(CLOCK_MONOTONIC);
    struct counting counting = {.cost_ns = 20000000};

    (void)state;
    atomic_store(&clock_ns, begin);
    struct tn_page_head *head = counting_open(&counting);

    atomic_store(&clock_ns, begin + 9999999999);
    ask_of(head);
    assert_int_equal(atomic_load(&counting.renewals), 1);
    atomic_store(&clock_ns, begin + 10000000000);
    ask_of(head);
    assert_int_equal(atomic_load(&counting.renewals), 2);
    atomic_store(&clock_ns, 0);
    counting_close(&counting, head);
}

/* However often readers ask, it looks a hundred times a second; and once for one that asks once. */
static void it_looks_when_asked_but_not_too_often(void **state)
{
    struct counting counting = {.cost_ns = 0};
    struct tn_page_head *head = counting_open(&counting);

    (void)state;
    for (unsigned asked = 1; asked <= 2; asked++) {
        ask_of(head);
        (void)usleep(25000);                                       /* it sleeps again */
        assert_int_equal(atomic_load(&counting.looks), 1 + asked); /* and when it was added */
    }
    const uint64_t begin = ns_of(CLOCK_MONOTONIC);
    const unsigned before = atomic_load(&counting.looks);

    while (ns_of(CLOCK_MONOTONIC) - begin < 60000000) {
        atomic_fetch_add(&head->asked, 1);
        tn_os_shared_wake(&head->asked);
        (void)usleep(500);
    }
    const unsigned made = atomic_load(&counting.looks) - before;

    assert_in_range(made, 1, (ns_of(CLOCK_MONOTONIC) - begin) / 10000000 + 2);
    counting_close(&counting, head);
}

/* ---- what the page says about the process ---- */

static void a_page_says_whose_it_is(void **state)
{
    const uint64_t before = ns_of(CLOCK_REALTIME);
    struct counting counting = {.cost_ns = 0};
    struct tn_page_head *head = counting_open(&counting);
    const uint64_t after = ns_of(CLOCK_REALTIME);
    char name[20] = "";
    FILE *file = fopen("/proc/self/comm", "r");

    (void)state;
    assert_non_null(file);
    assert_non_null(fgets(name, sizeof name, file));
    (void)fclose(file);
    name[strcspn(name, "\n")] = '\0';
    assert_memory_equal(head->magic, TN_PAGE_MAGIC, sizeof head->magic);
    assert_int_equal(head->process, getpid());
    assert_true(head->process_start > 0);
    assert_in_range(head->created_ns, before, after);
    assert_in_range(atomic_load(&counting.now_ns), before, after);
    assert_true(name[0] != '\0' && strncmp(head->program, name, strlen(name)) == 0);
    assert_string_equal(head->tarn_version, tarn_version());
    assert_int_equal(atomic_load(&head->controlled), TN_CONTROL_WANTED);
    counting_close(&counting, head);
}

/* Where the system does not tell when the process started, the page says so. */
static void a_start_may_be_unknown(void **state)
{
    struct counting counting = {.cost_ns = 0};

    (void)state;
    fail_calls("read", 0, 1, EIO);
    struct tn_page_head *head = counting_open(&counting);

    assert_true(fail_none());
    assert_int_equal(head->process_start, 0);
    assert_int_equal(head->process, getpid());
    counting_close(&counting, head);
}

static bool file_contains(const char *path, const char *text)
{
    char line[600];
    bool found = false;
    FILE *file = fopen(path, "r");

    while (file && !found && fgets(line, sizeof line, file)) {
        found = strstr(line, text) != NULL;
    }
    if (file) {
        (void)fclose(file);
    }
    return found;
}

static void nothing_stays_mapped(void **state)
{
    struct counting counting = {.cost_ns = 0};

    (void)state;
    counting_close(&counting, counting_open(&counting));
    assert_false(file_contains("/proc/self/maps", ".page"));
}

/* A page's name has room up to the length of a path; a longer one is refused, and not cut. */
static void folders_may_be_long(void **state)
{
    static const unsigned lengths[] = {171, 185}; /* with "/tarn": 176, 190 */
    struct tn_publisher_source source;
    char folder[300];
    char inner[360];
    struct stat about;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(folder, sizeof folder, "%s/%0*d", runtime.path,
                       (int)(lengths[i] - strlen(runtime.path) - 1), 0);
        assert_int_equal(strlen(folder), lengths[i]);
        assert_int_equal(mkdir(folder, 0700), 0);
        source = (struct tn_publisher_source){.look = look, .slot = -1};
        (void)snprintf(inner, sizeof inner, "%s/tarn/%lld.page", folder, (long long)getpid());
        if (i == 0) {
            assert_int_equal(tn_publisher_add(&source, folder, false, &error), TARN_OK);
            assert_int_equal(stat(inner, &about), 0);
            tn_publisher_remove(&source);
        } else {
            assert_int_equal(tn_publisher_add(&source, folder, false, &error), TARN_ERR_IO);
        }
        (void)snprintf(inner, sizeof inner, "%s/tarn", folder);
        (void)rmdir(inner); /* nothing is left in it */
        assert_int_equal(rmdir(folder), 0);
    }
}

/* ---- its thread ---- */

/* Signals blocked in the thread of that name; 0: there is none. */
static uint64_t blocked_in(const char *name)
{
    uint64_t mask = 0;
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;

    assert_non_null(tasks);
    while ((entry = readdir(tasks))) {
        char path[300];
        char line[200];

        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        if (entry->d_name[0] == '.' || !file_contains(path, name)) {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");

        while (file && fgets(line, sizeof line, file)) {
            if (strncmp(line, "SigBlk:", 7) == 0) {
                mask = strtoull(line + 7, NULL, 16);
            }
        }
        if (file) {
            (void)fclose(file);
        }
    }
    (void)closedir(tasks);
    return mask;
}

/* Signals are for the program's own threads, of which none has more blocked than before. */
static void its_thread_has_a_name_and_takes_no_signals(void **state)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};
    struct counting counting = {.cost_ns = 0};
    struct tn_page_head *head = counting_open(&counting);
    sigset_t mine;

    (void)state;
    ask_of(head); /* it runs */
    const uint64_t mask = blocked_in("tarn-watch");

    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mine), 0);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        assert_true(mask >> (signals[i] - 1) & 1);
        assert_false(sigismember(&mine, signals[i]));
    }
    counting_close(&counting, head);
}

static atomic_bool is_looking;
static atomic_bool takes_long;
static atomic_uint done;
static atomic_uint overlaps;

static bool look_long(void *context, struct tn_page_record *record, uint64_t now_ns,
                      bool renews_rows)
{
    const bool is_long = atomic_exchange(&takes_long, false); /* the next one is not */

    (void)look(context, record, now_ns, renews_rows);
    atomic_fetch_add(&overlaps, atomic_exchange(&is_looking, true));
    if (is_long) {
        (void)usleep(30000);
        atomic_fetch_add(&done, 1);
    }
    atomic_store(&is_looking, false);
    return true;
}

/* It is in the middle of the look that takes long, or behind it, after `before` of them. */
static void await_long_look(unsigned before)
{
    while (!atomic_load(&is_looking) && atomic_load(&done) == before) {
        (void)usleep(100);
    }
}

static void begin_long_look(void)
{
    const unsigned before = atomic_load(&done);

    atomic_store(&takes_long, true);
    ask();
    await_long_look(before);
}

/* What is added, and what is noted, waits for a look in progress. */
static void it_looks_at_one_at_a_time(void **state)
{
    struct tn_publisher_source first = {.look = look_long, .slot = -1};
    struct tn_publisher_source second = {.look = look_long, .slot = -1};
    const struct tn_page_oom oom = {.requested = 512};

    (void)state;
    assert_int_equal(tn_publisher_add(&first, runtime.path, false, &error), TARN_OK);
    begin_long_look();
    assert_int_equal(tn_publisher_add(&second, runtime.path, false, &error), TARN_OK);
    assert_int_equal(atomic_load(&overlaps), 0);
    assert_int_equal(atomic_load(&done), 1);
    tn_publisher_remove(&second);
    begin_long_look();
    tn_publisher_note_oom(&first, &oom);
    assert_int_equal(atomic_load(&done), 2);
    tn_publisher_remove(&first);
    assert_int_equal(atomic_load(&overlaps), 0);
}

static void *add_second(void *context)
{
    return tn_publisher_add(context, runtime.path, false, NULL) == TARN_OK ? NULL : context;
}

/* Sources come one after the other, and so does what is said in the page. */
static void changes_wait_for_each_other(void **state)
{
    struct tn_publisher_source first;
    struct tn_publisher_source second = {.look = look_long, .slot = -1};
    const unsigned before = atomic_load(&done);
    pthread_t thread;
    void *failed = NULL;

    (void)state;
    assert_int_equal(add(&first), TARN_OK);
    atomic_store(&takes_long, true);
    assert_int_equal(pthread_create(&thread, NULL, add_second, &second), 0);
    await_long_look(before); /* when it is added */
    tn_publisher_set_controlled();
    assert_int_equal(atomic_load(&done), before + 1);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    tn_publisher_remove(&first);
    tn_publisher_remove(&second);
}

static void check_that_it_is_done(void)
{
    child_exit(atomic_load(&done) == 1 ? 0 : 5);
}

/* What the thread does when the program ends is done before other functions at exit. */
static void child_ends_during_a_look(void)
{
    late = (struct tn_publisher_source){.look = look_long, .slot = -1};
    if (atexit(check_that_it_is_done) != 0 ||
        tn_publisher_add(&late, runtime.path, false, NULL) != TARN_OK) {
        child_exit(1);
    }
    begin_long_look();
    child_end();
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

static void a_program_ends_after_a_look(void **state)
{
    (void)state;
    assert_int_equal(status_of_child(child_ends_during_a_look), 0);
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
        cmocka_unit_test(a_program_ends_after_a_look),    /* so do these */
        cmocka_unit_test(nothing_starts_without_notice_of_forks),
        cmocka_unit_test(no_thread_starts_with_signals),
        cmocka_unit_test(who_has_no_place_changes_nothing),
        cmocka_unit_test(rows_that_take_long_are_renewed_seldom),
        cmocka_unit_test(rows_are_renewed_once_a_second),
        cmocka_unit_test(rows_take_a_small_share_of_the_time),
        cmocka_unit_test(it_looks_when_asked_but_not_too_often),
        cmocka_unit_test(a_page_says_whose_it_is),
        cmocka_unit_test(a_start_may_be_unknown),
        cmocka_unit_test(nothing_stays_mapped),
        cmocka_unit_test(folders_may_be_long),
        cmocka_unit_test(its_thread_has_a_name_and_takes_no_signals),
        cmocka_unit_test(it_looks_at_one_at_a_time),
        cmocka_unit_test(changes_wait_for_each_other),
        cmocka_unit_test(a_thread_that_hangs_does_not_keep_the_program),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
