/* SPDX-License-Identifier: MIT */
/*
 * Forked children of a process whose other threads are inside the library: every entry point that
 * takes a lock fails there at once, and a child can make what it needs anew. First with locks that
 * are held for certain while the process is forked, then with threads that come and go. A child
 * that hangs is ended by its alarm and fails the test.
 */
#include "support/child.h"

#include "tarn/allocator.h"
#include "tarn/capture.h"
#include "tarn/copy.h"
#include "tarn/history.h"
#include "tarn/ipc.h"
#include "tarn/oom_dump.h"
#include "tarn/peer.h"
#include "tarn/pinned.h"
#include "tarn/pluggable.h"
#include "tarn/sim.h"
#include "tarn/snapshot.h"
#include "tarn/stream.h"
#include "tarn/tracker.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MIB ((uint64_t)1 << 20)

enum {
    FORKS = 30,
    SECONDS = 60, /* until a child counts as hanging: a busy machine is slow */
    WORKERS = 3
};

struct analysis {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_history *history;
    struct tarn_pinned *pinned;
    struct tarn_tracker *tracker;
    struct tarn_oom_dump *dump;
    tarn_ptr block;
    void *host;
    char message[TARN_IPC_MESSAGE_SIZE];
    size_t message_length;
    atomic_bool over;
    sem_t inside; /* posted by who holds locks */
    sem_t leave;
};

static struct analysis analysis;

/* ---- the child: what fails ---- */

#define REFUSED(call)                                                                              \
    do {                                                                                           \
        CHILD_REQUIRE((call) == TARN_ERR_STATE);                                                   \
        CHILD_REQUIRE(strstr(error.text, "before this process was forked"));                       \
        error.text[0] = '\0';                                                                      \
    } while (false)

static void allocator_is_refused(void)
{
    struct tarn_allocator *a = analysis.allocator;
    struct tarn_error error;
    tarn_ptr ptr = 0;
    uint64_t size = 0;

    REFUSED(tarn_allocator_alloc(a, 3000, 2, &ptr, &error));
    REFUSED(tarn_allocator_free(a, analysis.block, &error));
    REFUSED(tarn_allocator_record_stream(a, analysis.block, 3, &error));
    REFUSED(tarn_allocator_empty_cache(a, &error));
    REFUSED(tarn_allocator_base_allocation(a, analysis.block, &ptr, &size, &error));
    REFUSED(tarn_allocator_cache_info(a, &size, &error));
    REFUSED(tarn_allocator_set_enabled(a, true, &error));
    REFUSED(tarn_allocator_set_memory_fraction(a, 0.5, &error));
    REFUSED(tarn_allocator_annotate(a, analysis.block, "text", &error));
    REFUSED(tarn_ipc_export(a, analysis.block, analysis.message, sizeof analysis.message,
                            &analysis.message_length, &error));
    REFUSED(tarn_ipc_open(a, analysis.message, analysis.message_length, &ptr, &size, &error));
    REFUSED(tarn_ipc_close(a, analysis.block, &error));
    REFUSED(tarn_allocator_add_peer(a, 1, &error));
    REFUSED(tarn_copy(a, analysis.block, a, analysis.block, 1, 0, &error));
}

static bool no_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return false;
}

static bool no_help(void *context, struct tarn_allocator *allocator, uint64_t size,
                    tarn_stream stream)
{
    (void)context;
    (void)allocator;
    (void)size;
    (void)stream;
    return false;
}

static void no_news(void *context, const struct tarn_oom *oom)
{
    (void)context;
    (void)oom;
}

