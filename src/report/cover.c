/* SPDX-License-Identifier: MIT */
#include "report/cover.h"

/* A part of a range, [start, end). */
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

void tn_cover_init(struct tn_cover *cover)
{
    cover->budget = (struct tn_budget){0};
    tn_tree_init(&cover->pieces, piece_compare, NULL);
    tn_store_init(&cover->store, &cover->budget, sizeof(struct piece));
}

void tn_cover_fini(struct tn_cover *cover)
{
    tn_store_fini(&cover->store);
}

static struct piece *piece_at_most(const struct tn_cover *cover, uint64_t address)
{
    const struct piece key = {.start = address};

    return piece_of(tn_tree_find_at_most(&cover->pieces, &key.node));
}

static struct piece *piece_after(const struct tn_cover *cover, uint64_t address)
{
    const struct piece key = {.start = address};

    return piece_of(tn_tree_find_at_least(&cover->pieces, &key.node));
}

static bool piece_add(struct tn_cover *cover, uint64_t start, uint64_t end, struct tn_range range)
{
    struct piece *piece = tn_store_push(&cover->store);

    if (!piece) {
        return false;
    }
    *piece = (struct piece){.start = start, .end = end, .range = range};
    tn_tree_insert(&cover->pieces, &piece->node);
    return true;
}

bool tn_cover_add(struct tn_cover *cover, uint64_t start, uint64_t size, uint64_t label)
{
    const uint64_t end = size > UINT64_MAX - start ? UINT64_MAX : start + size;
    const struct piece *before = piece_at_most(cover, start);
    uint64_t at = before && before->end > start ? before->end : start;

    while (at < end) {
        const struct piece *next = piece_after(cover, at);
        const uint64_t gap_end = next && next->start < end ? next->start : end;

        if (gap_end > at && !piece_add(cover, at, gap_end, (struct tn_range){start, label})) {
            return false;
        }
        at = gap_end < end ? next->end : end;
    }
    return true;
}

const struct tn_range *tn_cover_find(const struct tn_cover *cover, uint64_t address)
{
    const struct piece *piece = piece_at_most(cover, address);

    return piece && piece->end > address ? &piece->range : NULL;
}
