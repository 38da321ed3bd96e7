/* SPDX-License-Identifier: MIT */
#include "support/trace.h"

#include "page/view_span.h"
#include "tarn/host.h"

static struct tn_trace_source source_of(const struct trace_model *made)
{
    return (struct tn_trace_source){.model = &made->model,
                                    .trace = &made->traces[0],
                                    .segments = made->model.segments,
                                    .segment_count = made->model.segment_count};
}

static void check_span(const struct tn_vec *spans, size_t i, uint64_t address, uint64_t size,
                       uint64_t start, uint64_t end)
{
    const struct tn_view_span *span = (const struct tn_view_span *)spans->items + i;

    assert_int_equal(span->address, address);
    assert_int_equal(span->size, size);
    assert_int_equal(span->start, start);
    assert_int_equal(span->end, end);
}

/* One segment from before, one that comes and goes, one that stays. */
static void segments_come_and_go(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 2 * MIB, .stream = 3},
        {.address = A + 64 * MIB, .total_size = 20 * MIB, .is_large = true}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A + 32 * MIB, 4 * MIB, 5},
        {TN_TRACE_SEGMENT_ALLOC, A + 64 * MIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A + 32 * MIB, 4 * MIB, 5},
    };
    struct trace_model made;
    struct tn_vec spans;

    (void)state;
    trace_open(&made, rows, 3, segments, 2);
    const struct tn_trace_source source = source_of(&made);

    assert_true(tn_view_spans_collect(&spans, &source, 0));
    assert_int_equal(spans.count, 3);
    assert_int_equal(tn_source_reserved_before(&source, 0), 2 * MIB);
    check_span(&spans, 0, A, 2 * MIB, TN_NEVER, TN_NEVER);
    check_span(&spans, 1, A + 32 * MIB, 4 * MIB, 0, 2);
    check_span(&spans, 2, A + 64 * MIB, 20 * MIB, 1, TN_NEVER);
    tn_vec_fini(&spans);

    /* Begun later, what was reserved by then is from before. */
    assert_true(tn_view_spans_collect(&spans, &source, 2));
    assert_int_equal(tn_source_reserved_before(&source, 2), 26 * MIB);
    check_span(&spans, 1, A + 32 * MIB, 4 * MIB, TN_NEVER, 2);
    tn_vec_fini(&spans);
    trace_close(&made);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* However they end: those from before first, by address, then by the entry that begins them. */
static void spans_come_by_beginning_and_address(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A + 32 * MIB, .total_size = 2 * MIB},
        {.address = A + 128 * MIB, .total_size = 2 * MIB}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_ALLOC, A + 160 * MIB, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A + 64 * MIB, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + 96 * MIB, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A + 96 * MIB, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A, 2 * MIB, 0},
        {TN_TRACE_SEGMENT_FREE, A + 160 * MIB, 2 * MIB, 0},
    };
    struct trace_model made;
    struct tn_vec spans;

    (void)state;
    trace_open(&made, rows, 6, segments, 2);
    const struct tn_trace_source source = source_of(&made);

    assert_true(tn_view_spans_collect(&spans, &source, 0));
    assert_int_equal(spans.count, 6);
    check_span(&spans, 0, A, 2 * MIB, TN_NEVER, 4);
    check_span(&spans, 1, A + 32 * MIB, 2 * MIB, TN_NEVER, TN_NEVER);
    check_span(&spans, 2, A + 64 * MIB, 2 * MIB, TN_NEVER, 1);
    check_span(&spans, 3, A + 128 * MIB, 2 * MIB, TN_NEVER, TN_NEVER);
    check_span(&spans, 4, A + 160 * MIB, 2 * MIB, 0, 5);
    check_span(&spans, 5, A + 96 * MIB, 2 * MIB, 2, 3);
    tn_vec_fini(&spans);
    trace_close(&made);
}