static void pools_and_listeners_are_refused(void)
{
    const struct tarn_pool_id id = {0, 7};
    const struct tarn_sink sink = {.context = &analysis};
    struct tarn_allocator *a = analysis.allocator;
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_error error;
    bool live = false;

    REFUSED(tarn_allocator_begin_pool(a, id, no_stream, NULL, &error));
    REFUSED(tarn_allocator_end_pool(a, id, &error));
    REFUSED(tarn_allocator_alloc_at(a, 512, 0, 512, &error));
    REFUSED(tarn_allocator_begin_capture(a, &error));
    REFUSED(tarn_allocator_end_capture(a, &error));
    REFUSED(tarn_allocator_acquire_pool(a, id, &error));
    REFUSED(tarn_allocator_release_pool(a, id, &error));
    REFUSED(tarn_allocator_empty_pool(a, id, &error));
    REFUSED(tarn_allocator_get_checkpoint(a, id, &checkpoint, &error));
    REFUSED(tarn_allocator_set_checkpoint(a, NULL, NULL, &error));
    REFUSED(tarn_allocator_check_pool_live(a, id, NULL, 0, &live, &error));
    REFUSED(tarn_allocator_add_sink(a, &sink, &error));
    REFUSED(tarn_allocator_switch_sink(a, analysis.history, false, TARN_CONTEXT_NEVER, &error));
    REFUSED(tarn_allocator_remove_sink(a, analysis.history, &error));
    CHILD_REQUIRE(tarn_allocator_set_pool_use_on_oom(a, id, true) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_set_pool_no_split(a, id, true) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_add_oom_observer(a, no_news, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_add_memory_callback(a, no_help, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_pool_use_count(a, id) == 0);
}

static void looking_at_the_allocator_is_refused(void)
{
    const struct tarn_capture_source source = {analysis.allocator, analysis.history};
    const struct tarn_walker walker = {0};
    struct tarn_stats stats = {.struct_size = sizeof stats};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_allocator *a = analysis.allocator;
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_config config;
    struct tarn_error error;

    CHILD_REQUIRE(tarn_allocator_walk(a, &walker) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_allocator_walk_pool(a, (struct tarn_pool_id){0, 0}, &walker) ==
                  TARN_ERR_STATE);
    REFUSED(tarn_snapshot_capture(&source, 1, NULL, &snapshot, &error));
    tarn_allocator_get_config(a, &config);
    REFUSED(tarn_allocator_set_config(a, &config, &error));
    tarn_allocator_get_stats(a, &stats);
    CHILD_REQUIRE(stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current == 0);
    tarn_allocator_reset_peak_stats(a);
    tarn_allocator_reset_accumulated_stats(a);
    CHILD_REQUIRE(tarn_allocator_check(a, &findings) == 0);
    CHILD_REQUIRE(tarn_allocator_get_limit(a) == 0);
    CHILD_REQUIRE(tarn_allocator_get_memory_fraction(a) < 0.5);
    CHILD_REQUIRE(!tarn_allocator_is_enabled(a));
    CHILD_REQUIRE(!tarn_allocator_has_expandable_segments(a));
    CHILD_REQUIRE(tarn_allocator_get_backend(a) != NULL);
}

static void no_process(void *context, int64_t process, uint64_t used)
{
    (void)context;
    (void)process;
    (void)used;
}

static void device_is_refused(void)
{
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};
    struct tarn_device *d = analysis.device;
    struct tarn_error error;
    tarn_stream stream = 0;
    uint64_t number = 0;
    uint64_t total = 0;

    CHILD_REQUIRE(tarn_device_memory_info(d, &number, &total) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_device_walk_processes(d, no_process, NULL, &error) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(strstr(error.text, "before this process was forked"));
    CHILD_REQUIRE(tarn_stream_create(d, &stream, &error) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_stream_wait(d, 0, &error) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_stream_get_capture(d, 0, &number, &error) == TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_copy_from_host(analysis.allocator, analysis.block, &error, 8, 0, &error) ==
                  TARN_ERR_DEVICE);
    CHILD_REQUIRE(tarn_sim_block_stream(d, 0) == TARN_ERR_INVALID_ARGUMENT);
    CHILD_REQUIRE(tarn_sim_script_alloc(d, 2 * MIB) == TARN_ERR_INVALID_ARGUMENT);
    CHILD_REQUIRE(tarn_sim_complete_event(d, 1) == TARN_ERR_INVALID_ARGUMENT);
    CHILD_REQUIRE(!tarn_sim_host_memory(d, analysis.block, 1));
    CHILD_REQUIRE(tarn_sim_memory_address(d, analysis.block, 1) == 0);
    CHILD_REQUIRE(tarn_sim_now_ns(d) == 0);
    tarn_sim_advance_ns(d, 1);
    tarn_sim_set_foreign_memory(d, 1);
    tarn_sim_set_address_oracle(d, NULL, NULL);
    tarn_sim_set_event_oracle(d, NULL, NULL);
    tarn_sim_script_clear(d);
    tarn_sim_fail_nth(d, TARN_SIM_ALLOC, 1, TARN_ERR_DEVICE);
    tarn_sim_get_counters(d, &counters);
    CHILD_REQUIRE(counters.live_allocations == 0);
}

static void pinned_memory_is_refused(void)
{
    const struct tarn_walker walker = {0};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_pinned_stats stats = {.struct_size = sizeof stats};
    struct tarn_pinned *p = analysis.pinned;
    struct tarn_error error;
    void *memory = NULL;

    REFUSED(tarn_pinned_alloc(p, 4096, &memory, &error));
    REFUSED(tarn_pinned_free(p, analysis.host, &error));
    REFUSED(tarn_pinned_record_stream(p, analysis.host, NULL, 1, &error));
    REFUSED(tarn_pinned_empty_cache(p, &error));
    tarn_pinned_forget_graphs(p);
    tarn_pinned_get_stats(p, &stats);
    CHILD_REQUIRE(stats.allocations.current == 0);
    tarn_pinned_reset_peak_stats(p);
    tarn_pinned_reset_accumulated_stats(p);
    tarn_pinned_set_sink(p, NULL);
    tarn_pinned_walk(p, &walker);
    CHILD_REQUIRE(tarn_pinned_check(p, &findings) == 0);
}

static bool no_entry(void *context, const struct tarn_history_entry *entry)
{
    (void)context;
    (void)entry;
    return false;
}

static void history_is_refused(void)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};
    const struct tarn_trace_event event = {.action = TARN_ACTION_ALLOC};
    struct tarn_history *h = analysis.history;
    struct tarn_error error;
    struct tarn_sink sink;

    REFUSED(tarn_history_set_max_entries(h, 10, &error));
    CHILD_REQUIRE(tarn_history_annotate(h, TARN_ANNOTATION_START, 0, "name", NULL, 0) ==
                  TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_history_walk(h, no_entry, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_history_set_stack_source(h, TARN_STACK_NONE) == TARN_ERR_STATE);
    tarn_history_get_sink(h, TARN_CONTEXT_ALL, &sink);
    CHILD_REQUIRE(sink.capture(sink.context, TARN_CONTEXT_ALL) == 0);
    sink.receive(sink.context, &event);
    tarn_history_set_skip_actions(h, 0);
    tarn_history_clear(h);
    tarn_history_get_usage(h, &usage);
    CHILD_REQUIRE(usage.max_entries == 0);
}

static void tracker_is_refused(void)
{
    const struct tarn_writer writer = {.write = NULL};
    const struct tarn_track_event event = {.kind = TARN_TRACK_START};
    struct tarn_track_module module = {.struct_size = sizeof module};
    struct tarn_track_iteration iteration = {.struct_size = sizeof iteration};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_tracker *t = analysis.tracker;
    struct tarn_track_row row;
    struct tarn_error error;
    uint32_t id = 0;
    size_t count = 1;

    REFUSED(tarn_tracker_add_name(t, TARN_TRACK_DEVICE, "cuda:1", &id, &error));
    REFUSED(tarn_tracker_apply(t, &event, 1, NULL, &error));
    REFUSED(tarn_tracker_write_json(t, false, &writer, &error));
    REFUSED(tarn_tracker_replay_log(t, "none", NULL, NULL, &error));
    CHILD_REQUIRE(!tarn_tracker_get_name(t, TARN_TRACK_DEVICE, 0));
    CHILD_REQUIRE(tarn_tracker_count_names(t, TARN_TRACK_DEVICE) == 0);
    CHILD_REQUIRE(tarn_tracker_count_modules(t) == 0);
    CHILD_REQUIRE(tarn_tracker_count_iterations(t) == 0);
    CHILD_REQUIRE(tarn_tracker_get_module(t, 0, &module) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_state(t, 0, 0, &id, &count) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_call(t, 0, 0, 0, &row, 1, &count) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_iteration(t, 0, &iteration) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_tracker_get_owned(t, TARN_TRACK_NOW, 0, 0, &row) == TARN_ERR_STATE);
    tarn_tracker_get_rows(t, TARN_TRACK_NOW, &row, 1, &count);
    CHILD_REQUIRE(count == 0);
    CHILD_REQUIRE(tarn_tracker_check(t, &findings) == 0);
}

static void dump_is_refused(void)
{
    struct tarn_error error;

    REFUSED(tarn_oom_dump_get_status(analysis.dump, &error));
    CHILD_REQUIRE(tarn_oom_dump_count(analysis.dump) == 0);
}

/* ---- the child: what works ---- */

static void new_things_work(void)
{
    struct tarn_allocator *own = NULL;
    struct tarn_error error;
    tarn_ptr ptr = 0;

    CHILD_REQUIRE(tarn_allocator_create_on("sim:1GiB", "", &own, &error) == TARN_OK);
    CHILD_REQUIRE(tarn_allocator_alloc(own, 3000, 2, &ptr, &error) == TARN_OK);
    CHILD_REQUIRE(tarn_allocator_free(own, ptr, &error) == TARN_OK);
    tarn_allocator_destroy(own);
}

static void destroy_all(void)
{
    tarn_tracker_destroy(analysis.tracker);
    tarn_pinned_destroy(analysis.pinned);
    tarn_allocator_destroy(analysis.allocator);
    tarn_oom_dump_destroy(analysis.dump);
    tarn_history_destroy(analysis.history);
    tarn_device_close(analysis.device);
}

static void child(void *context)
{
    const bool *alone = context; /* nobody else has made allocators */
    struct tarn_error error;

    (void)alarm(SECONDS);
    allocator_is_refused();
    pools_and_listeners_are_refused();
    looking_at_the_allocator_is_refused();
    device_is_refused();
    pinned_memory_is_refused();
    history_is_refused();
    tracker_is_refused();
    dump_is_refused();
    new_things_work();
    destroy_all();
    /* What was destroyed here counts no more. */
    CHILD_REQUIRE(tarn_pluggable_set_current(NULL, &error) == TARN_OK || !*alone);
}

/* ---- the parent ---- */

static int scene_open(void **state)
{
    const struct tarn_sim_options sim = {
        .struct_size = sizeof sim, .capacity = 1024 * MIB, .backed = true};
    struct tarn_sink sink;

    (void)state;
    memset(&analysis, 0, sizeof analysis);
    assert_int_equal(sem_init(&analysis.inside, 0, 0), 0);
    assert_int_equal(sem_init(&analysis.leave, 0, 0), 0);
    assert_int_equal(tarn_sim_open(&sim, &analysis.device, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(analysis.device, NULL, &analysis.allocator, NULL),
                     TARN_OK);
    assert_int_equal(tarn_history_create(NULL, &analysis.history, NULL), TARN_OK);
    tarn_history_get_sink(analysis.history, TARN_CONTEXT_ALL, &sink);
    assert_int_equal(tarn_allocator_add_sink(analysis.allocator, &sink, NULL), TARN_OK);
    assert_int_equal(tarn_pinned_create(analysis.device, NULL, &analysis.pinned, NULL), TARN_OK);
    assert_int_equal(tarn_tracker_create(NULL, &analysis.tracker, NULL), TARN_OK);
    assert_int_equal(
        tarn_oom_dump_create(analysis.allocator, analysis.history, "unused", &analysis.dump, NULL),
        TARN_OK);
    assert_int_equal(tarn_allocator_alloc(analysis.allocator, 5000, 1, &analysis.block, NULL),
                     TARN_OK);
    assert_int_equal(tarn_pinned_alloc(analysis.pinned, 5000, &analysis.host, NULL), TARN_OK);
    return 0;
}

static int scene_close(void **state)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)state;
    assert_int_equal(tarn_allocator_check(analysis.allocator, &findings), 0);
    assert_int_equal(tarn_allocator_free(analysis.allocator, analysis.block, NULL), TARN_OK);
    destroy_all();
    (void)sem_destroy(&analysis.inside);
    (void)sem_destroy(&analysis.leave);
    return 0;
}

