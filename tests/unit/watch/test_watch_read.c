/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/child.h"
#include "support/child_end.h"
#include "support/sim.h"

#include "alloc/watch/watch_page.h"
#include "base/os_process.h"
#include "tarn/allocator.h"
#include "tarn/watch.h"
#include "tarn/watch_read.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static char runtime_folder[64];
static char folder[80];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(runtime_folder, sizeof runtime_folder, "/tmp/tarn-watch-XXXXXX");
    if (!mkdtemp(runtime_folder)) {
        return 1;
    }
    (void)snprintf(folder, sizeof folder, "%s/tarn", runtime_folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)rmdir(folder);
    return rmdir(runtime_folder);
}

static const char *page_path(int64_t process)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%lld.page", folder, (long long)process);
    return path;
}

struct rig {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
};

static struct rig rig_open(const char *settings)
{
    struct rig rig = {.device = sim_open(4 * GIB)};
    struct tarn_config config;

    assert_int_equal(tarn_config_parse(settings, &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(rig.device, &config, &rig.allocator, NULL), TARN_OK);
    return rig;
}

static void rig_close(struct rig *rig)
{
    tarn_allocator_destroy(rig->allocator);
    sim_close(rig->device);
}

static void watch_start(struct tarn_allocator *allocator)
{
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = runtime_folder};
    struct tarn_error error = {.text = ""};

    if (tarn_watch_start(allocator, &options, &error)) {
        fail_msg("%s", error.text);
    }
    assert_true(tarn_watch_is_on(allocator));
}

static struct tarn_watch *watch_open(void)
{
    struct tarn_watch *watch = NULL;
    struct tarn_error error = {.text = ""};

    if (tarn_watch_open(runtime_folder, getpid(), &watch, &error)) {
        fail_msg("%s", error.text);
    }
    return watch;
}

static struct tarn_watch_record record_ask(struct tarn_watch *watch, uint32_t index)
{
    struct tarn_watch_record record = {.struct_size = sizeof record};
    struct tarn_error error = {.text = ""};

    assert_true(tarn_watch_ask(watch, 10000));
    if (tarn_watch_read(watch, index, &record, &error)) {
        fail_msg("%s", error.text);
    }
    return record;
}

static tarn_ptr alloc_ok(struct tarn_allocator *allocator, uint64_t size, tarn_stream stream)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_allocator_alloc(allocator, size, stream, &ptr, NULL), TARN_OK);
    return ptr;
}

/* ---- what is published ---- */

