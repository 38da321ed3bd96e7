/* SPDX-License-Identifier: MIT */
/* Totals at any entry, and the peaks of any part, are what the lifetimes and the changes of memory
 * add up to. */
#include "support/report.h"

#include "analysis/timeline.h"
#include "snapshot/snapshot.h"

static uint64_t requested_sum(const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    uint64_t sum = 0;

    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        sum += tn_lifetime_is_at(&lifetimes[i], entry) ? lifetimes[i].size : 0;
    }
    return sum;
}

static uint64_t reserved_sum(const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_memory_change *changes = timeline->memory.items;
    uint64_t reserved = timeline->start.reserved;

    for (size_t i = timeline->start.memory; i < timeline->memory.count; i++) {
        reserved += changes[i].entry <= entry ? changes[i].bytes : 0;
    }
    return reserved;
}

/* From the start of the part, in steps of so many entries. */
static void peaks_are_the_highest(const struct tn_timeline *timeline, uint64_t step)
{
    struct tn_time_point now = timeline->start;

    for (uint64_t limit = timeline->first + step; limit <= timeline->limit; limit += step) {
        struct tn_time_peak wanted = {now.requested, now.entry, now.reserved, now.entry};
        const uint64_t first = limit - step;
        const struct tn_time_peak peak = tn_timeline_follow(timeline, &now, limit);

        for (uint64_t i = first; i < limit; i++) {
            const struct tn_time_point at = tn_timeline_at(timeline, i);

            if (at.requested > wanted.requested) {
                wanted.requested = at.requested;
                wanted.requested_entry = i;
            }
            if (at.reserved > wanted.reserved) {
                wanted.reserved = at.reserved;
                wanted.reserved_entry = i;
            }
        }
        assert_int_equal(peak.requested, wanted.requested);
        assert_int_equal(peak.requested_entry, wanted.requested_entry);
        assert_int_equal(peak.reserved, wanted.reserved);
        assert_int_equal(peak.reserved_entry, wanted.reserved_entry);
        assert_int_equal(now.entry, limit - 1);
        assert_int_equal(now.requested, tn_timeline_at(timeline, limit - 1).requested);
        assert_int_equal(now.reserved, tn_timeline_at(timeline, limit - 1).reserved);
        assert_int_equal(now.memory, tn_timeline_at(timeline, limit - 1).memory);
    }
}

static bool wants_large(void *context, const struct tn_lifetime *lifetime)
{
    (void)context;
    return lifetime->size > 4096;
}

static void totals_add_up(const struct tn_timeline *timeline)
{
    const uint64_t before = tn_timeline_before(timeline);

    assert_int_equal(tn_timeline_at(timeline, before).entry, timeline->start.entry);
    assert_int_equal(tn_timeline_at(timeline, before).requested, timeline->start.requested);
    for (uint64_t i = timeline->first; i < timeline->limit; i += 61) {
        const struct tn_time_point at = tn_timeline_at(timeline, i);

        assert_int_equal(at.entry, i);
        assert_int_equal(at.requested, requested_sum(timeline, i));
        assert_int_equal(at.reserved, reserved_sum(timeline, i));
        if (timeline->whole) {
            assert_int_equal(at.left_out, requested_sum(timeline->whole, i) - at.requested);
        }
    }
    peaks_are_the_highest(timeline, 1);
    peaks_are_the_highest(timeline, 50);
    peaks_are_the_highest(timeline, 64);
    peaks_are_the_highest(timeline, 333);
}

static void totals_of_all_and_of_a_part_add_up(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    const struct tn_narrowing narrowing = {.first = 777, .limit = 5000, .wants = wants_large};
    struct tn_timeline timeline;
    struct tn_timeline part;

    (void)state;
    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), 0));
    assert_true(tn_timeline_narrow(&part, &timeline, &narrowing));
    totals_add_up(&timeline);
    totals_add_up(&part);
    assert_true(part.requested_peak.requested < timeline.requested_peak.requested);
    tn_timeline_fini(&part);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_all_and_of_a_part_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
