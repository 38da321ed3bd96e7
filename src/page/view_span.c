/* SPDX-License-Identifier: MIT */
#include "page/view_span.h"

#include "analysis/segment_walk.h"
#include "base/order.h"

/* A part of a range whose beginning has been found. */
static bool span_add(struct tn_vec *spans, const struct tn_segment_range *range, uint64_t start,
                     uint64_t end, uint64_t entry)
{
    const struct tn_view_span span = {.address = start,
                                      .size = end - start,
                                      .start = entry,
                                      .end = range->given_back,
                                      .pool = range->pool,
                                      .stream = range->stream,
                                      .stack = range->stack,
                                      .is_large = range->is_large,
                                      .is_expandable = range->is_expandable};

    return tn_vec_append(spans, &span, 1);
}

struct collecting {
    struct tn_vec *spans;
    struct tn_segment_walk walk;
};

static bool span_begins(void *context, const struct tn_segment_range *range, uint64_t start,
                        uint64_t end)
{
    const struct collecting *collecting = context;

    return span_add(collecting->spans, range, start, end, collecting->walk.next);
}

static bool spans_collect(struct collecting *collecting, uint64_t first)
{
    collecting->walk.reserved = span_begins;
    collecting->walk.context = collecting;
    if (!tn_segment_walk_to(&collecting->walk, first > 0 ? first - 1 : TN_NEVER)) {
        return false;
    }
    for (const struct tn_segment_range *range = tn_segment_walk_first(&collecting->walk); range;
         range = tn_segment_walk_next(range)) {
        if (!span_add(collecting->spans, range, range->start, range->end, TN_NEVER)) {
            return false;
        }
    }
    return true;
}

static int span_compare(const void *left, const void *right)
{
    const struct tn_view_span *a = left;
    const struct tn_view_span *b = right;
    /* Those from before the first entry come first; of one beginning each has its own address. */
    const int by_start = tn_order(a->start + 1, b->start + 1);

    return by_start ? by_start : tn_order(a->address, b->address);
}

bool tn_view_spans_collect(struct tn_vec *spans_out, const struct tn_trace_source *source,
                           uint64_t first)
{
    struct collecting collecting = {.spans = spans_out};

    tn_vec_init(spans_out, sizeof(struct tn_view_span));
    if (!tn_segment_walk_init(&collecting.walk, source)) {
        return false;
    }
    const bool good = spans_collect(&collecting, first);

    tn_segment_walk_fini(&collecting.walk);
    if (!good) {
        tn_vec_fini(spans_out);
        return false;
    }
    tn_vec_sort(spans_out, span_compare);
    return true;
}