static void what_watching_needs(void **state)
{
    const struct tarn_watch_options other = {.struct_size = sizeof other + 8,
                                             .runtime_folder = runtime_folder};
    struct tarn_error error;
    struct rig rig = rig_open("");

    (void)state;
    assert_int_equal(tarn_watch_start(NULL, NULL, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_watch_start(rig.allocator, &other, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "options of this version"));
    assert_false(tarn_watch_is_on(rig.allocator));
    tarn_watch_stop(rig.allocator); /* nothing to stop */
    tarn_watch_stop(NULL);
    rig_close(&rig);
}

/* From the beginning, before a request fails; and whether it wants to be controlled. */
static void what_is_known_at_the_start(void **state)
{
    (void)state;
    for (int controlled = 0; controlled < 2; controlled++) {
        const struct tarn_watch_options options = {
            .struct_size = sizeof options, .runtime_folder = runtime_folder, .control = controlled};
        struct tarn_watch_process process = {.struct_size = sizeof process};
        struct rig rig = rig_open("");

        tarn_sim_set_foreign_memory(rig.device, GIB);
        assert_int_equal(tarn_watch_start(rig.allocator, &options, NULL), TARN_OK);
        struct tarn_watch *watch = watch_open();
        const struct tarn_watch_record record = record_ask(watch, 0);

        assert_int_equal(record.device_total, 4 * GIB);
        assert_int_equal(record.device_free, 3 * GIB);
        assert_true(record.device_time_ns > 0 && record.device_time_ns <= record.time_ns);
        tarn_watch_get_process(watch, &process);
        assert_int_equal(process.controlled || process.wants_control, controlled);
        tarn_watch_close(watch);
        rig_close(&rig);
    }
}

static void counters_are_those_of_the_allocator(void **state)
{
    struct rig rig = rig_open("");
    struct tarn_stats stats = {.struct_size = sizeof stats};

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();
    const tarn_ptr kept = alloc_ok(rig.allocator, 30 * MIB, 1);
    const tarn_ptr freed = alloc_ok(rig.allocator, 3 * KIB, 2);

    for (int i = 0; i < 100; i++) { /* what the undo log has postponed counts as well */
        assert_int_equal(
            tarn_allocator_free(rig.allocator, alloc_ok(rig.allocator, MIB * 2, 1), NULL), TARN_OK);
    }
    assert_int_equal(tarn_allocator_free(rig.allocator, freed, NULL), TARN_OK);
    const struct tarn_watch_record record = record_ask(watch, 0);

    tarn_allocator_get_stats(rig.allocator, &stats);
    assert_memory_equal(record.stats.by_pool, stats.by_pool, sizeof stats.by_pool);
    assert_int_equal(record.stats.num_device_alloc, stats.num_device_alloc);
    assert_int_equal(record.device_total, 4 * GIB);
    assert_string_equal(record.backend, "native");
    assert_string_equal(record.policy, "exact");
    assert_true(record.limit == TARN_SIZE_UNLIMITED);
    assert_int_equal(record.oom.time_ns, 0);
    assert_false(record.closed);
    assert_int_equal(tarn_allocator_free(rig.allocator, kept, NULL), TARN_OK);
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* Sums of the walk, with every stream and pool in a row of its own. */
static void rows_are_by_stream_and_pool(void **state)
{
    struct rig rig = rig_open("");
    uint64_t reserved = 0;
    uint64_t allocated = 0;

    (void)state;
    const tarn_ptr large = alloc_ok(rig.allocator, 30 * MIB, 0);
    const tarn_ptr small = alloc_ok(rig.allocator, 3 * KIB, 7);

    watch_start(rig.allocator); /* rows are counted at once */
    struct tarn_watch *watch = watch_open();
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_int_equal(record.row_count, 2);
    for (uint32_t i = 0; i < record.row_count; i++) {
        const struct tarn_watch_row *row = &record.rows[i];

        reserved += row->reserved;
        allocated += row->allocated;
        assert_int_equal(row->segments, 1);
        assert_int_equal(row->stream, row->is_large ? 0 : 7);
        assert_int_equal(row->requested, row->is_large ? 30 * MIB : 3 * KIB);
        assert_int_equal(row->largest_free, row->is_large ? 0 : 2 * MIB - 3 * KIB);
    }
    assert_int_equal(reserved,
                     record.stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current);
    assert_int_equal(allocated,
                     record.stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current);
    assert_true(record.rows_time_ns != 0);
    assert_int_equal(tarn_allocator_free(rig.allocator, large, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_free(rig.allocator, small, NULL), TARN_OK);
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* Segments of one stream with those of another between them: one row, and sums of all. */
static void segments_of_a_row_add_up(void **state)
{
    struct rig rig = rig_open("");
    const struct {
        uint64_t size;
        tarn_stream stream;
    } wanted[] = {{30 * MIB, 0}, {40 * MIB, 7}, {50 * MIB, 0}, {25 * MIB, 0}, {60 * MIB, 7}};
    tarn_ptr ptr[5];

    (void)state;
    for (int i = 0; i < 5; i++) {
        ptr[i] = alloc_ok(rig.allocator, wanted[i].size, wanted[i].stream);
    }
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr[2], NULL), TARN_OK);
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr[3], NULL), TARN_OK);
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_int_equal(record.row_count, 2);
    for (uint32_t i = 0; i < record.row_count; i++) {
        const struct tarn_watch_row *row = &record.rows[i];
        const bool first = row->stream == 0;

        assert_true(row->is_large);
        assert_int_equal(row->segments, first ? 3 : 2);
        assert_int_equal(row->reserved, (first ? 30 + 50 + 26 : 40 + 60) * MIB);
        assert_int_equal(row->allocated, (first ? 30 : 40 + 60) * MIB);
        assert_int_equal(row->active, (first ? 30 : 40 + 60) * MIB);
        assert_int_equal(row->requested, (first ? 30 : 40 + 60) * MIB);
        assert_int_equal(row->largest_free, first ? 50 * MIB : 0);
    }
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr[0], NULL), TARN_OK);
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr[1], NULL), TARN_OK);
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr[4], NULL), TARN_OK);
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* More streams than there are rows: the rest is counted, not lost. */
static void rows_that_do_not_fit_are_counted(void **state)
{
    enum {
        STREAMS = TARN_WATCH_ROWS_MAX + 5
    };
    struct rig rig = rig_open("");
    tarn_ptr ptr[STREAMS];

    (void)state;
    for (int i = 0; i < STREAMS; i++) {
        ptr[i] = alloc_ok(rig.allocator, KIB, (tarn_stream)i + 1);
    }
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_int_equal(record.row_count, TARN_WATCH_ROWS_MAX);
    assert_int_equal(record.rows_left_out, 5);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(tarn_allocator_free(rig.allocator, ptr[i], NULL), TARN_OK);
    }
    tarn_watch_close(watch);
    rig_close(&rig);
}