static void hold(void)
{
    (void)sem_post(&analysis.inside);
    while (sem_wait(&analysis.leave) != 0) { /* again after a signal */
    }
}

static bool hold_in_walk(void *context, const struct tarn_segment_info *segment)
{
    (void)context;
    (void)segment;
    hold();
    return false;
}

static tarn_ptr hold_in_oracle(void *context, bool reservation, uint64_t size)
{
    (void)context;
    (void)reservation;
    (void)size;
    hold();
    return 0;
}

static void *walk_pinned(void *context)
{
    const struct tarn_walker walker = {.segment = hold_in_walk};

    tarn_pinned_walk(analysis.pinned, &walker);
    return context;
}

/* Holds the locks of the allocator and of the device. */
static void *alloc_segment(void *context)
{
    tarn_ptr ptr = 0;

    tarn_sim_set_address_oracle(analysis.device, hold_in_oracle, NULL);
    if (tarn_allocator_alloc(analysis.allocator, 64 * MIB, 5, &ptr, NULL) ||
        tarn_allocator_free(analysis.allocator, ptr, NULL)) {
        return NULL;
    }
    return context;
}

static void locks_held_by_others_stop_no_child(void **state)
{
    pthread_t threads[2];
    bool alone = true;
    void *done = NULL;

    (void)state;
    assert_int_equal(pthread_create(&threads[0], NULL, walk_pinned, &analysis), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, alloc_segment, &analysis), 0);
    assert_int_equal(sem_wait(&analysis.inside), 0);
    assert_int_equal(sem_wait(&analysis.inside), 0);
    child_run(child, &alone);
    (void)sem_post(&analysis.leave);
    (void)sem_post(&analysis.leave);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &done), 0);
        assert_ptr_equal(done, &analysis);
    }
}

