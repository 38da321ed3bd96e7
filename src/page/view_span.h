/* SPDX-License-Identifier: MIT */
/*
 * Reserved memory over time: ranges of addresses, each from the entry that reserved it to the one
 * that gave it back. Spans never overlap in both; an expandable segment that was mapped in pieces
 * has a span for each.
 *
 * Cost: O(log n) per entry that changes segments.
 */
#ifndef TN_PAGE_VIEW_SPAN_H
#define TN_PAGE_VIEW_SPAN_H

#include "analysis/trace_source.h"
#include "base/vec.h"

struct tn_view_span {
    uint64_t address;
    uint64_t size;
    uint64_t start; /* entry, TN_NEVER: before the first */
    uint64_t end;   /* entry, TN_NEVER: never */
    struct tn_pool_id pool;
    uint64_t stream;
    uint32_t stack;
    bool is_large;
    bool is_expandable;
};

/* Those of the entries from number `first` on: struct tn_view_span, by start, then address. False
 * when host memory is missing; then there is nothing to release. */
bool tn_view_spans_collect(struct tn_vec *spans_out, const struct tn_trace_source *source,
                           uint64_t first) TN_MUST_CHECK;

#endif
