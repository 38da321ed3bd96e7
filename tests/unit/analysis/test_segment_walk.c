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

            assert_int_equal(range->is_large, stream != 7); /* by its size, if by nothing else */
            assert_int_equal(range->has_pool, stream == 7);
            assert_int_equal(range->pool.id[1], stream == 7 ? 5 : 0);
        }
        tn_segment_walk_fini(&walk);
        trace_close(&made);
    }
}

/* Pages at MiB 20 to 40 that were given back, beside one segment or apart from it: whether they are
 * parts of it. */
static bool pages_are_of(uint64_t start, uint64_t end, bool is_expandable)
{
    static const struct trace_row row = {TN_TRACE_SEGMENT_UNMAP, A + 20 * MIB, 20 * MIB, 0};
    const struct tn_model_segment segment = {.address = A + start * MIB,
                                             .total_size = (end - start) * MIB,
                                             .pool = {{0, 5}},
                                             .is_expandable = is_expandable};
    struct trace_model made;
    struct tn_segment_walk walk;

    trace_open(&made, &row, 1, &segment, 1);
    const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

    assert_true(tn_segment_walk_init(&walk, &source));
    assert_true(tn_segment_walk_to(&walk, TN_NEVER));
    const struct tn_segment_range *range = tn_segment_walk_find(&walk, A + 20 * MIB);
    const bool is = range->has_pool;

    assert_int_equal(range->start, A + 20 * MIB);
    assert_int_equal(range->end, A + 40 * MIB);
    assert_int_equal(range->pool.id[1], is ? 5 : 0);
    assert_int_equal(range->is_large, !is);
    tn_segment_walk_fini(&walk);
    trace_close(&made);
    return is;
}

static void pages_belong_to_what_they_touch(void **state)
{
    (void)state;
    assert_true(pages_are_of(0, 20, true));
    assert_true(pages_are_of(40, 60, true));
    assert_false(pages_are_of(0, 20, false)); /* no part of it: it was allocated as a whole */
    assert_false(pages_are_of(40, 60, false));
    assert_false(pages_are_of(0, 18, true));
    assert_false(pages_are_of(42, 60, true));
    assert_false(pages_are_of(30, 60, true)); /* contradicts the snapshot */
}

/* Newer files say the pool of pages; nothing beside them changes that. */
static void pages_may_say_their_pool(void **state)
{
    static const struct tn_trace_extra extra = {.has_pool = true, .pool = {{0, 9}}};

    (void)state;
    for (int is_final = 0; is_final < 2; is_final++) { /* what is beside them has a pool, or none */
        const struct trace_row rows[] = {
            {TN_TRACE_SEGMENT_UNMAP, A, 20 * MIB, 0},
            {is_final ? TN_TRACE_OOM : TN_TRACE_SEGMENT_UNMAP, A + 20 * MIB, 20 * MIB, 0}};
        const struct tn_model_segment segment = {.address = A + 20 * MIB,
                                                 .total_size = 20 * MIB,
                                                 .pool = {{0, 5}},
                                                 .is_expandable = true};
        struct trace_model made;
        struct tn_segment_walk walk;
        uint32_t number;

        trace_open(&made, rows, 2, &segment, (size_t)is_final);
        assert_int_equal(tn_model_add_extra(&made.model, &extra, &number), TARN_OK);
        struct tn_trace_entry *first = tn_chunked_vec_at(&made.model.entries, 0);

        first->extra = number & 0x7ffffff;
        const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

        assert_true(tn_segment_walk_init(&walk, &source));
        assert_true(tn_segment_walk_to(&walk, TN_NEVER));
        const struct tn_segment_range *range = tn_segment_walk_first(&walk);

        assert_int_equal(range->start, A);
        assert_true(range->has_pool);
        assert_int_equal(range->pool.id[1], 9);
        range = tn_segment_walk_next(range);
        assert_int_equal(range->has_pool, is_final);
        assert_int_equal(range->pool.id[1], is_final ? 5 : 0);
        tn_segment_walk_fini(&walk);
        trace_close(&made);
    }
}

/* Where nothing is beside them, pages are of the large pool by how many bytes were given back:
 * whole large pages or, where both pools have small ones, more than one of these. */
static void pages_are_large_by_their_size(void **state)
{
    static const struct {
        uint64_t size;
        bool is_large[2]; /* under policy:compact as well */
    } cases[] = {{2 * MIB, {false, false}},
                 {4 * MIB, {false, true}},
                 {20 * MIB, {true, true}},
                 {22 * MIB, {false, true}}};

    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const bool is_compact = i % 2;
        const struct trace_row row = {TN_TRACE_SEGMENT_UNMAP, A, cases[i / 2].size, 0};
        struct trace_model made;
        struct tn_segment_walk walk;

        trace_open(&made, &row, 1, NULL, 0);
        made.model.settings.present = is_compact;
        if (is_compact) {
            assert_int_equal(
                tn_model_add_string(&made.model, "policy:compact", 14, &made.model.settings.conf),
                TARN_OK);
        }
        const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

        assert_true(tn_segment_walk_init(&walk, &source));
        assert_true(tn_segment_walk_to(&walk, TN_NEVER));
        assert_int_equal(tn_segment_walk_first(&walk)->is_large, cases[i / 2].is_large[is_compact]);
        tn_segment_walk_fini(&walk);
        trace_close(&made);
    }
}

struct reserved {
    uint64_t bytes;
    bool goes_on;
};

static bool reserved_count(void *context, const struct tn_segment_range *range, uint64_t start,
                           uint64_t end)
{
    struct reserved *reserved = context;

    (void)range;
    reserved->bytes += end - start;
    return reserved->goes_on;
}

/* What was reserved is reported as the walk comes to it, also what makes room for a range that was
 * given back; who is told may stop the walk. */
static void the_walk_may_be_stopped(void **state)
{
    static const struct tn_model_segment segment = {.address = A, .total_size = 60 * MIB};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_FREE, A + 50 * MIB, 20 * MIB, 0}, /* contradicts the snapshot */
        {TN_TRACE_SEGMENT_ALLOC, A + 20 * MIB, 20 * MIB, 0},
    };

    (void)state;
    for (size_t number = 0; number < 2; number++) {
        for (int goes_on = 0; goes_on < 2; goes_on++) {
            struct reserved reserved = {.goes_on = goes_on};
            struct trace_model made;
            struct tn_segment_walk walk;

            trace_open(&made, rows + number, 1, &segment, 1);
            const struct tn_trace_source source = tn_source_of_device(&made.model, 0);

            assert_true(tn_segment_walk_init(&walk, &source));
            walk.reserved = reserved_count;
            walk.context = &reserved;
            assert_int_equal(tn_segment_walk_to(&walk, TN_NEVER), goes_on);
            assert_int_equal(reserved.bytes, number == 0 ? 10 * MIB : 20 * MIB);
            tn_segment_walk_fini(&walk);
            trace_close(&made);
        }
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
        cmocka_unit_test(pages_belong_to_what_they_touch),
        cmocka_unit_test(pages_may_say_their_pool),
        cmocka_unit_test(pages_are_large_by_their_size),
        cmocka_unit_test(the_walk_may_be_stopped),
        cmocka_unit_test(a_policy_is_a_whole_setting),
        cmocka_unit_test(changes_lead_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
