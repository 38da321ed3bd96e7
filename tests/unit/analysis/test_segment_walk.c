/* SPDX-License-Identifier: MIT */
#include "support/trace.h"

#include "analysis/segment_walk.h"
#include "tarn/host.h"

/* Ranges in order, as starts and ends in MiB from A. */
static void ranges_are(const struct tn_segment_walk *walk, const uint64_t *bounds, size_t count)
{
    const struct tn_segment_range *range = tn_segment_walk_first(walk);

    for (size_t i = 0; i < count; i++, range = tn_segment_walk_next(range)) {
        assert_non_null(range);
        assert_int_equal(range->start, A + bounds[2 * i] * MIB);
        assert_int_equal(range->end, A + bounds[2 * i + 1] * MIB);
    }
    assert_null(range);
}

static void segments_are_those_of_the_moment(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .stream = 3, .pool = {{0, 1}}},
        {.address = A + 64 * MIB, .total_size = 2 * MIB, .device = 1}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_FREE, A + 32 * MIB, 20 * MIB, 5},
        {TN_TRACE_ALLOC, A, 512, 3},
        {TN_TRACE_SEGMENT_ALLOC, A, 2 * MIB, 3},
    };
    struct trace_model made;
    struct tn_segment_walk walk;

    (void)state;
    trace_open(&made, rows, 3, segments, 2);
    const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

    assert_int_equal(tn_source_reserved_before(&source, 0), 20 * MIB);
    assert_true(tn_segment_walk_init(&walk, &source));
    ranges_are(&walk, (const uint64_t[]){0, 2}, 1);
    assert_int_equal(tn_segment_walk_find(&walk, A + MIB)->pool.id[1], 1);
    assert_null(tn_segment_walk_find(&walk, A + 2 * MIB));
    assert_true(tn_segment_walk_to(&walk, 1));
    ranges_are(&walk, NULL, 0);
    assert_true(tn_segment_walk_to(&walk, TN_NEVER));
    ranges_are(&walk, (const uint64_t[]){32, 52}, 1);
    assert_int_equal(tn_segment_walk_first(&walk)->given_back, 0);
    assert_true(tn_segment_walk_first(&walk)->is_large);
    assert_false(tn_segment_walk_first(&walk)->has_pool);
    tn_segment_walk_fini(&walk);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Pages are mapped at once and unmapped in pieces; a range that is told of later cuts others. */
static void ranges_are_cut(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 60 * MIB, .is_expandable = true}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_UNMAP, A + 20 * MIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A + 20 * MIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A + 50 * MIB, 20 * MIB, 0}, /* contradicts the snapshot */
    };
    struct trace_model made;
    struct tn_segment_walk walk;

    (void)state;
    trace_open(&made, rows, 3, segments, 1);
    const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

    assert_true(tn_segment_walk_init(&walk, &source));
    assert_true(tn_segment_walk_to(&walk, 1));
    ranges_are(&walk, (const uint64_t[]){0, 50, 50, 70}, 2);
    assert_true(tn_segment_walk_to(&walk, 0));
    ranges_are(&walk, (const uint64_t[]){0, 20, 40, 50, 50, 70}, 3);
    assert_true(tn_segment_walk_to(&walk, TN_NEVER));
    ranges_are(&walk, (const uint64_t[]){0, 20, 20, 40, 40, 50, 50, 70}, 4);
    tn_segment_walk_fini(&walk);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_those_of_the_moment),
        cmocka_unit_test(ranges_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
