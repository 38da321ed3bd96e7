/* SPDX-License-Identifier: MIT */
/* What an observer counts, and the snapshots of it. */
#include "support/child.h"
#include "support/test.h"

#include "tarn/capture.h"
#include "tarn/host.h"
#include "tarn/observer.h"
#include "tarn/report.h"
#include "tarn/snapshot.h"

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
    tarn_observer_free_all(rig.observer, NULL, NULL);
    assert_int_equal(stats_of(rig.observer).allocated, 0);
    assert_int_equal(stats_of(rig.observer).allocations, 0);
    rig_fini(&rig);
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
    tarn_observer_destroy(rig->observer);
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
        cmocka_unit_test(test_a_forked_child_observes_nothing),
        cmocka_unit_test(test_without_host_memory),
        cmocka_unit_test(test_a_snapshot_of_nothing),
        cmocka_unit_test(test_options_of_an_earlier_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
