/* SPDX-License-Identifier: MIT */
#include "replay/span.h"

#include "base/assertion.h"
#include "base/host_mem.h"

static struct tn_span *span_of(const struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct tn_span, node) : NULL;
}

static int span_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(span_of(a)->address, span_of(b)->address);
}

bool tn_spans_init(struct tn_spans *spans, size_t capacity)
{
    *spans = (struct tn_spans){.capacity = capacity};
    tn_tree_init(&spans->tree, span_compare, NULL);
    spans->records = tn_host_alloc(capacity * sizeof *spans->records);
    return spans->records || capacity == 0;
}

void tn_spans_fini(struct tn_spans *spans)
{
    tn_host_free(spans->records, spans->capacity * sizeof *spans->records);
}

const struct tn_span *tn_spans_take(struct tn_spans *spans, uint64_t address, uint64_t size)
{
    const struct tn_span key = {.address = address};
    struct tn_span *found = span_of(tn_tree_find_at_most(&spans->tree, &key.node));

    if (!found || address - found->address >= found->size) { /* it ends before the address */
        found = span_of(tn_tree_find_at_least(&spans->tree, &key.node));
        if (!found || found->address - address >= (size ? size : 1)) {
            return NULL;
        }
    }
    tn_tree_remove(&spans->tree, &found->node);
    return found;
}

void tn_spans_add(struct tn_spans *spans, uint64_t address, uint64_t size, uint32_t slot)
{
    tn_assert(spans->records && spans->used < spans->capacity);
    struct tn_span *span = &spans->records[spans->used++];

    *span = (struct tn_span){.address = address, .size = size ? size : 1, .slot = slot};
    tn_tree_insert(&spans->tree, &span->node);
}
