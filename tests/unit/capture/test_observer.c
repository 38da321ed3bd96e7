/* SPDX-License-Identifier: MIT */
/* What an observer counts, and the snapshots of it. */
#include "support/child.h"
#include "support/test.h"

#include "capture/observer.h"
#include "snapshot/snapshot.h"
#include "tarn/capture.h"
#include "tarn/host.h"
#include "tarn/observer.h"
#include "tarn/report.h"
#include "tarn/snapshot.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)

struct rig {
    struct tarn_history *history;
    struct tarn_observer *observer;
};

static void rig_init(struct rig *rig, enum tarn_context_level level)
{
    assert_int_equal(tarn_history_create(NULL, &rig->history, NULL), TARN_OK);
    assert_int_equal(tarn_observer_create(1, rig->history, level, &rig->observer, NULL), TARN_OK);
}

static void rig_fini(struct rig *rig)
{
    tarn_observer_destroy(rig->observer);
    tarn_history_destroy(rig->history);
}

static struct tarn_observer_stats stats_of(struct tarn_observer *observer)
{
    struct tarn_observer_stats stats = {.struct_size = sizeof stats};

    tarn_observer_get_stats(observer, &stats);
    return stats;
}

static void alloc(struct rig *rig, tarn_ptr address, uint64_t size)
{
    const struct tarn_observed memory = {.address = address, .size = size, .what = "cuMemAlloc"};

    assert_int_equal(tarn_observer_alloc(rig->observer, &memory), TARN_OK);
}

static void visit_sum(void *context, const struct tarn_observed *memory)
{
    *(uint64_t *)context += memory->size;
}

static void test_counts_and_finds(void **state)
{
    struct rig rig;
    uint64_t sum = 0;
    struct tarn_observed found = {0};

    (void)state;
    rig_init(&rig, TARN_CONTEXT_ALL);
    alloc(&rig, 0x1000, 0x100);
    alloc(&rig, 0x2000, 0x200);
    assert_int_equal(stats_of(rig.observer).allocated, 0x300);
    assert_true(tarn_observer_find(rig.observer, 0x21ff, &found));
    assert_int_equal(found.address, 0x2000);
    assert_false(tarn_observer_find(rig.observer, 0x2200, &found));
    assert_false(tarn_observer_find(rig.observer, 0xfff, &found));
    assert_int_equal(tarn_observer_free(rig.observer, 0x1000, &found), TARN_OK);
    assert_int_equal(found.size, 0x100);
    assert_int_equal(tarn_observer_free(rig.observer, 0x1000, NULL), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_observer_free(rig.observer, 0x2001, NULL), TARN_ERR_NOT_FOUND);
    alloc(&rig, 0x2000, 0x80); /* the free before was not seen */
    assert_int_equal(stats_of(rig.observer).allocated, 0x80);
    assert_int_equal(stats_of(rig.observer).allocated_peak, 0x300);
    assert_int_equal(stats_of(rig.observer).allocations, 1);
    assert_int_equal(stats_of(rig.observer).allocations_all, 3);
    assert_int_equal(stats_of(rig.observer).allocated_all, 0x380);
    tarn_observer_free_all(rig.observer, visit_sum, &sum);
    assert_int_equal(sum, 0x80);
    alloc(&rig, 0x3000, 0x300);
    tarn_observer_free_all(rig.observer, NULL, NULL);
    assert_int_equal(stats_of(rig.observer).allocated, 0);
    assert_int_equal(stats_of(rig.observer).allocations, 0);
    rig_fini(&rig);
}

/* Someone who has seen enough, and how much he saw. */
struct onlooker {
    int segments;
    int blocks;
    int begun;
    int ended;
    int stops_at; /* the segment, or behind them the block */
};

static bool look_segment(void *context, const struct tarn_segment_info *segment)
{
    struct onlooker *onlooker = context;

    assert_int_equal(segment->stack, 0); /* of which the level has none */
    return ++onlooker->segments != onlooker->stops_at;
}

static bool look_block(void *context, const struct tarn_block_info *block)
{
    struct onlooker *onlooker = context;

    assert_true(block->allocated);
    return ++onlooker->blocks + 2 != onlooker->stops_at;
}

static void look_begin(void *context)
{
    ((struct onlooker *)context)->begun++;
}

static bool look_end(void *context)
{
    ((struct onlooker *)context)->ended++;
    return true;
}

static void test_a_look_may_end_early(void **state)
{
    static const int seen[][2] = {{1, 0}, {2, 1}, {1, 1}, {2, 2}, {2, 2}};
    struct rig rig;

    (void)state;
    rig_init(&rig, TARN_CONTEXT_NEVER);
    alloc(&rig, 0x1000, 0x100);
    alloc(&rig, 0x2000, 0x200);
    for (int stop = 1; stop <= 5; stop++) {
        struct onlooker onlooker = {.stops_at = stop};
        const struct tn_look look = {.context = &onlooker,
                                     .begin = look_begin,
                                     .walker = {&onlooker, look_segment, look_block},
                                     .end = look_end};

        assert_int_equal(tn_observer_look(rig.observer, &look, NULL), TARN_OK);
        assert_int_equal(onlooker.segments, seen[stop - 1][0]);
        assert_int_equal(onlooker.blocks, seen[stop - 1][1]);
        assert_int_equal(onlooker.begun, 1);
        assert_int_equal(onlooker.ended, 1);
    }
    rig_fini(&rig);
}

