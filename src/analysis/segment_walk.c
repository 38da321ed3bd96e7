/* SPDX-License-Identifier: MIT */
#include "analysis/segment_walk.h"

#include "analysis/page_policy.h"

#define SMALL_SEGMENT ((uint64_t)2 << 20)

static struct tn_segment_range *range_of(const struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct tn_segment_range, node) : NULL;
}

static int range_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(range_of(a)->start, range_of(b)->start);
}

static bool range_insert(struct tn_segment_walk *walk, const struct tn_segment_range *range)
{
    struct tn_segment_range *added = tn_chunked_vec_push(&walk->ranges);

    if (!added) {
        return false;
    }
    *added = *range;
    tn_tree_insert(&walk->tree, &added->node);
    return true;
}

/* Says of the part of a range in [start, end) that it begins here. */
static bool range_report(const struct tn_segment_walk *walk, const struct tn_segment_range *range,
                         uint64_t start, uint64_t end)
{
    const uint64_t from = range->start > start ? range->start : start;
    const uint64_t to = range->end < end ? range->end : end;

    return !walk->reserved || walk->reserved(walk->context, range, from, to);
}

/* The first range that ends behind an address; NULL: none. */
static struct tn_segment_range *range_from(const struct tn_segment_walk *walk, uint64_t address)
{
    const struct tn_segment_range key = {.start = address};
    struct tn_segment_range *at = range_of(tn_tree_find_at_most(&walk->tree, &key.node));

    return at && at->end > address ? at : range_of(tn_tree_find_at_least(&walk->tree, &key.node));
}

/* Takes [start, end) out of whatever has it; a range that reaches beyond keeps its ends. */
static bool ranges_remove(struct tn_segment_walk *walk, uint64_t start, uint64_t end)
{
    struct tn_segment_range *at = range_from(walk, start);

    while (at && at->start < end) {
        struct tn_segment_range *next = range_of(tn_tree_next(&at->node));
        struct tn_segment_range rest = *at;

        if (!range_report(walk, at, start, end)) {
            return false;
        }
        if (at->start < start) {
            at->end = start;
        } else {
            tn_tree_remove(&walk->tree, &at->node);
        }
        if (rest.end > end) {
            rest.start = end;
            return range_insert(walk, &rest);
        }
        at = next;
    }
    return true;
}

static bool range_add(struct tn_segment_walk *walk, const struct tn_segment_range *range)
{
    if (range->start >= range->end) {
        return true;
    }
    const struct tn_segment_range *other = range_from(walk, range->start);

    walk->overlaps += other && other->start < range->end;
    return ranges_remove(walk, range->start, range->end) && range_insert(walk, range);
}

static bool finals_add(struct tn_segment_walk *walk)
{
    for (size_t i = 0; i < walk->source.segment_count; i++) {
        const struct tn_model_segment *segment = &walk->source.segments[i];
        const struct tn_segment_range range = {
            .start = segment->address,
            .end = tn_range_end(segment->address, segment->total_size),
            .segment = segment->address,
            .given_back = TN_NEVER,
            .pool = segment->pool,
            .stream = segment->stream,
            .stack = segment->stack,
            .has_pool = true,
            .is_large = segment->is_large,
            .is_expandable = segment->is_expandable};

        if (tn_source_has(&walk->source, i) && !range_add(walk, &range)) {
            return false;
        }
    }
    return true;
}

/* The expandable range that begins or ends where the pages of an entry end or begin: they are parts
 * of one segment. NULL: none. */
static const struct tn_segment_range *range_beside(const struct tn_segment_walk *walk,
                                                   const struct tn_segment_range *pages)
{
    const struct tn_segment_range key = {.start = pages->start};
    const struct tn_segment_range *before = range_of(tn_tree_find_at_most(&walk->tree, &key.node));
    const struct tn_segment_range *behind = tn_segment_walk_find(walk, pages->end);

    if (before && before->end == pages->start && before->is_expandable &&
        before->stream == pages->stream) {
        return before;
    }
    return behind && behind->start == pages->end && behind->is_expandable &&
                   behind->stream == pages->stream
               ? behind
               : NULL;
}

/* Whether pages that were given back are of the large pool. Where both pools have pages of one
 * size, a small request maps one at most. */