static void the_last_failed_request_is_there(void **state)
{
    struct rig rig = rig_open("");
    tarn_ptr ptr;

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();

    assert_int_equal(tarn_allocator_alloc(rig.allocator, 5 * GIB, 9, &ptr, NULL),
                     TARN_ERR_OUT_OF_MEMORY);
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_int_equal(record.stats.num_ooms, 1);
    assert_int_equal(record.oom.requested, 5 * GIB);
    assert_int_equal(record.oom.stream, 9);
    assert_int_equal(record.oom.device_free, 4 * GIB);
    assert_true(record.oom.time_ns > 0 && !record.oom.rejected);
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* From a device that did not say so when watching began. */
static void the_size_of_the_device_is_known_after_a_failure(void **state)
{
    struct rig rig = rig_open("");
    tarn_ptr ptr;

    (void)state;
    tarn_sim_fail_nth(rig.device, TARN_SIM_MEMORY_INFO, 1, TARN_ERR_DEVICE);
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();

    assert_int_equal(record_ask(watch, 0).device_total, 0);
    assert_int_equal(tarn_allocator_alloc(rig.allocator, 5 * GIB, 9, &ptr, NULL),
                     TARN_ERR_OUT_OF_MEMORY);
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_int_equal(record.device_total, 4 * GIB);
    assert_int_equal(record.device_free, 4 * GIB);
    assert_int_equal(record.device_time_ns, record.oom.time_ns);
    tarn_watch_close(watch);
    rig_close(&rig);
}

static void pages_of_the_compact_policy_are_there(void **state)
{
    struct rig rig = rig_open("policy:compact");

    (void)state;
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB, 0);

    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_string_equal(record.policy, "compact");
    assert_int_equal(record.pages.page_size, 2 * MIB);
    assert_int_equal(record.pages.created, 15);
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr, NULL), TARN_OK);
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* An older program has a smaller record, and reading may find no memory. */
static void a_record_may_be_smaller(void **state)
{
    struct tarn_watch_record record = {.struct_size = offsetof(struct tarn_watch_record, device)};
    struct rig rig = rig_open("");
    struct tarn_watch *watch = NULL;

    (void)state;
    watch_start(rig.allocator);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_watch_open(runtime_folder, getpid(), &watch, NULL), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_null(watch);
    watch = watch_open();
    assert_true(tarn_watch_ask(watch, 10000));
    record.device = 4711;
    assert_int_equal(tarn_watch_read(watch, 0, &record, NULL), TARN_OK);
    assert_int_equal(record.struct_size, offsetof(struct tarn_watch_record, device));
    assert_true(record.time_ns > 0);
    assert_int_equal(record.device, 4711); /* as it was */
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* An engine that is not observed in passing has counters all the same. */
static void other_engines_are_watched(void **state)
{
    struct rig rig = rig_open("backend:cudaMallocAsync");

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB, 0);
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_string_equal(record.backend, "cudaMallocAsync");
    assert_int_equal(record.stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current,
                     30 * MIB);
    assert_int_equal(record.rows_time_ns, 0);
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr, NULL), TARN_OK);
    tarn_watch_close(watch);
    rig_close(&rig);
}

