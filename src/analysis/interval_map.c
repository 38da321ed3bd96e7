/* SPDX-License-Identifier: MIT */
#include "analysis/interval_map.h"

/* A part of a range, [start, end); or a stretch without gaps, which has no range. */
struct piece {
    struct tn_tree_node node;
    uint64_t start;
    uint64_t end;
    struct tn_range range;
};

static struct piece *piece_of(const struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct piece, node) : NULL;
}

static int piece_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(piece_of(a)->start, piece_of(b)->start);
}

void tn_interval_map_init(struct tn_interval_map *map)
{
    map->budget = (struct tn_budget){0};
    tn_tree_init(&map->pieces, piece_compare, NULL);
    tn_tree_init(&map->runs, piece_compare, NULL);
    tn_chunked_vec_init(&map->items, &map->budget, sizeof(struct piece));
}

void tn_interval_map_fini(struct tn_interval_map *map)
{
    tn_chunked_vec_fini(&map->items);
}

static struct piece *piece_at_most(const struct tn_tree *tree, uint64_t address)
{
    const struct piece key = {.start = address};

    return piece_of(tn_tree_find_at_most(tree, &key.node));
}

static struct piece *piece_after(const struct tn_tree *tree, uint64_t address)
{
    const struct piece key = {.start = address};

    return piece_of(tn_tree_find_at_least(tree, &key.node));
}

static bool piece_add(struct tn_interval_map *map, uint64_t start, uint64_t end,
                      struct tn_range range)
{
    struct piece *piece = tn_chunked_vec_push(&map->items);

    if (!piece) {
        return false;
    }
    *piece = (struct piece){.start = start, .end = end, .range = range};
    tn_tree_insert(&map->pieces, &piece->node);
    return true;
}

/* The first stretch that touches [start, ...), or follows it. */
static struct piece *run_first(const struct tn_interval_map *map, uint64_t start)
{
    struct piece *run = piece_at_most(&map->runs, start);

    return run && run->end >= start ? run : piece_after(&map->runs, start);
}

/* All that the range touches becomes one stretch; the gaps between are its pieces. So each stretch
 * is gone through once. */
static bool runs_unite(struct tn_interval_map *map, struct piece *whole, struct tn_range range)
{
    const uint64_t end = whole->end;
    uint64_t at = whole->start;
    struct piece *run = run_first(map, at);

    while (run && run->start <= end) {
        struct piece *next = piece_of(tn_tree_next(&run->node));

        if (run->start > at && !piece_add(map, at, run->start, range)) {
            return false;
        }
        at = run->end > at ? run->end : at;
        whole->start = run->start < whole->start ? run->start : whole->start;
        tn_tree_remove(&map->runs, &run->node);
        run = next;
    }
    whole->end = at > end ? at : end;
    return at >= end || piece_add(map, at, end, range);
}

bool tn_interval_map_add(struct tn_interval_map *map, uint64_t start, uint64_t size, uint64_t label)
{
    const uint64_t end = size > UINT64_MAX - start ? UINT64_MAX : start + size;
    struct piece *whole = end > start ? tn_chunked_vec_push(&map->items) : NULL;

    if (!whole) {
        return end == start;
    }
    *whole = (struct piece){.start = start, .end = end};
    if (!runs_unite(map, whole, (struct tn_range){start, label})) {
        return false;
    }
    tn_tree_insert(&map->runs, &whole->node);
    return true;
}

const struct tn_range *tn_interval_map_find(const struct tn_interval_map *map, uint64_t address)
{
    const struct piece *piece = piece_at_most(&map->pieces, address);

    return piece && piece->end > address ? &piece->range : NULL;
}