static bool pages_are_large(const struct tn_model *model, uint64_t size)
{
    return tn_model_is_compact(model) ? size > TN_PAGE_SMALL : size % TN_PAGE_LARGE == 0;
}

/* What an entry gave back. Its pool is known from newer files only; its size tells the class,
 * unless the rest of its segment is there. */
static struct tn_segment_range range_given_back(const struct tn_segment_walk *walk,
                                                const struct tn_trace_entry *entry)
{
    const bool is_expandable = entry->action == TN_TRACE_SEGMENT_UNMAP;
    const struct tn_trace_extra *extra = tn_model_extra(walk->source.model, entry->extra);

    struct tn_segment_range range = {
        .start = entry->address,
        .end = tn_range_end(entry->address, entry->size),
        .segment = entry->address,
        .given_back = walk->next,
        .pool = extra->pool,
        .stream = entry->stream,
        .stack = entry->stack,
        .has_pool = extra->has_pool,
        .is_large = is_expandable ? pages_are_large(walk->source.model, entry->size)
                                  : entry->size > SMALL_SEGMENT,
        .is_expandable = is_expandable};
    const struct tn_segment_range *beside = is_expandable ? range_beside(walk, &range) : NULL;

    if (beside) {
        range.is_large = beside->is_large;
        range.pool = range.has_pool ? range.pool : beside->pool;
        range.has_pool = range.has_pool || beside->has_pool;
    }
    return range;
}

bool tn_segment_walk_init(struct tn_segment_walk *walk, const struct tn_trace_source *source)
{
    *walk = (struct tn_segment_walk){.source = *source,
                                     .next = source->trace->count,
                                     .changes = source->memory ? source->memory->count : 0};
    tn_chunked_vec_init(&walk->ranges, &walk->budget, sizeof(struct tn_segment_range));
    tn_tree_init(&walk->tree, range_compare, NULL);
    if (!finals_add(walk)) {
        tn_segment_walk_fini(walk);
        return false;
    }
    return true;
}

void tn_segment_walk_fini(struct tn_segment_walk *walk)
{
    tn_chunked_vec_fini(&walk->ranges);
}

/* Goes from right after entry `next` to right before it. */
static bool entry_undo(struct tn_segment_walk *walk)
{
    const struct tn_trace_entry *entry = tn_source_entry(&walk->source, walk->next);

    if (tn_trace_takes(entry)) {
        return ranges_remove(walk, entry->address, tn_range_end(entry->address, entry->size));
    }
    if (tn_trace_gives_back(entry)) {
        const struct tn_segment_range range = range_given_back(walk, entry);

        return range_add(walk, &range);
    }
    return true;
}

/* Without looking at entries that change nothing. */
static bool changes_undo(struct tn_segment_walk *walk, uint64_t first)
{
    const struct tn_memory_change *changes = walk->source.memory->items;

    for (; walk->changes > 0 && changes[walk->changes - 1].entry >= first; walk->changes--) {
        walk->next = changes[walk->changes - 1].entry;
        if (!entry_undo(walk)) {
            return false;
        }
    }
    walk->next = first < walk->next ? first : walk->next;
    return true;
}

bool tn_segment_walk_to(struct tn_segment_walk *walk, uint64_t entry)
{
    const uint64_t first = entry == TN_NEVER ? 0 : entry + 1;

    if (walk->source.memory) {
        return changes_undo(walk, first);
    }

    while (walk->next > first) {
        walk->next--;
        if (!entry_undo(walk)) {
            return false;
        }
    }
    return true;
}

const struct tn_segment_range *tn_segment_walk_find(const struct tn_segment_walk *walk,
                                                    uint64_t address)
{
    const struct tn_segment_range key = {.start = address};
    const struct tn_segment_range *at = range_of(tn_tree_find_at_most(&walk->tree, &key.node));

    return at && address < at->end ? at : NULL;
}

const struct tn_segment_range *tn_segment_walk_first(const struct tn_segment_walk *walk)
{
    return range_of(tn_tree_first(&walk->tree));
}

const struct tn_segment_range *tn_segment_walk_next(const struct tn_segment_range *range)
{
    return range_of(tn_tree_next(&range->node));
}