static void an_allocator_that_goes_leaves_its_last_numbers(void **state)
{
    struct rig first = rig_open("");
    struct rig second = rig_open("");
    struct tarn_watch_record record = {.struct_size = sizeof record};

    (void)state;
    watch_start(first.allocator);
    watch_start(second.allocator);
    watch_start(second.allocator); /* again changes nothing */
    struct tarn_watch *watch = watch_open();

    assert_int_equal(tarn_watch_read(watch, 2, &record, NULL), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_watch_read(watch, TARN_WATCH_ALLOCATORS, &record, NULL),
                     TARN_ERR_NOT_FOUND);
    rig_close(&first);
    record = record_ask(watch, 0);
    assert_true(record.closed);
    assert_int_equal(record.stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current, 0);
    record = record_ask(watch, 1);
    assert_false(record.closed);
    tarn_watch_stop(second.allocator);
    assert_false(tarn_watch_is_on(second.allocator));
    assert_int_equal(access(page_path(getpid()), F_OK), -1);
    tarn_watch_close(watch);
    rig_close(&second);
}

static void there_is_an_end_to_places(void **state)
{
    struct rig rigs[TARN_WATCH_ALLOCATORS + 1];
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = runtime_folder};
    struct tarn_error error = {.text = ""};

    (void)state;
    for (int i = 0; i < TARN_WATCH_ALLOCATORS; i++) {
        rigs[i] = rig_open("");
        watch_start(rigs[i].allocator);
    }
    rigs[TARN_WATCH_ALLOCATORS] = rig_open("");
    assert_int_equal(tarn_watch_start(rigs[TARN_WATCH_ALLOCATORS].allocator, &options, &error),
                     TARN_ERR_LIMIT);
    assert_string_equal(error.text, "no more than 16 allocators of a process are watched");
    for (int i = 0; i <= TARN_WATCH_ALLOCATORS; i++) {
        rig_close(&rigs[i]);
    }
}

/* ---- a process that hangs ---- */

struct holder {
    struct tarn_allocator *allocator;
    atomic_bool inside;
    atomic_bool leaves;
};

static bool hold(void *context, const struct tarn_segment_info *segment)
{
    struct holder *holder = context;
    const struct timespec nap = {.tv_nsec = 1000000};

    (void)segment;
    atomic_store(&holder->inside, true);
    while (!atomic_load(&holder->leaves)) {
        (void)nanosleep(&nap, NULL);
    }
    return false;
}

static void *walk(void *argument)
{
    struct holder *holder = argument;
    const struct tarn_walker walker = {.context = holder, .segment = hold};

    assert_int_equal(tarn_allocator_walk(holder->allocator, &walker), TARN_OK);
    return NULL;
}

/* A thread keeps the allocator's lock: the last numbers can be read, and that they are old can be
 * seen. */
static void a_held_lock_stops_no_reader(void **state)
{
    struct rig rig = rig_open("");
    struct holder holder = {.allocator = rig.allocator};
    pthread_t thread;

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB, 0);
    const struct tarn_watch_record before = record_ask(watch, 0);

    assert_int_equal(pthread_create(&thread, NULL, walk, &holder), 0);
    while (!atomic_load(&holder.inside)) {
    }
    const struct tarn_watch_record held = record_ask(watch, 0);

    assert_true(held.missed > 0);
    assert_int_equal(held.time_ns, before.time_ns);
    assert_memory_equal(held.stats.by_pool, before.stats.by_pool, sizeof held.stats.by_pool);
    atomic_store(&holder.leaves, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    const struct tarn_watch_record after = record_ask(watch, 0);

    assert_int_equal(after.missed, 0);
    assert_true(after.time_ns > before.time_ns);
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr, NULL), TARN_OK);
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* Publishes, says so, and waits for its end. */
static pid_t child_publish(int *ready)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        struct rig rig = rig_open("");

        watch_start(rig.allocator);
        (void)alloc_ok(rig.allocator, 30 * MIB, 0);
        CHILD_REQUIRE(write(ends[1], "x", 1) == 1);
        for (;;) {
            (void)pause();
        }
    }
    char byte;

    assert_int_equal(read(ends[0], &byte, 1), 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
    *ready = 1;
    return child;
}

static bool count_process(void *context, const struct tarn_watch_process *process)
{
    int64_t *wanted = context;

    wanted[1] += process->process == wanted[0];
    return true;
}

/* A stopped process does not answer, but what it published is there; one that was killed is gone,
 * and its page is removed by whoever looks. */