/* A expandable segment: mapped in pieces, and one piece of the middle given back. */
static void growing_segments_are_cut_where_they_were_mapped(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 20 * MIB, .is_expandable = true, .is_large = true},
        {.address = A + 40 * MIB, .total_size = 20 * MIB, .is_expandable = true, .is_large = true}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_MAP, A, 40 * MIB, 0},
        {TN_TRACE_SEGMENT_MAP, A + 40 * MIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_UNMAP, A + 20 * MIB, 20 * MIB, 0},
    };
    struct trace_model made;
    struct tn_vec spans;

    (void)state;
    trace_open(&made, rows, 3, segments, 2);
    const struct tn_trace_source source = source_of(&made);

    assert_true(tn_view_spans_collect(&spans, &source, 0));
    assert_int_equal(spans.count, 3);
    assert_int_equal(tn_source_reserved_before(&source, 0), 0);
    check_span(&spans, 0, A, 20 * MIB, 0, TN_NEVER);
    check_span(&spans, 1, A + 20 * MIB, 20 * MIB, 0, 2);
    check_span(&spans, 2, A + 40 * MIB, 20 * MIB, 1, TN_NEVER);
    assert_true(((struct tn_view_span *)spans.items)[1].is_expandable);
    tn_vec_fini(&spans);
    trace_close(&made);
}

/* No two spans that are reserved at a moment overlap. */
static void check_moment(const struct tn_vec *spans, uint64_t at)
{
    const struct tn_view_span *all = spans->items;

    for (size_t i = 0; i < spans->count; i++) {
        for (size_t k = 0; k < i; k++) {
            const bool both = all[i].start + 1 <= at && all[k].start + 1 <= at &&
                              all[i].end >= at && all[k].end >= at;

            assert_false(both && all[i].address < all[k].address + all[k].size &&
                         all[k].address < all[i].address + all[i].size);
        }
    }
}

/* Contradictions: given back though the snapshot has it, mapped though nothing is there, the end of
 * the address space. Nothing overlaps in both address and time. */
static void contradictions_do_not_overlap(void **state)
{
    static const struct tn_model_segment segments[] = {
        {.address = A, .total_size = 20 * MIB},
        {.address = A + 10 * MIB, .total_size = 20 * MIB},
        {.address = UINT64_MAX - 5, .total_size = MIB}};
    static const struct trace_row rows[] = {
        {TN_TRACE_SEGMENT_FREE, A + 5 * MIB, 20 * MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A + GIB, MIB, 0},
        {TN_TRACE_SEGMENT_ALLOC, A, UINT64_MAX, 0},
    };
    struct trace_model made;
    struct tn_vec spans;

    (void)state;
    trace_open(&made, rows, 3, segments, 3);
    const struct tn_trace_source source = source_of(&made);

    assert_true(tn_view_spans_collect(&spans, &source, 0));
    for (uint64_t at = 0; at <= 3; at++) { /* at - 1 is the entry that was last */
        check_moment(&spans, at);
    }
    tn_vec_fini(&spans);
    trace_close(&made);
}

static void failures_leave_nothing(void **state)
{
    static const struct tn_model_segment segments[] = {{.address = A, .total_size = 20 * MIB}};
    static const struct trace_row rows[] = {{TN_TRACE_SEGMENT_ALLOC, A, 10 * MIB, 0},
                                            {TN_TRACE_SEGMENT_FREE, A + GIB, MIB, 0}};
    struct trace_model made;
    struct tn_vec spans;
    bool done = false;

    (void)state;
    trace_open(&made, rows, 2, segments, 1);
    const struct tn_trace_source source = source_of(&made);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; !done; n++) {
        tarn_host_fail_nth(n);
        done = tn_view_spans_collect(&spans, &source, 0);
        tarn_host_fail_nth(0);
        if (done) {
            assert_in_range(n, 2, 20);
            tn_vec_fini(&spans);
        }
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    trace_close(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_come_and_go),
        cmocka_unit_test(spans_come_by_beginning_and_address),
        cmocka_unit_test(growing_segments_are_cut_where_they_were_mapped),
        cmocka_unit_test(contradictions_do_not_overlap),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
