/* SPDX-License-Identifier: MIT */
/*
 * What lies where, for traces in which frees are missing: a block that is put where others lie says
 * that those were freed. Owns: its records, as many as were asked for; none overlaps another.
 * Cost: O(log n) each.
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

/* Takes one that overlaps [address, address + size) out; NULL when there is none. Borrowed until
 * the spans go. */
const struct tn_span *tn_spans_take(struct tn_spans *spans, uint64_t address, uint64_t size);

/* Nothing overlaps it, and there is room. A size of 0 counts as 1. */
void tn_spans_add(struct tn_spans *spans, uint64_t address, uint64_t size, uint32_t slot);

#endif