static void stopped_and_killed_processes_are_recognised(void **state)
{
    struct tarn_watch_record record = {.struct_size = sizeof record};
    struct tarn_watch *watch = NULL;
    struct tarn_error error = {.text = ""};
    int ready = 0;
    const pid_t child = child_publish(&ready);
    int64_t found[2] = {child, 0};

    (void)state;
    assert_int_equal(tarn_watch_open(runtime_folder, child, &watch, NULL), TARN_OK);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child); /* until it has stopped */
    assert_false(tarn_watch_ask(watch, 100));
    assert_true(tarn_watch_is_alive(watch));
    assert_int_equal(tarn_watch_read(watch, 0, &record, NULL), TARN_OK);
    assert_int_equal(tarn_watch_list(runtime_folder, count_process, found, NULL), TARN_OK);
    assert_int_equal(found[1], 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(tarn_watch_is_alive(watch));
    tarn_watch_close(watch);
    assert_int_equal(tarn_watch_open(runtime_folder, child, &watch, &error), TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "has ended"));
    assert_int_equal(access(page_path(child), F_OK), 0);
    assert_int_equal(tarn_watch_list(runtime_folder, count_process, found, NULL), TARN_OK);
    assert_int_equal(found[1], 1);
    assert_int_equal(access(page_path(child), F_OK), -1);
}

struct refusals {
    int64_t process;
    unsigned visited;
    unsigned refused;
    struct tarn_error reason; /* of the last one */
};

static bool refusals_visit(void *context, const struct tarn_watch_process *process)
{
    struct refusals *refusals = context;

    refusals->visited += process->process == refusals->process;
    return true;
}

static void refusals_refuse(void *context, int64_t process, const struct tarn_error *reason)
{
    struct refusals *refusals = context;

    refusals->refused += process == refusals->process;
    refusals->reason = *reason;
}

static struct refusals list_all(int64_t process)
{
    struct refusals refusals = {.process = process};

    assert_int_equal(
        tarn_watch_list_all(runtime_folder, refusals_visit, refusals_refuse, &refusals, NULL),
        TARN_OK);
    return refusals;
}

/* Removes the page of the other process. */
static bool pages_remove(void *context, const struct tarn_watch_process *process)
{
    const int64_t other = ((const struct refusals *)context)->process;

    ((struct refusals *)context)->visited++;
    return unlink(page_path(process->process == other ? getpid() : other)) == 0;
}

/* A page that goes while pages are listed is neither shown nor reported. */
static void a_page_that_goes_meanwhile_is_not_missed(void **state)
{
    struct rig rig = rig_open("");
    int ready = 0;
    const pid_t child = child_publish(&ready);
    struct refusals found = {.process = child};

    (void)state;
    watch_start(rig.allocator);
    assert_int_equal(
        tarn_watch_list_all(runtime_folder, pages_remove, refusals_refuse, &found, NULL), TARN_OK);
    assert_int_equal(found.visited, 1);
    assert_int_equal(found.reason.status, TARN_OK);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    (void)unlink(page_path(child));
    rig_close(&rig);
}

/* A page that cannot be read is reported while its process runs. */
static void pages_that_cannot_be_read_are_reported(void **state)
{
    const uint32_t other_version = 7;
    int ready = 0;
    const pid_t child = child_publish(&ready);

    (void)state;
    struct refusals found = list_all(child);

    assert_int_equal(found.visited, 1);
    assert_int_equal(found.refused, 0);
    const int file = open(page_path(child), O_RDWR);

    assert_true(file >= 0);
    assert_int_equal(
        pwrite(file, &other_version, sizeof other_version, offsetof(struct tn_page_head, version)),
        sizeof other_version);
    found = list_all(child);
    assert_int_equal(found.visited, 0);
    assert_int_equal(found.refused, 1);
    assert_int_equal(found.reason.status, TARN_ERR_FORMAT);
    assert_non_null(strstr(found.reason.text, "has version 7"));
    assert_int_equal(tarn_watch_list(runtime_folder, refusals_visit, &found, NULL), TARN_OK);
    assert_int_equal(found.visited, 0);
    assert_int_equal(close(file), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    found = list_all(child);
    assert_int_equal(found.visited + found.refused, 0);
    assert_int_equal(unlink(page_path(child)), 0);
}

static void child_ends(void *context)
{
    struct rig *parent = context;

    CHILD_REQUIRE(!tarn_watch_is_on(parent->allocator));
    tarn_watch_stop(parent->allocator);
    CHILD_REQUIRE(tarn_watch_start(parent->allocator, NULL, NULL) == TARN_ERR_STATE);
#ifndef __SANITIZE_THREAD__ /* which allows no threads in a child */
    struct rig own = rig_open("");

    watch_start(own.allocator);
    CHILD_REQUIRE(access(page_path(getpid()), F_OK) == 0);
#endif
    CHILD_REQUIRE(access(page_path(getppid()), F_OK) == 0);
    child_end();
}

/* A child neither writes nor removes its parent's page, and may have one of its own. */
static void a_forked_child_has_its_own_page(void **state)
{
    struct rig rig = rig_open("");

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB, 0);

    child_run(child_ends, &rig);
    DIR *open_folder = opendir(folder);
    int names = 0;

    assert_non_null(open_folder);
    for (const struct dirent *entry; (entry = readdir(open_folder));) {
        names += entry->d_name[0] != '.';
    }
    (void)closedir(open_folder);
    assert_int_equal(names, 1); /* the child removed its own at exit */
    (void)record_ask(watch, 0);
    assert_int_equal(tarn_allocator_free(rig.allocator, ptr, NULL), TARN_OK);
    tarn_watch_close(watch);
    rig_close(&rig);
}