static bool work_on_memory(tarn_stream stream)
{
    tarn_ptr ptr = 0;
    void *host = NULL;

    return tarn_allocator_alloc(analysis.allocator, 5000, stream, &ptr, NULL) == TARN_OK &&
           tarn_allocator_record_stream(analysis.allocator, ptr, stream + 1, NULL) == TARN_OK &&
           tarn_allocator_free(analysis.allocator, ptr, NULL) == TARN_OK &&
           tarn_pinned_alloc(analysis.pinned, 5000, &host, NULL) == TARN_OK &&
           tarn_pinned_free(analysis.pinned, host, NULL) == TARN_OK;
}

static bool work_on_records(void)
{
    const struct tarn_track_event event = {.kind = TARN_TRACK_START};
    struct tarn_history_usage usage = {.struct_size = sizeof usage};
    struct tarn_stats stats = {.struct_size = sizeof stats};
    struct tarn_allocator *other = NULL;

    tarn_history_get_usage(analysis.history, &usage);
    tarn_allocator_get_stats(analysis.allocator, &stats);
    if (tarn_allocator_create_on("sim:1GiB", "", &other, NULL)) { /* the lists of what there is */
        return false;
    }
    tarn_allocator_destroy(other);
    return tarn_history_annotate(analysis.history, TARN_ANNOTATION_START, 0, "name", NULL, 0) ==
               TARN_OK &&
           tarn_tracker_apply(analysis.tracker, &event, 1, NULL, NULL) == TARN_OK;
}

