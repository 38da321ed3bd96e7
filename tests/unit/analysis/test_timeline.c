/* SPDX-License-Identifier: MIT */
/* Totals at any entry, and the peaks of any part, are what the lifetimes and the changes of memory
 * add up to. */
#include "support/report.h"
#include "support/trace.h"

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

/* ---- what entries say ---- */

static const struct trace_row some_rows[] = {
    {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0},
    {TN_TRACE_ALLOC, A, 1000, 0}, /* until entry 6 */
    {TN_TRACE_OOM, 0, 5 * MIB, 0},
    {TN_TRACE_ALLOC, A + 4096, 300, 0},     /* until entry 9 */
    {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 0}, /* contradicts; only bytes count here */
    {TN_TRACE_FREE_REQUESTED, A, 1000, 0},  /* completed behind another free */
    {TN_TRACE_FREE_COMPLETED, A, 1000, 0},
    {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 0}, /* the same peak again */
    {TN_TRACE_FREE_REQUESTED, A + 4096, 300, 0},
    {TN_TRACE_FREE_COMPLETED, A + 4096, 300, 0},
    {TN_TRACE_OOM, 0, 5 * MIB, 0},
    {TN_TRACE_ALLOC, A + 8192, 700, 0}, /* stays */
    {TN_TRACE_SEGMENT_ALLOC, A + 4 * MIB, 20 * MIB, 0},
};

enum {
    SOME = sizeof some_rows / sizeof *some_rows
};

static const struct tn_model_segment some_segments[] = {
    {.address = A, .total_size = 2 * MIB},
    {.address = A + 4 * MIB, .total_size = 20 * MIB, .is_large = true},
};

static void lifetime_is(const struct tn_timeline *timeline, size_t number, uint64_t start,
                        uint64_t requested, uint64_t end)
{
    const struct tn_lifetime *lifetime = &tn_timeline_lifetimes(timeline)[number];

    assert_true(number < timeline->lifetimes.count);
    assert_true(lifetime->start == start);
    assert_true(lifetime->requested == requested);
    assert_true(lifetime->end == end);
}

/* Of the reserved bytes, the first of equal peaks counts, and the peak up to an entry is that of no
 * later one. */
static void peaks_of_reserved_bytes(void **state)
{
    struct trace_model made;
    struct tn_timeline timeline;

    (void)state;
    trace_open(&made, some_rows, SOME - 1, some_segments, 1);
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_int_equal(timeline.start.reserved, 0);
    assert_int_equal(timeline.reserved_peak.reserved, 2 * MIB);
    assert_int_equal(timeline.reserved_peak.entry, 0);
    tn_timeline_fini(&timeline);
    trace_close(&made);

    trace_open(&made, some_rows, SOME, some_segments, 2);
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_int_equal(timeline.reserved_peak.entry, SOME - 1);
    assert_int_equal(tn_timeline_reserved_max(&timeline, TN_NEVER), 0);
    assert_int_equal(tn_timeline_reserved_max(&timeline, 0), 2 * MIB);
    assert_int_equal(tn_timeline_reserved_max(&timeline, SOME - 2), 2 * MIB);
    assert_int_equal(tn_timeline_reserved_max(&timeline, SOME - 1), 22 * MIB);
    tn_timeline_fini(&timeline);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Of a part: blocks that are there in it, from before it if they began before, and without what
 * happens behind it. An entry at its limit is behind it. */
static void parts_are_cut_off(void **state)
{
    static const struct {
        uint64_t first;
        uint64_t limit;
        uint64_t lifetimes[3][3]; /* start, requested, end */
        size_t count;
        size_t before;
        size_t ooms;
        size_t changes;    /* of memory, before the limit */
        uint64_t reserved; /* at the start */
    } wanted[] = {
        {0, SOME, {{1, 5, 6}, {3, 8, 9}, {11, TN_NEVER, TN_NEVER}}, 3, 0, 2, 4, 0},
        {2, 5, {{TN_NEVER, TN_NEVER, TN_NEVER}, {3, TN_NEVER, TN_NEVER}}, 2, 1, 1, 2, 2 * MIB},
        {3, 6, {{TN_NEVER, 5, TN_NEVER}, {3, TN_NEVER, TN_NEVER}}, 2, 1, 0, 2, 2 * MIB},
        {4, 10, {{TN_NEVER, 5, 6}, {TN_NEVER, 8, 9}}, 2, 2, 0, 3, 2 * MIB},
        {6, 11, {{TN_NEVER, 5, 6}, {TN_NEVER, 8, 9}}, 2, 2, 1, 3, 0},
        {7, 9, {{TN_NEVER, 8, TN_NEVER}}, 1, 1, 0, 3, 0},
        {10, 12, {{11, TN_NEVER, TN_NEVER}}, 1, 0, 1, 3, 2 * MIB},
    };
    struct trace_model made;
    struct tn_timeline timeline;

    (void)state;
    trace_open(&made, some_rows, SOME, some_segments, 2);
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const struct tn_narrowing narrowing = {.first = wanted[i].first, .limit = wanted[i].limit};
        struct tn_timeline part;

        assert_true(tn_timeline_narrow(&part, &timeline, &narrowing));
        assert_int_equal(part.lifetimes.count, wanted[i].count);
        for (size_t k = 0; k < wanted[i].count; k++) {
            const uint64_t *lifetime = wanted[i].lifetimes[k];

            lifetime_is(&part, k, lifetime[0], lifetime[1], lifetime[2]);
        }
        assert_int_equal(part.before_count, wanted[i].before);
        assert_int_equal(part.ooms.count, wanted[i].ooms);
        assert_int_equal(part.memory.count, wanted[i].changes);
        assert_int_equal(part.start.reserved, wanted[i].reserved);
        assert_int_equal(part.end.requested,
                         tn_timeline_at(&timeline, wanted[i].limit - 1).requested);
        assert_int_equal(part.end.reserved,
                         tn_timeline_at(&timeline, wanted[i].limit - 1).reserved);
        tn_timeline_fini(&part);
    }
    tn_timeline_fini(&timeline);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* A free is complete with the entry that says so of the same address in the same trace, whatever
 * lies between; a second one is of nothing known. */
static void frees_end_with_their_completion(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, 100, 0},
        {TN_TRACE_ALLOC, A + 512, 200, 0},
        {TN_TRACE_FREE_REQUESTED, A, 100, 0},
        {TN_TRACE_FREE_REQUESTED, A, 100, 0}, /* once more */
        {TN_TRACE_FREE_COMPLETED, A, 100, 0},
        {TN_TRACE_FREE_REQUESTED, A, 100, 0}, /* of nothing */
        {TN_TRACE_FREE_COMPLETED, A, 100, 0}, /* neither */
        {TN_TRACE_FREE_REQUESTED, A + 512, 200, 0},
        {TN_TRACE_FREE_COMPLETED, A + 512, 200, 0}, /* the first of another device */
    };
    const size_t count = sizeof rows / sizeof *rows;
    struct trace_model made;
    struct tn_timeline timeline;

    (void)state;
    trace_open(&made, rows, count, NULL, 0);
    made.traces[0].count = count - 1;
    made.traces[1] = (struct tn_trace){.first = count - 1, .count = 1};
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_int_equal(timeline.lifetimes.count, 2);
    lifetime_is(&timeline, 0, 0, 3, 4);
    lifetime_is(&timeline, 1, 1, 7, TN_NEVER);
    assert_int_equal(timeline.unknown_frees, 2);
    assert_int_equal(timeline.end.requested, 200);
    tn_timeline_fini(&timeline);
    trace_close(&made);
}