/* ---- what is refused ---- */

static void refused(enum tarn_status expected, const char *text)
{
    struct tarn_watch *watch = NULL;
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_watch_open(runtime_folder, getpid(), &watch, &error), expected);
    assert_null(watch);
    if (!strstr(error.text, text)) {
        fail_msg("%s", error.text);
    }
}

static void page_change(uint64_t offset, const void *bytes, size_t size)
{
    const int file = open(page_path(getpid()), O_WRONLY);

    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, size, (off_t)offset), size);
    (void)close(file);
}

static void hostile_pages_are_refused(void **state)
{
    const uint32_t version = 2;
    const uint64_t start = 1;
    const uint64_t process = 1;
    struct rig rig = rig_open("");

    (void)state;
    watch_start(rig.allocator);
    page_change(offsetof(struct tn_page_head, process_start), &start, sizeof start);
    refused(TARN_ERR_NOT_FOUND, "has ended"); /* another process with the same number */
    page_change(offsetof(struct tn_page_head, process), &process, sizeof process);
    refused(TARN_ERR_FORMAT, "says that it is of process 1");
    page_change(offsetof(struct tn_page_head, version), &version, sizeof version);
    refused(TARN_ERR_FORMAT, "has version 2");
    page_change(0, "nonsense", 8);
    refused(TARN_ERR_FORMAT, "no page of counters");
    assert_int_equal(chmod(folder, 0755), 0);
    refused(TARN_ERR_UNSAFE, "open to others");
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(unlink(page_path(getpid())), 0);
    assert_int_equal(symlink("/etc/passwd", page_path(getpid())), 0);
    refused(TARN_ERR_UNSAFE, "no plain file");
    assert_int_equal(unlink(page_path(getpid())), 0);
    refused(TARN_ERR_NOT_FOUND, "publishes nothing");
    rig_close(&rig);
}

/* Each field of the head that says how the page is laid out. */
static void heads_that_contradict_themselves_are_refused(void **state)
{
    static const uint64_t places[] = {
        offsetof(struct tn_page_head, head_size), offsetof(struct tn_page_head, slot_size),
        offsetof(struct tn_page_head, slot_count), offsetof(struct tn_page_head, process) + 4};
    const uint32_t wrong = 7;
    struct rig rig = rig_open("");
    struct tarn_watch_process process = {.struct_size = 2 * sizeof(uint64_t), .created_ns = 5};

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();

    tarn_watch_get_process(watch, &process); /* for a caller of an older version */
    assert_int_equal(process.process, getpid());
    assert_int_equal(process.struct_size, 2 * sizeof(uint64_t));
    assert_int_equal(process.created_ns, 5);
    tarn_watch_close(watch);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint32_t right = 0;
        const int file = open(page_path(getpid()), O_RDWR);

        assert_int_equal(pread(file, &right, sizeof right, (off_t)places[i]), sizeof right);
        page_change(places[i], &wrong, sizeof wrong);
        refused(TARN_ERR_FORMAT, "contradicts itself");
        page_change(places[i], &right, sizeof right);
        assert_int_equal(close(file), 0);
        tarn_watch_close(watch_open());
    }
    rig_close(&rig);
}

