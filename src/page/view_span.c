/* SPDX-License-Identifier: MIT */
#include "page/view_span.h"

#include "base/chunked_vec.h"
#include "base/tree.h"

#include <stdlib.h>

/* A range that is reserved at the moment that has been reached, [span.address, end). */
struct range {
    struct tn_tree_node node;
    struct tn_view_span span; /* its start and size are not known yet */
    uint64_t end;
};

struct ranges {
    struct tn_budget budget;     /* without a limit */
    struct tn_chunked_vec store; /* removed ones stay */
    struct tn_tree tree;
    struct tn_vec *done; /* struct tn_view_span: begun */
    bool is_end; /* the segments of the snapshot are being added: what makes room has had no time */
};

static struct range *range_of(const struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct range, node) : NULL;
}

static int range_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(range_of(a)->span.address, range_of(b)->span.address);
}

static uint64_t end_of(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

static bool range_insert(struct ranges *ranges, struct range range)
{
    struct range *added = tn_chunked_vec_push(&ranges->store);

    if (!added) {
        return false;
    }
    *added = range;
    tn_tree_insert(&ranges->tree, &added->node);
    return true;
}

/* A span whose beginning has been found. */
static bool span_add(struct ranges *ranges, const struct range *range, uint64_t start, uint64_t end,
                     uint64_t entry)
{
    struct tn_view_span *span = ranges->is_end ? NULL : tn_vec_push(ranges->done);

    if (span) {
        *span = range->span;
        span->address = start;
        span->size = end - start;
        span->start = entry;
    }
    return span || ranges->is_end;
}

/* What of [start, end) is reserved began at `entry`; ranges that reach beyond keep their ends. */
static bool ranges_begin(struct ranges *ranges, uint64_t start, uint64_t end, uint64_t entry)
{
    const struct range key = {.span.address = start};
    struct range *at = range_of(tn_tree_find_at_most(&ranges->tree, &key.node));

    if (!at || at->end <= start) {
        at = range_of(tn_tree_find_at_least(&ranges->tree, &key.node));
    }
    while (at && at->span.address < end) {
        struct range *next = range_of(tn_tree_next(&at->node));
        struct range rest = *at;
        const uint64_t from = at->span.address > start ? at->span.address : start;
        const uint64_t to = at->end < end ? at->end : end;

        if (!span_add(ranges, at, from, to, entry)) {
            return false;
        }
        if (at->span.address < start) {
            at->end = start;
        } else {
            tn_tree_remove(&ranges->tree, &at->node);
        }
        if (rest.end > end) {
            rest.span.address = end;
            return range_insert(ranges, rest);
        }
        at = next;
    }
    return true;
}

/* Reserved up to `span->end`. What overlaps is a contradiction of the file; the later word of the
 * walk stands, and the earlier one gets no time. */
static bool range_add(struct ranges *ranges, const struct tn_view_span *span, uint64_t size)
{
    const uint64_t end = end_of(span->address, size);
    const uint64_t now = span->end;

    return span->address == end ||
           (ranges_begin(ranges, span->address, end, now) &&
            range_insert(ranges, (struct range){.span = *span, .end = end}));
}

static bool finals_add(struct ranges *ranges, const struct tn_view_source *source)
{
    ranges->is_end = true;
    for (size_t i = 0; i < source->segment_count; i++) {
        const struct tn_model_segment *segment = &source->segments[i];
        const struct tn_view_span span = {.address = segment->address,
                                          .end = TN_VIEW_SPAN_OPEN,
                                          .pool = segment->pool,
                                          .stream = segment->stream,
                                          .stack = segment->stack,
                                          .is_large = segment->is_large,
                                          .is_expandable = segment->is_expandable};

        if (tn_source_has(source, i) && !range_add(ranges, &span, segment->total_size)) {
            return false;
        }
    }
    ranges->is_end = false;
    return true;
}

static bool entry_undo(struct ranges *ranges, const struct tn_view_source *source, uint64_t number)
{
    const struct tn_trace_entry *entry = tn_trace_at(source->model, source->trace, number);
    const bool is_expandable = entry->action == TN_TRACE_SEGMENT_UNMAP;

    if (entry->action == TN_TRACE_SEGMENT_ALLOC || entry->action == TN_TRACE_SEGMENT_MAP) {
        return ranges_begin(ranges, entry->address, end_of(entry->address, entry->size), number);
    }
    if (entry->action == TN_TRACE_SEGMENT_FREE || is_expandable) {
        const struct tn_view_span span = {.address = entry->address,
                                          .end = number,
                                          .pool = tn_model_extra(source->model, entry->extra)->pool,
                                          .stream = entry->stream,
                                          .stack = entry->stack,
                                          .is_large =
                                              tn_source_is_large(entry->size, is_expandable),
                                          .is_expandable = is_expandable};

        return range_add(ranges, &span, entry->size);
    }
    return true;
}

static bool walk_back(struct ranges *ranges, const struct tn_view_source *source, uint64_t first)
{
    for (uint64_t i = source->trace->count; i > first; i--) {
        if (!entry_undo(ranges, source, i - 1)) {
            return false;
        }
    }
    for (struct range *range = range_of(tn_tree_first(&ranges->tree)); range;
         range = range_of(tn_tree_next(&range->node))) {
        if (!span_add(ranges, range, range->span.address, range->end, TN_VIEW_SPAN_OPEN)) {
            return false;
        }
    }
    return true;
}

static int span_compare(const void *left, const void *right)
{
    const struct tn_view_span *a = left;
    const struct tn_view_span *b = right;
    const uint64_t start_a = a->start + 1; /* those from before the first entry come first */
    const uint64_t start_b = b->start + 1;

    if (start_a != start_b) {
        return start_a < start_b ? -1 : 1;
    }
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return a->end < b->end ? -1 : a->end > b->end;
}

/* By the sizes in the trace, which is what the reserved bytes of reports are. More given back than
 * the file has counts as nothing. */
static uint64_t reserved_before(const struct tn_view_source *source, uint64_t first)
{
    uint64_t reserved = 0;

    for (size_t i = 0; i < source->segment_count; i++) {
        reserved += tn_source_has(source, i) ? source->segments[i].total_size : 0;
    }
    for (uint64_t i = source->trace->count; i > first; i--) {
        reserved -= tn_source_reserves(tn_trace_at(source->model, source->trace, i - 1));
        reserved = (int64_t)reserved < 0 ? 0 : reserved;
    }
    return reserved;
}

bool tn_view_spans_init(struct tn_view_spans *spans, const struct tn_view_source *source,
                        uint64_t first)
{
    struct ranges ranges = {.done = &spans->spans};

    tn_vec_init(&spans->spans, sizeof(struct tn_view_span));
    tn_chunked_vec_init(&ranges.store, &ranges.budget, sizeof(struct range));
    tn_tree_init(&ranges.tree, range_compare, NULL);
    const bool good = finals_add(&ranges, source) && walk_back(&ranges, source, first);

    tn_chunked_vec_fini(&ranges.store);
    if (!good) {
        tn_view_spans_fini(spans);
        return false;
    }
    if (spans->spans.count > 0) {
        qsort(spans->spans.items, spans->spans.count, sizeof(struct tn_view_span), span_compare);
    }
    spans->reserved = reserved_before(source, first);
    return true;
}

void tn_view_spans_fini(struct tn_view_spans *spans)
{
    tn_vec_fini(&spans->spans);
}