static void *work(void *context)
{
    const tarn_stream stream = 2 + *(const uint64_t *)context;
    bool well = true;

    while (!atomic_load(&analysis.over) && well) {
        well = work_on_memory(stream) && work_on_records();
    }
    return well ? context : NULL;
}

static void children_of_busy_threads_go_on(void **state)
{
    const struct timespec a_moment = {.tv_nsec = 1000000};
    uint64_t numbers[WORKERS];
    pthread_t threads[WORKERS];
    bool alone = false;
    void *done = NULL;

    (void)state;
    if (sizeof SANITIZER > 1) { /* "address,undefined" */
        (void)printf("skip: a sanitizer's malloc hangs in children of busy threads\n");
        skip();
    }
    for (uint64_t i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (int i = 0; i < FORKS; i++) {
        (void)nanosleep(&a_moment, NULL);
        child_run(child, &alone);
    }
    atomic_store(&analysis.over, true);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], &done), 0);
        assert_ptr_equal(done, &numbers[i]);
    }
}

/* ---- the other engines ---- */

static void other_child(void *context)
{
    struct tarn_allocator *a = context;
    struct tarn_error error;
    tarn_ptr ptr = 0;

    (void)alarm(SECONDS);
    REFUSED(tarn_allocator_alloc(a, 3000, 2, &ptr, &error));
    REFUSED(tarn_allocator_free(a, 2 * MIB, &error));
    REFUSED(tarn_allocator_empty_cache(a, &error));
    tarn_allocator_destroy(a);
}

static void engines_of_all_kinds_refuse(void **state)
{
    static const char *const settings[] = {"", "backend:cudaMallocAsync",
                                           "expandable_segments:True"};

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct tarn_allocator *allocator = NULL;
        tarn_ptr ptr = 0;

        assert_int_equal(tarn_allocator_create_on("sim:1GiB", settings[i], &allocator, NULL),
                         TARN_OK);
        assert_int_equal(tarn_allocator_alloc(allocator, 3000, 0, &ptr, NULL), TARN_OK);
        child_run(other_child, allocator);
        assert_int_equal(tarn_allocator_free(allocator, ptr, NULL), TARN_OK);
        tarn_allocator_destroy(allocator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(locks_held_by_others_stop_no_child, scene_open,
                                        scene_close),
        cmocka_unit_test_setup_teardown(children_of_busy_threads_go_on, scene_open, scene_close),
        cmocka_unit_test(engines_of_all_kinds_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