/* What else may be in the folder: names that are no process's, and a page that ends in its head. */
static void other_names_are_passed_over(void **state)
{
    static const char *const names[] = {"x.page", "1:.page", "99999999999.page", ".sock", "1.pag"};
    struct rig rig = rig_open("");
    char path[200];
    struct refusals found;

    (void)state;
    watch_start(rig.allocator);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
    }
    found = list_all(getpid());
    assert_int_equal(found.visited, 1);
    assert_int_equal(found.refused, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    rig_close(&rig);
    assert_int_equal(close(open(page_path(getpid()), O_CREAT | O_WRONLY, 0600)), 0);
    refused(TARN_ERR_FORMAT, "no page of counters");
    assert_int_equal(unlink(page_path(getpid())), 0);
}

/* A page that ends early, and one that changes all the time. */
static void a_page_that_is_cut_off_is_refused(void **state)
{
    struct rig rig = rig_open("");
    struct tarn_watch_record record = {.struct_size = sizeof record};
    const uint64_t never = 1 << 20;

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();

    page_change(TN_PAGE_HEAD_SIZE, &never, sizeof never);
    assert_int_equal(tarn_watch_read(watch, 0, &record, NULL), TARN_ERR_NOT_READY);
    tarn_watch_stop(rig.allocator); /* now nobody has it mapped */
    rig_close(&rig);
    assert_false(tarn_watch_ask(watch, 1));
    tarn_watch_close(watch);
}

static void a_folder_that_is_not_private_is_refused(void **state)
{
    struct rig rig = rig_open("");
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = runtime_folder};
    struct tarn_error error = {.text = ""};

    (void)state;
    assert_true(mkdir(folder, 0755) == 0 || chmod(folder, 0755) == 0);
    assert_int_equal(tarn_watch_start(rig.allocator, &options, &error), TARN_ERR_IO);
    assert_non_null(strstr(error.text, "open to others"));
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(symlink("/tmp", folder), 0);
    assert_int_equal(tarn_watch_start(rig.allocator, &options, &error), TARN_ERR_IO);
    assert_int_equal(unlink(folder), 0);
    assert_false(tarn_watch_is_on(rig.allocator));
    rig_close(&rig);
}

/* TARN_WATCH is a setting of the environment; that it cannot be is no reason to fail. */
static void the_environment_switches_it_on(void **state)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct tarn_error error = {.text = ""};

    (void)state;
    assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime_folder, 1), 0);
    assert_int_equal(setenv("TARN_WATCH", "1", 1), 0);
    assert_int_equal(tarn_allocator_create_on("sim:1GiB", NULL, &allocator, NULL), TARN_OK);
    assert_true(tarn_watch_is_on(allocator));
    assert_int_equal(access(page_path(getpid()), F_OK), 0);
    tarn_allocator_destroy(allocator);
    assert_int_equal(access(page_path(getpid()), F_OK), -1);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", "/nowhere", 1), 0);
    assert_int_equal(tarn_allocator_create_on("sim:1GiB", NULL, &allocator, NULL), TARN_OK);
    assert_false(tarn_watch_is_on(allocator));
    tarn_allocator_destroy(allocator);
    assert_int_equal(setenv("TARN_WATCH", "yes", 1), 0);
    assert_int_equal(tarn_config_from_env(&config, &error), TARN_ERR_CONFIG);
    assert_string_equal(error.text, "TARN_WATCH: 0, 1 or control, not \"yes\"");
    assert_int_equal(setenv("TARN_WATCH", "control", 1), 0);
    assert_int_equal(tarn_config_from_env(&config, NULL), TARN_OK);
    assert_int_equal(config.watch, TARN_WATCH_CONTROL);
    assert_int_equal(setenv("TARN_WATCH", "0", 1), 0);
    assert_int_equal(tarn_config_from_env(&config, NULL), TARN_OK);
    assert_int_equal(config.watch, TARN_WATCH_OFF);
    assert_int_equal(unsetenv("TARN_WATCH"), 0);
}

/* ---- threads ---- */

static atomic_bool over;

static void *come_and_go(void *argument)
{
    (void)argument;
    while (!atomic_load(&over)) {
        struct rig rig = rig_open("");

        watch_start(rig.allocator);
        const tarn_ptr ptr = alloc_ok(rig.allocator, MIB, 1);

        assert_int_equal(tarn_allocator_free(rig.allocator, ptr, NULL), TARN_OK);
        rig_close(&rig);
    }
    return NULL;
}