/* Of a device that no snapshot has, or beside memory of another kind. */
static void test_observers_that_do_not_fit(void **state)
{
    struct tarn_capture_options options = {.struct_size = sizeof options, .observer_count = 1};
    struct tarn_observer *far = NULL;
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;
    struct rig rig;

    (void)state;
    rig_init(&rig, TARN_CONTEXT_ALL);
    assert_int_equal(tarn_observer_create(1024, NULL, TARN_CONTEXT_NEVER, &far, NULL), TARN_OK);
    options.observers = &far;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "of a device above 1023"));
    options.observers = &rig.observer;
    options.host_observer = far;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "of a device up to 1023"));
    tarn_observer_destroy(far);
    /* The host's is of the device with the highest number. */
    assert_int_equal(tarn_observer_create(3, NULL, TARN_CONTEXT_NEVER, &far, NULL), TARN_OK);
    options.host_observer = far;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL), TARN_OK);
    assert_int_equal(tn_snapshot_model(snapshot)->host_trace_count, 4);
    tarn_snapshot_destroy(snapshot);
    tarn_observer_destroy(far);
    rig_fini(&rig);
}

static void test_every_host_allocation_may_fail(void **state)
{
    struct tarn_capture_options options = {.struct_size = sizeof options, .observer_count = 2};
    struct tarn_observer *observers[2];
    struct tarn_snapshot *snapshot = NULL;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    struct rig rigs[2];
    struct rig host;
    uint64_t n = 0;

    (void)state;
    rig_init(&rigs[0], TARN_CONTEXT_ALL);
    rig_init(&rigs[1], TARN_CONTEXT_ALL);
    rig_init(&host, TARN_CONTEXT_ALL);
    for (int i = 0; i < 2; i++) {
        alloc(&rigs[i], 4 * MIB, MIB);
        observers[i] = rigs[i].observer;
    }
    alloc(&host, 8 * MIB, MIB);
    options.observers = observers;
    options.host_observer = host.observer;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL), TARN_OK);
    tarn_snapshot_destroy(snapshot);
    const uint64_t before = tarn_host_get_usage().live_bytes;

    while (st == TARN_ERR_HOST_MEMORY) {
        tarn_host_fail_nth(++n);
        st = tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL);
        tarn_host_fail_nth(0);
        tarn_snapshot_destroy(snapshot);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
    }
    assert_int_equal(st, TARN_OK);
    assert_true(n > 20);
    rig_fini(&host);
    rig_fini(&rigs[1]);
    rig_fini(&rigs[0]);
}

static void test_wrong_reports(void **state)
{
    const struct tarn_observed nowhere = {.size = 1};
    const struct tarn_observed nothing = {.address = 1};
    struct tarn_observer *observer;
    struct rig rig;

    (void)state;
    rig_init(&rig, TARN_CONTEXT_NEVER);
    assert_int_equal(tarn_observer_alloc(rig.observer, &nowhere), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_observer_alloc(rig.observer, &nothing), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_observer_create(-1, NULL, TARN_CONTEXT_NEVER, &observer, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_fini(&rig);
    assert_int_equal(tarn_observer_create(0, NULL, TARN_CONTEXT_ALL, &observer, NULL), TARN_OK);
    assert_int_equal(tarn_observer_alloc(observer, &(struct tarn_observed){1, 1, 0, NULL}),
                     TARN_OK);
    tarn_observer_destroy(observer);
}

static void test_snapshot(void **state)
{
    struct rig rig;
    struct rig host;
    struct tarn_snapshot *snapshot;
    struct tarn_capture_options options = {.struct_size = sizeof options};

    (void)state;
    rig_init(&rig, TARN_CONTEXT_ALL);
    rig_init(&host, TARN_CONTEXT_ALL);
    alloc(&rig, 4 * MIB, MIB);
    alloc(&rig, 2 * MIB, MIB);
    tarn_observer_oom(rig.observer, 64 * MIB, 0, MIB);
    assert_int_equal(tarn_observer_free(rig.observer, 4 * MIB, NULL), TARN_OK);
    alloc(&host, 8 * MIB, MIB);
    options.observers = &rig.observer;
    options.observer_count = 1;
    options.host_observer = host.observer;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL), TARN_OK);
    assert_int_equal(tarn_snapshot_segment_count(snapshot), 1);
    assert_int_equal(tarn_snapshot_device_count(snapshot), 2);
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 1), 2 + 2 + 1 + 3);
    tarn_snapshot_destroy(snapshot);
    rig_fini(&host);
    rig_fini(&rig);
}

