/* SPDX-License-Identifier: MIT */
#include "support/trace.h"

#include "analysis/page_policy.h"
#include "analysis/segment_walk.h"
#include "analysis/timeline.h"
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

/* Pages that were given back are of the segment beside them, if that is of their stream. */
static void pages_belong_to_their_stream(void **state)
{
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_UNMAP, A, 20 * MIB, 7},
        {TN_TRACE_SEGMENT_UNMAP, A + 60 * MIB, 20 * MIB, 7},
    };

    (void)state;
    for (uint64_t stream = 7; stream <= 8; stream++) {
        const struct tn_model_segment segment = {.address = A + 20 * MIB,
                                                 .total_size = 40 * MIB,
                                                 .stream = stream,
                                                 .pool = {{0, 5}},
                                                 .is_expandable = true};
        struct trace_model made;
        struct tn_segment_walk walk;

        trace_open(&made, rows, 2, &segment, 1);
        const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

        assert_true(tn_segment_walk_init(&walk, &source));
        assert_true(tn_segment_walk_to(&walk, TN_NEVER));
        ranges_are(&walk, (const uint64_t[]){0, 20, 20, 60, 60, 80}, 3);
        for (uint64_t at = 0; at <= 60; at += 60) {
            const struct tn_segment_range *range = tn_segment_walk_find(&walk, A + at * MIB);

            assert_int_equal(range->has_pool, stream == 7);
            assert_int_equal(range->pool.id[1], stream == 7 ? 5 : 0);
        }
        tn_segment_walk_fini(&walk);
        trace_close(&made);
    }
}

/* The policy is a word of its own among the settings. */
static void a_policy_is_a_whole_setting(void **state)
{
    static const struct {
        const char *conf;
        bool is_compact;
    } cases[] = {
        {"policy:compact", true},
        {"a:b,policy:compact", true},
        {"policy:compact,a:b", true},
        {"my_policy:compact", false},
        {"policy:compactly", false},
        {"my_policy:compact,policy:compact", true},
        {"", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tn_model model;

        assert_int_equal(tn_model_init(&model, 0), TARN_OK);
        assert_false(tn_model_is_compact(&model)); /* no settings */
        model.settings.present = true;
        assert_int_equal(
            tn_model_add_string(&model, cases[i].conf, strlen(cases[i].conf), &model.settings.conf),
            TARN_OK);
        assert_int_equal(tn_model_is_compact(&model), cases[i].is_compact);
        assert_int_equal(tn_model_page(&model, true), cases[i].is_compact ? 2 * MIB : 20 * MIB);
        assert_int_equal(tn_model_page(&model, false), 2 * MIB);
        tn_model_fini(&model);
    }
}

static void ranges_are_equal(const struct tn_segment_walk *a, const struct tn_segment_walk *b)
{
    const struct tn_segment_range *left = tn_segment_walk_first(a);
    const struct tn_segment_range *right = tn_segment_walk_first(b);

    for (; left && right; left = tn_segment_walk_next(left), right = tn_segment_walk_next(right)) {
        assert_int_equal(left->start, right->start);
        assert_int_equal(left->end, right->end);
        assert_int_equal(left->given_back, right->given_back);
    }
    assert_true(!left && !right);
}

/* A timeline knows which entries change memory; skipping the others changes nothing. */
static void changes_lead_to_the_same(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 60 * MIB, .is_expandable = true}};
    static const struct trace_row rows[] = {
        {TN_TRACE_ALLOC, A, 512, 0},
        {TN_TRACE_SEGMENT_UNMAP, A + 20 * MIB, 20 * MIB, 0},
        {TN_TRACE_FREE_REQUESTED, A, 512, 0},
        {TN_TRACE_FREE_COMPLETED, A, 512, 0},
        {TN_TRACE_SEGMENT_MAP, A + 20 * MIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + 80 * MIB, 0, 0}, /* of nothing */
        {TN_TRACE_ALLOC, A, 512, 0},
    };
    struct trace_model made;
    struct tn_timeline timeline;

    (void)state;
    trace_open(&made, rows, 7, segments, 1);
    const struct tn_trace_source plain = tn_source_of_device(&made.model, 0);

    assert_true(tn_timeline_init(&timeline, &made.model, 0));
    const struct tn_trace_source knowing = tn_timeline_source(&timeline);

    assert_null(plain.memory);
    assert_int_equal(knowing.memory->count, 3);
    for (uint64_t first = 0; first <= 7; first++) {
        struct tn_segment_walk walks[2];

        assert_int_equal(tn_source_reserved_before(&plain, first),
                         tn_source_reserved_before(&knowing, first));
        assert_true(tn_segment_walk_init(&walks[0], &plain));
        assert_true(tn_segment_walk_init(&walks[1], &knowing));
        for (int i = 0; i < 2; i++) {
            assert_true(tn_segment_walk_to(&walks[i], first == 0 ? TN_NEVER : first - 1));
            assert_int_equal(walks[i].next, first);
        }
        ranges_are_equal(&walks[0], &walks[1]);
        tn_segment_walk_fini(&walks[1]);
        tn_segment_walk_fini(&walks[0]);
    }
    tn_timeline_fini(&timeline);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_those_of_the_moment),
        cmocka_unit_test(ranges_are_cut),
        cmocka_unit_test(pages_belong_to_their_stream),
        cmocka_unit_test(a_policy_is_a_whole_setting),
        cmocka_unit_test(changes_lead_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