/* Allocators come and go while another works and a reader asks: for the thread sanitizer. */
static void sources_come_and_go(void **state)
{
    enum {
        THREADS = 2,
        ROUNDS = 60
    };
    struct rig rig = rig_open("");
    pthread_t threads[THREADS];

    (void)state;
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        const tarn_ptr ptr = alloc_ok(rig.allocator, MIB, 1);
        const struct tarn_watch_record record = record_ask(watch, 0);

        assert_int_equal(record.stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].current,
                         record.missed ? 0 : 1);
        assert_int_equal(tarn_allocator_free(rig.allocator, ptr, NULL), TARN_OK);
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    tarn_watch_close(watch);
    rig_close(&rig);
}

struct worker {
    struct tarn_allocator *allocator;
    tarn_stream stream;
    uint64_t calls;
};

static void *work(void *argument)
{
    struct worker *worker = argument;

    while (!atomic_load(&over)) {
        const tarn_ptr ptr = alloc_ok(worker->allocator, 4 * KIB, worker->stream);

        assert_int_equal(tarn_allocator_free(worker->allocator, ptr, NULL), TARN_OK);
        worker->calls++;
    }
    return NULL;
}

/* Threads that contend, so that streams get caches of their own: the visits take these as well. */
static void threads_on_several_streams_are_watched(void **state)
{
    enum {
        THREADS = 4,
        LOOKS = 30
    };
    struct rig rig = rig_open("");
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t calls = 0;

    (void)state;
    atomic_store(&over, false);
    watch_start(rig.allocator);
    struct tarn_watch *watch = watch_open();

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.allocator = rig.allocator, .stream = (tarn_stream)i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < LOOKS; i++) {
        const struct tarn_watch_record record = record_ask(watch, 0);
        const struct tarn_stat *blocks = &record.stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL];

        assert_in_range(blocks->current, 0, THREADS);
        assert_in_range(blocks->peak, blocks->current, THREADS);
        assert_int_equal(blocks->allocated - blocks->freed, blocks->current);
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        calls += workers[i].calls;
    }
    const struct tarn_watch_record record = record_ask(watch, 0);

    assert_int_equal(record.stats.by_pool[TARN_STAT_ALLOCATION][TARN_STAT_ALL].allocated, calls);
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    if (tarn_allocator_check(rig.allocator, &findings) != 0) {
        fail_msg("%s", findings.text[0]);
    }
    tarn_watch_close(watch);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_watching_needs),
        cmocka_unit_test(what_is_known_at_the_start),
        cmocka_unit_test(counters_are_those_of_the_allocator),
        cmocka_unit_test(rows_are_by_stream_and_pool),
        cmocka_unit_test(segments_of_a_row_add_up),
        cmocka_unit_test(rows_that_do_not_fit_are_counted),
        cmocka_unit_test(the_last_failed_request_is_there),
        cmocka_unit_test(the_size_of_the_device_is_known_after_a_failure),
        cmocka_unit_test(pages_of_the_compact_policy_are_there),
        cmocka_unit_test(a_record_may_be_smaller),
        cmocka_unit_test(other_engines_are_watched),
        cmocka_unit_test(an_allocator_that_goes_leaves_its_last_numbers),
        cmocka_unit_test(there_is_an_end_to_places),
        cmocka_unit_test(a_held_lock_stops_no_reader),
        cmocka_unit_test(stopped_and_killed_processes_are_recognised),
        cmocka_unit_test(a_page_that_goes_meanwhile_is_not_missed),
        cmocka_unit_test(pages_that_cannot_be_read_are_reported),
        cmocka_unit_test(a_forked_child_has_its_own_page),
        cmocka_unit_test(hostile_pages_are_refused),
        cmocka_unit_test(heads_that_contradict_themselves_are_refused),
        cmocka_unit_test(other_names_are_passed_over),
        cmocka_unit_test(a_page_that_is_cut_off_is_refused),
        cmocka_unit_test(a_folder_that_is_not_private_is_refused),
        cmocka_unit_test(the_environment_switches_it_on),
        cmocka_unit_test(sources_come_and_go),
        cmocka_unit_test(threads_on_several_streams_are_watched),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
