/* SPDX-License-Identifier: MIT */
/* The blocks of an entry are those of which the lifetimes say that they are allocated then. */
#include "support/report.h"

#include "analysis/live.h"
#include "snapshot/snapshot.h"
#include "tarn/host.h"

/* In mid-run: 5000 was there and is freed, 4096 was there and stays; 6000 is allocated twice
 * without a free between, and one free of it is not known. */
static const char mid_run[] =
    "{'segments': [{'address': 4096, 'total_size': 8192, 'device': 0, 'blocks': ["
    " {'size': 512, 'requested_size': 300, 'state': 'active_allocated', 'frames': []},"
    " {'size': 7680, 'state': 'inactive', 'frames': []}]}],"
    "'device_traces': [["
    "{'action': 'alloc', 'addr': 6000, 'size': 900, 'stream': 0},"
    "{'action': 'free_requested', 'addr': 5000, 'size': 700, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 5000, 'size': 700, 'stream': 0},"
    "{'action': 'alloc', 'addr': 6000, 'size': 100, 'stream': 0},"
    "{'action': 'alloc', 'addr': 7000, 'size': 50, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 6000, 'size': 100, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 6000, 'size': 100, 'stream': 0}]]}";

static void blocks_are_those_at(const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    struct tn_live live;
    size_t next = 0;

    assert_true(tn_live_init(&live, timeline, entry));
    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        if (tn_lifetime_is_at(&lifetimes[i], entry)) {
            assert_true(next < live.count);
            assert_ptr_equal(live.blocks[next++], &lifetimes[i]);
        }
    }
    assert_int_equal(next, live.count);
    tn_live_fini(&live);
}

static void each_entry_has_its_blocks(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mid_run);
    struct tn_timeline timeline;

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    assert_int_equal(timeline.before_count, 2);
    blocks_are_those_at(&timeline, TN_NEVER);
    for (uint64_t i = 0; i < timeline.trace->count; i++) {
        blocks_are_those_at(&timeline, i);
    }
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

/* Of entries in any order, some of them twice; others are found without. */
static void sets_are_what_one_entry_has(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    struct tn_timeline timeline;
    struct tn_live_sets sets;
    struct tn_live live;

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    const uint64_t last = timeline.trace->count - 1;
    const uint64_t entries[] = {last, 700, TN_NEVER, timeline.requested_peak.entry, 0, 700, last};

    assert_true(tn_live_sets_init(&sets, &timeline, entries, sizeof entries / sizeof *entries));
    assert_int_equal(sets.sets.count, 5); /* no entry twice */
    timeline.live = &sets;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        assert_true(tn_live_init(&live, &timeline, entries[i]));
        assert_null(live.own.items); /* lent */
        tn_live_fini(&live);
        blocks_are_those_at(&timeline, entries[i]);
    }
    blocks_are_those_at(&timeline, 701);
    tn_live_sets_fini(&sets);
    timeline.live = NULL;
    blocks_are_those_at(&timeline, 700);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Of the entries that are asked for, the first as well as the last, and of no other. */
static void sets_are_of_the_entries_asked(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mid_run);
    const uint64_t entries[] = {4, TN_NEVER, 0};
    struct tn_timeline timeline;
    struct tn_live_sets sets;
    struct tn_live live;

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    assert_true(tn_live_sets_init(&sets, &timeline, entries, 2));
    assert_int_equal(sets.sets.count, 2);
    timeline.live = &sets;
    for (size_t i = 0; i < 3; i++) {
        assert_true(tn_live_init(&live, &timeline, entries[i]));
        assert_true(live.count >= 2);
        assert_int_equal(live.own.items == NULL, i < 2); /* lent */
        tn_live_fini(&live);
        blocks_are_those_at(&timeline, entries[i]);
    }
    tn_live_sets_fini(&sets);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mid_run);
    const uint64_t entries[] = {0, 4};
    struct tn_live_sets sets;
    struct tn_timeline timeline;
    uint64_t nth = 1;
    bool good = false;

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    const uint64_t before = tarn_host_get_usage().live_bytes;

    for (; !good; nth++) {
        tarn_host_fail_nth(nth);
        good = tn_live_sets_init(&sets, &timeline, entries, 2);
        tarn_host_fail_nth(0);
        assert_true(good || tarn_host_get_usage().live_bytes == before);
    }
    assert_true(nth > 2); /* one of them failed at least */
    tn_live_sets_fini(&sets);
    assert_int_equal(tarn_host_get_usage().live_bytes, before);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_has_its_blocks),
        cmocka_unit_test(sets_are_what_one_entry_has),
        cmocka_unit_test(sets_are_of_the_entries_asked),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