/* What the parent saw is not the child's. */
static void child_observes(void *context)
{
    struct rig *rig = context;
    const struct tarn_observed memory = {.address = 0x9000, .size = 1, .what = "cuMemAlloc"};
    struct tarn_observed found = {.size = 7};
    uint64_t sum = 0;

    CHILD_REQUIRE(tarn_observer_alloc(rig->observer, &memory) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_observer_free(rig->observer, 0x1000, &found) == TARN_ERR_STATE);
    CHILD_REQUIRE(!tarn_observer_find(rig->observer, 0x1000, &found) && found.size == 7);
    tarn_observer_oom(rig->observer, MIB, 0, 0);
    tarn_observer_free_all(rig->observer, visit_sum, &sum);
    CHILD_REQUIRE(sum == 0);
    CHILD_REQUIRE(stats_of(rig->observer).allocated == 0);
    struct tarn_snapshot *snapshot = NULL;
    const struct tarn_capture_options options = {
        .struct_size = sizeof options, .observers = &rig->observer, .observer_count = 1};

    CHILD_REQUIRE(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(!snapshot);
    tarn_observer_destroy(rig->observer);
}

/* Of one without a history, too. */
static void child_looks(void *context)
{
    struct tarn_observer *const observer = context;
    struct tarn_snapshot *snapshot = NULL;
    const struct tarn_capture_options options = {
        .struct_size = sizeof options, .observers = &observer, .observer_count = 1};

    CHILD_REQUIRE(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL) == TARN_ERR_STATE);
    CHILD_REQUIRE(!snapshot);
}

static void test_a_forked_child_sees_nothing(void **state)
{
    struct tarn_observer *observer = NULL;

    (void)state;
    assert_int_equal(tarn_observer_create(1, NULL, TARN_CONTEXT_NEVER, &observer, NULL), TARN_OK);
    child_run(child_looks, observer);
    tarn_observer_destroy(observer);
}

static void test_a_forked_child_observes_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig, TARN_CONTEXT_ALL);
    alloc(&rig, 0x1000, 0x100);
    child_run(child_observes, &rig);
    assert_int_equal(stats_of(rig.observer).allocated, 0x100);
    rig_fini(&rig);
    tarn_observer_destroy(NULL);
}

/* Nothing is counted that is not recorded. */
static void test_without_host_memory(void **state)
{
    const struct tarn_observed memory = {.address = 0x1000, .size = 0x100, .what = "cuMemAlloc"};
    struct tarn_observer *observer = NULL;
    struct tarn_observer_stats part = {.struct_size = 16, .allocations = 77};

    (void)state;
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_observer_create(1, NULL, TARN_CONTEXT_NEVER, &observer, NULL),
                     TARN_ERR_HOST_MEMORY);
    assert_null(observer);
    assert_int_equal(tarn_observer_create(1, NULL, TARN_CONTEXT_NEVER, &observer, NULL), TARN_OK);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_observer_alloc(observer, &memory), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(stats_of(observer).allocations, 0);
    assert_int_equal(stats_of(observer).allocated, 0);
    assert_int_equal(tarn_observer_alloc(observer, &memory), TARN_OK);
    tarn_observer_get_stats(observer, &part); /* of an older program */
    assert_int_equal(part.struct_size, 16);
    if (offsetof(struct tarn_observer_stats, allocations) >= 16) {
        assert_int_equal(part.allocations, 77);
    }
    tarn_observer_destroy(observer);
}

static void test_a_snapshot_of_nothing(void **state)
{
    struct tarn_snapshot *snapshot;
    struct tarn_capture_options options = {.struct_size = sizeof options};
    struct tarn_observer *none = NULL;

    (void)state;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, NULL, &snapshot, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    options.observers = &none;
    options.observer_count = 1;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
}

/* A program that was built before observers were part of the options. */
static void test_options_of_an_earlier_version(void **state)
{
    struct rig rig;
    struct tarn_snapshot *snapshot;
    struct tarn_capture_options options = {0};

    (void)state;
    rig_init(&rig, TARN_CONTEXT_NEVER);
    options.observers = &rig.observer;
    options.observer_count = 1;
    options.struct_size = offsetof(struct tarn_capture_options, observers);
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL),
                     TARN_ERR_INVALID_ARGUMENT); /* what is not read is not there */
    options.struct_size = sizeof options + 1;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    options.struct_size = sizeof options;
    assert_int_equal(tarn_snapshot_capture(NULL, 0, &options, &snapshot, NULL), TARN_OK);
    tarn_snapshot_destroy(snapshot);
    rig_fini(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_and_finds),
        cmocka_unit_test(test_wrong_reports),
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_a_look_may_end_early),
        cmocka_unit_test(test_observers_that_do_not_fit),
        cmocka_unit_test(test_every_host_allocation_may_fail),
        cmocka_unit_test(test_a_forked_child_observes_nothing),
        cmocka_unit_test(test_a_forked_child_sees_nothing),
        cmocka_unit_test(test_without_host_memory),
        cmocka_unit_test(test_a_snapshot_of_nothing),
        cmocka_unit_test(test_options_of_an_earlier_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
