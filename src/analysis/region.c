/* SPDX-License-Identifier: MIT */
#include "analysis/region.h"

#define SMALL_SEGMENT ((uint64_t)2 << 20)
#define LARGE_PAGES   ((uint64_t)20 << 20) /* growing segments of the large pool map so much */

static struct tn_region *region_of(const struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct tn_region, node) : NULL;
}

static int region_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(region_of(a)->start, region_of(b)->start);
}

static bool region_insert(struct tn_regions *regions, struct tn_region region)
{
    struct tn_region *added = tn_chunked_vec_push(&regions->store);

    if (!added) {
        return false;
    }
    *added = region;
    tn_tree_insert(&regions->tree, &added->node);
    return true;
}

/* Takes [start, end) out of whatever has it; a region that reaches beyond keeps its ends. */
static bool regions_remove(struct tn_regions *regions, uint64_t start, uint64_t end)
{
    const struct tn_region key = {.start = start};
    struct tn_region *at = region_of(tn_tree_find_at_most(&regions->tree, &key.node));

    if (!at || at->end <= start) {
        at = region_of(tn_tree_find_at_least(&regions->tree, &key.node));
    }
    while (at && at->start < end) {
        struct tn_region *next = region_of(tn_tree_next(&at->node));
        struct tn_region rest = *at;

        if (at->start < start) {
            at->end = start;
        } else {
            tn_tree_remove(&regions->tree, &at->node);
        }
        if (rest.end > end) {
            rest.start = end;
            return region_insert(regions, rest);
        }
        at = next;
    }
    return true;
}

static bool regions_add(struct tn_regions *regions, struct tn_region region)
{
    return region.start >= region.end ||
           (regions_remove(regions, region.start, region.end) && region_insert(regions, region));
}

static bool finals_add(struct tn_regions *regions, const struct tn_timeline *timeline)
{
    for (size_t i = 0; i < timeline->model->segment_count; i++) {
        const struct tn_model_segment *segment = &timeline->model->segments[i];
        const struct tn_region region = {.start = segment->address,
                                         .end =
                                             tn_region_end(segment->address, segment->total_size),
                                         .segment = segment->address,
                                         .pool = segment->pool,
                                         .has_pool = true,
                                         .stream = segment->stream,
                                         .is_large = segment->is_large,
                                         .is_expandable = segment->is_expandable};

        if (segment->device == timeline->device && !regions_add(regions, region)) {
            return false;
        }
    }
    return true;
}

/* What an entry took away. Its pool is known from newer files only; its size tells the class. */
static struct tn_region region_given_back(const struct tn_model *model,
                                          const struct tn_trace_entry *entry)
{
    const bool is_expandable = entry->action == TN_TRACE_SEGMENT_UNMAP;

    const struct tn_trace_extra *extra = tn_model_extra(model, entry->extra);

    return (struct tn_region){.start = entry->address,
                              .end = tn_region_end(entry->address, entry->size),
                              .segment = entry->address,
                              .pool = extra->pool,
                              .has_pool = extra->has_pool,
                              .stream = entry->stream,
                              .is_large = is_expandable ? entry->size % LARGE_PAGES == 0
                                                        : entry->size > SMALL_SEGMENT,
                              .is_expandable = is_expandable};
}

bool tn_regions_init(struct tn_regions *regions, const struct tn_timeline *timeline)
{
    regions->budget = (struct tn_budget){0};
    tn_chunked_vec_init(&regions->store, &regions->budget, sizeof(struct tn_region));
    tn_tree_init(&regions->tree, region_compare, NULL);
    if (!finals_add(regions, timeline)) {
        tn_regions_fini(regions);
        return false;
    }
    return true;
}

void tn_regions_fini(struct tn_regions *regions)
{
    tn_chunked_vec_fini(&regions->store);
}

bool tn_regions_undo(struct tn_regions *regions, const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_trace_entry *undone = tn_trace_at(timeline->model, timeline->trace, entry);
    const int64_t delta = tn_reserved_delta(undone);

    if (delta > 0) {
        return regions_remove(regions, undone->address,
                              tn_region_end(undone->address, undone->size));
    }
    return delta == 0 || regions_add(regions, region_given_back(timeline->model, undone));
}

const struct tn_region *tn_regions_find(const struct tn_regions *regions, uint64_t address)
{
    const struct tn_region key = {.start = address};
    const struct tn_region *at = region_of(tn_tree_find_at_most(&regions->tree, &key.node));

    return at && address < at->end ? at : NULL;
}

const struct tn_region *tn_regions_first(const struct tn_regions *regions)
{
    return region_of(tn_tree_first(&regions->tree));
}

const struct tn_region *tn_regions_next(const struct tn_region *region)
{
    return region_of(tn_tree_next(&region->node));
}
