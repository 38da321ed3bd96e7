/* SPDX-License-Identifier: MIT */
/*
 * Live blocks by address, for traces without frees: a block allocated over others implies that
 * those were freed. Owns: its records, of a fixed number; they do not overlap. Cost: O(log n).
 */
#ifndef TN_REPLAY_SPAN_H
#define TN_REPLAY_SPAN_H

#include "base/attr.h"
#include "base/tree.h"

struct tn_span {
    struct tn_tree_node node;
    uint64_t address;
    uint64_t size; /* bytes, not 0 */
    uint32_t slot;
};

struct tn_spans {
    struct tn_tree tree;
    struct tn_span *records;
    size_t capacity;
    size_t used;
};

/* Room for `capacity` additions; false when host memory is missing. */
bool tn_spans_init(struct tn_spans *spans, size_t capacity) TN_MUST_CHECK;
void tn_spans_fini(struct tn_spans *spans);

/* Removes a span that overlaps [address, address + size); NULL if there is none. Borrowed until
 * tn_spans_fini. */
const struct tn_span *tn_spans_take(struct tn_spans *spans, uint64_t address, uint64_t size);

/* Must not overlap another span, and there must be room. A size of 0 counts as 1. */
void tn_spans_add(struct tn_spans *spans, uint64_t address, uint64_t size, uint32_t slot);

#endif