/* No allocation and no free has so many bytes as the limit; one that the trace only completes
 * counts, too. */
static void the_limit_of_requests(void **state)
{
    static const struct trace_row allocated[] = {
        {TN_TRACE_ALLOC, A, 100, 0},
        {TN_TRACE_ALLOC, A + 4096, 900, 0},
    };
    static const struct trace_row freed[] = {
        {TN_TRACE_ALLOC, A, 100, 0},
        {TN_TRACE_FREE_COMPLETED, A + 4096, 800, 0},
    };
    static const struct trace_row requested[] = {
        {TN_TRACE_ALLOC, A, 100, 0},
        {TN_TRACE_FREE_REQUESTED, A + 4096, 700, 0},
        {TN_TRACE_FREE_COMPLETED, A + 4096, 700, 0},
    };
    static const struct {
        const struct trace_row *rows;
        size_t count;
        uint64_t limit;
    } traces[] = {{allocated, 2, 901}, {freed, 2, 801}, {requested, 3, 701}};

    (void)state;
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        struct trace_model made;
        struct tn_timeline timeline;

        trace_open(&made, traces[i].rows, traces[i].count, NULL, 0);
        assert_true(tn_timeline_init(&timeline, &made.model, 0));
        assert_int_equal(timeline.request_limit, traces[i].limit);
        tn_timeline_fini(&timeline);
        trace_close(&made);
    }
}

static void *dirty_alloc(void *context, size_t size, size_t alignment)
{
    void *memory = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);

    (void)context;
    return memory ? memset(memory, 0xa5, size) : NULL;
}

static void dirty_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

/* What is filled in later is 0 until then, whatever was in the memory before; lifetimes alone have
 * no totals. */
static void lifetimes_begin_empty(void **state)
{
    const struct tarn_host_hooks dirty = {
        .struct_size = sizeof dirty, .alloc = dirty_alloc, .release = dirty_release};
    struct trace_model made;
    struct tn_timeline timeline;

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&dirty), TARN_OK);
    trace_open(&made, some_rows, SOME, some_segments, 2);
    assert_true(tn_timeline_init_lifetimes(&timeline, &made.model, 0));
    assert_int_equal(timeline.lifetimes.count, 3);
    assert_int_equal(timeline.requested.count, 0);
    for (size_t i = 0; i < timeline.lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = &tn_timeline_lifetimes(&timeline)[i];

        assert_int_equal(lifetime->pool_stream, 0);
        assert_int_equal(lifetime->annotation, 0);
        assert_int_equal(lifetime->category, 0);
    }
    tn_timeline_fini(&timeline);
    trace_close(&made);
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

/* Lifetimes whose allocation has the empty stack are counted: those of the trace, those that the
 * snapshot has besides, and those of a part. */
static void empty_stacks_are_counted(void **state)
{
    static const struct tn_model_block blocks[] = {
        {.address = A,
         .size = 512,
         .requested_size = 500,
         .stack = TN_STACK_EMPTY,
         .state = TN_BLOCK_ACTIVE_ALLOCATED},
        {.address = A + 512,
         .size = 512,
         .requested_size = 500,
         .stack = TN_STACK_NONE,
         .state = TN_BLOCK_ACTIVE_ALLOCATED},
        {.address = A + 1024,
         .size = 512,
         .requested_size = 500,
         .stack = TN_STACK_NONE,
         .state = TN_BLOCK_ACTIVE_ALLOCATED},
    };
    static const struct tn_model_segment segment = {
        .address = A, .total_size = 2 * MIB, .blocks = blocks, .block_count = 3};
    static const uint32_t stacks[] = {TN_STACK_EMPTY, TN_STACK_NONE, TN_STACK_EMPTY};
    const struct tn_narrowing narrowing = {.first = 0, .limit = 2};
    struct trace_model made;
    struct tn_timeline timeline;
    struct tn_timeline part;

    (void)state;
    trace_open(&made, NULL, 0, &segment, 1);
    for (uint64_t i = 0; i < 3; i++) {
        const struct tn_trace_entry entry = {.address = A + MIB + i * 512,
                                             .size = 100,
                                             .time_us = TN_TIME_NONE,
                                             .stack = stacks[i],
                                             .action = TN_TRACE_ALLOC};
        uint64_t number;

        assert_int_equal(tn_model_add_entry(&made.model, &entry, &number), TARN_OK);
    }
    made.traces[0].count = 3;
    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    assert_int_equal(timeline.lifetimes.count, 6);
    assert_int_equal(timeline.empty_stacks, 3);
    assert_true(tn_timeline_narrow(&part, &timeline, &narrowing));
    assert_int_equal(part.empty_stacks, 2);
    tn_timeline_fini(&part);
    tn_timeline_fini(&timeline);
    trace_close(&made);
}

static bool part_make(struct tn_timeline *part, const struct tn_timeline *whole)
{
    const struct tn_narrowing narrowing = {.first = 1, .limit = whole->limit};

    return tn_timeline_narrow(part, whole, &narrowing);
}

/* Without host memory at any step there is no timeline, and no part, instead of one that lacks
 * something. */
static void every_host_failure_is_reported(void **state)
{
    enum {
        EACH = 40, /* failures and segments */
        ROWS = 6 * EACH
    };
    struct trace_row rows[ROWS];
    struct trace_model made;
    struct tn_timeline timeline;
    struct tn_timeline part;
    uint64_t failures = 0;
    bool good = false;

    (void)state;
    for (uint64_t i = 0; i < EACH; i++) {
        for (uint64_t k = 0; k < 4; k++) { /* blocks from before */
            rows[6 * i + k] =
                (struct trace_row){TN_TRACE_FREE_COMPLETED, A + (4 * i + k) * 512, 100, 0};
        }
        rows[6 * i + 4] = (struct trace_row){TN_TRACE_OOM, 0, GIB, 0};
        rows[6 * i + 5] = (struct trace_row){TN_TRACE_SEGMENT_ALLOC, A + i * 2 * MIB, 2 * MIB, 0};
    }
    trace_open(&made, rows, ROWS, NULL, 0);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; !good; n++) {
        tarn_host_fail_nth(n);
        good = tn_timeline_init(&timeline, &made.model, 0);
        tarn_host_fail_nth(0);
        failures += !good;
        assert_true(good || tarn_host_get_usage().live_bytes == live);
    }
    assert_true(failures >= 5);
    assert_int_equal(timeline.before_count, 4 * EACH);
    assert_int_equal(timeline.ooms.count, EACH);
    assert_int_equal(timeline.memory.count, EACH);
    const uint64_t live_with = tarn_host_get_usage().live_bytes;

    failures = 0;
    good = false;
    for (uint64_t n = 1; !good; n++) {
        tarn_host_fail_nth(n);
        good = part_make(&part, &timeline);
        tarn_host_fail_nth(0);
        failures += !good;
        assert_true(good || tarn_host_get_usage().live_bytes == live_with);
    }
    assert_true(failures >= 5);
    assert_int_equal(part.before_count, 4 * EACH - 1);
    assert_int_equal(part.ooms.count, EACH);
    assert_int_equal(part.memory.count, EACH);
    tn_timeline_fini(&part);
    tn_timeline_fini(&timeline);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_all_and_of_a_part_add_up),
        cmocka_unit_test(peaks_of_reserved_bytes),
        cmocka_unit_test(parts_are_cut_off),
        cmocka_unit_test(frees_end_with_their_completion),
        cmocka_unit_test(the_limit_of_requests),
        cmocka_unit_test(lifetimes_begin_empty),
        cmocka_unit_test(empty_stacks_are_counted),
        cmocka_unit_test(every_host_failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
