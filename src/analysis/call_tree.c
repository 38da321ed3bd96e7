/* SPDX-License-Identifier: MIT */
#include "analysis/call_tree.h"

#include "analysis/address_map.h"
#include "analysis/fold.h"
#include "base/assertion.h"
#include "base/order.h"
#include "base/plural.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Frames of a node that is none. */
#define FRAME_NONE    (UINT32_MAX - 1) /* (no frames) */
#define FRAME_UNKNOWN (UINT32_MAX - 2) /* (not recorded) */

enum {
    CHAIN_SHOWN = 3 /* frames of a chain in a line: the first, and the last ones */
};

struct tn_call_node {
    struct tn_call_sums sums; /* of all stacks through it */
    struct tn_call_sums own;  /* of those that end here */
    uint32_t parent;
    uint32_t frame;
    uint32_t number;
    uint32_t child_first; /* position in `order`, after sorting */
    uint32_t child_count;
    uint32_t row;   /* while rows are written: the number of the row that it is in */
    uint32_t next;  /* and the next of its children to be written */
    uint32_t shown; /* and how many of them will be */
    uint32_t indent;
};

static struct tn_call_node *node_at(const struct tn_call_tree *tree, uint32_t number)
{
    return (struct tn_call_node *)tree->nodes.items + number;
}

bool tn_call_tree_init(struct tn_call_tree *tree, const struct tn_group_keys *keys)
{
    *tree = (struct tn_call_tree){.keys = keys};
    tn_vec_init(&tree->nodes, sizeof(struct tn_call_node));
    tn_vec_init(&tree->order, sizeof(uint32_t));
    return tn_vec_push(&tree->nodes) != NULL;
}

void tn_call_tree_fini(struct tn_call_tree *tree)
{
    tn_map_fini(&tree->by_path);
    tn_vec_fini(&tree->order);
    tn_vec_fini(&tree->nodes);
}

/* ---- building ---- */

static void sums_add(struct tn_call_sums *into, const struct tn_call_sums *from)
{
    for (int i = 0; i < TN_CALL_NUMBERS; i++) {
        into->numbers[i] += from->numbers[i];
    }
}

static void sums_take(struct tn_call_sums *from, const struct tn_call_sums *less)
{
    for (int i = 0; i < TN_CALL_NUMBERS; i++) {
        from->numbers[i] -= less->numbers[i];
    }
}

static bool sums_are_zero(const struct tn_call_sums *sums)
{
    static const struct tn_call_sums zero;

    return memcmp(sums, &zero, sizeof zero) == 0;
}

/* The callee of a node with that frame, made at first sight; false without host memory. */
static bool callee_get(struct tn_call_tree *tree, uint32_t parent, uint32_t frame,
                       uint32_t *number_out)
{
    const uint64_t path = (uint64_t)parent << 32 | frame;
    const uint64_t *known = tn_address_find(&tree->by_path, path);

    if (known) {
        *number_out = (uint32_t)*known;
        return true;
    }
    *number_out = (uint32_t)tree->nodes.count;
    struct tn_call_node *node = tn_vec_push(&tree->nodes);

    if (!node || !tn_address_put(&tree->by_path, path, *number_out)) {
        return false;
    }
    node->parent = parent;
    node->frame = frame;
    node->number = *number_out;
    return true;
}

static bool callee_add(struct tn_call_tree *tree, uint32_t *at, uint32_t frame,
                       const struct tn_call_sums *sums)
{
    if (!callee_get(tree, *at, frame, at)) {
        return false;
    }
    sums_add(&node_at(tree, *at)->sums, sums);
    return true;
}

bool tn_call_tree_add(struct tn_call_tree *tree, uint64_t key, const struct tn_call_sums *sums)
{
    const struct tn_model *model = tree->keys->model;
    const struct tn_stack stack = tn_frame_view_stack(tree->keys->view, (uint32_t)key);
    uint32_t at = 0;

    sums_add(&node_at(tree, 0)->sums, sums);
    for (uint32_t i = stack.count; i > 0; i--) {
        const uint32_t frame = stack.frames[i - 1];

        if (!tn_fold_hides_frame(model, tn_model_frame(model, frame)) &&
            !callee_add(tree, &at, frame, sums)) {
            return false;
        }
    }
    if (at == 0 &&
        !callee_add(tree, &at, key == TN_STACK_NONE ? FRAME_UNKNOWN : FRAME_NONE, sums)) {
        return false;
    }
    sums_add(&node_at(tree, at)->own, sums);
    return true;
}

static int sibling_compare(const void *left, const void *right)
{
    const struct tn_sibling *a = left;
    const struct tn_sibling *b = right;

    if (a->parent != b->parent) {
        return tn_order(a->parent, b->parent);
    }
    return a->rank != b->rank ? tn_order(b->rank, a->rank) : tn_order(a->number, b->number);
}

void tn_siblings_sort(struct tn_sibling *siblings, size_t count)
{
    qsort(siblings, count, sizeof *siblings, sibling_compare);
}

static void order_fill(struct tn_call_tree *tree, const struct tn_sibling *sorted, size_t count)
{
    uint32_t *order = tree->order.items;

    for (size_t i = 0; i < count; i++) {
        struct tn_call_node *parent = node_at(tree, sorted[i].parent);

        order[i] = sorted[i].number;
        if (parent->child_count++ == 0) {
            parent->child_first = (uint32_t)i;
        }
    }
    tree->order.count = count;
}

bool tn_call_tree_sort(struct tn_call_tree *tree)
{
    const size_t count = tree->nodes.count - 1;
    struct tn_vec pairs;

    tn_vec_init(&pairs, sizeof(struct tn_sibling));
    const bool good = tn_vec_reserve(&pairs, count) && tn_vec_reserve(&tree->order, count);

    if (good && count > 0) {
        struct tn_sibling *sorted = pairs.items;

        for (size_t i = 0; i < count; i++) {
            const struct tn_call_node *node = node_at(tree, (uint32_t)i + 1);

            sorted[i] = (struct tn_sibling){node->sums.numbers[0], node->parent, node->number};
        }
        tn_siblings_sort(sorted, count);
        order_fill(tree, sorted, count);
    }
    tn_vec_fini(&pairs);
    return good;
}

/* ---- rows ---- */

static struct tn_call_node *child_at(const struct tn_call_tree *tree,
                                     const struct tn_call_node *node, uint32_t index)
{
    const uint32_t *order = tree->order.items;

    return node_at(tree, order[node->child_first + index]);
}

/* How many callees get a row: those with enough, which come first. */
static uint32_t shown_count(const struct tn_call_tree *tree, const struct tn_call_node *node,
                            const struct tn_call_limits *limits)
{
    const double least = (double)node_at(tree, 0)->sums.numbers[0] * limits->min_share / 100;
    const uint32_t most =
        node->child_count < limits->callees ? node->child_count : (uint32_t)limits->callees;
    uint32_t count = 0;

    while (count < most && (double)child_at(tree, node, count)->sums.numbers[0] >= least) {
        count++;
    }
    return count;
}

/* Whether the only callee has all. The root is a row of its own. */
static bool goes_on(const struct tn_call_node *node)
{
    return node->number != 0 && node->child_count == 1 && sums_are_zero(&node->own);
}

static struct tn_call_node *chain_end(const struct tn_call_tree *tree, struct tn_call_node *node)
{
    while (goes_on(node)) {
        node = child_at(tree, node, 0);
    }
    return node;
}

/* What no row of its own below a node shows. */
static struct tn_call_sums remainder_of(const struct tn_call_tree *tree,
                                        const struct tn_call_node *node)
{
    struct tn_call_sums remainder = node->sums;

    sums_take(&remainder, &node->own);
    for (uint32_t i = 0; i < node->shown; i++) {
        sums_take(&remainder, &child_at(tree, node, i)->sums);
    }
    return remainder;
}

struct walk {
    struct tn_call_tree *tree;
    const struct tn_call_limits *limits;
    tn_call_visit *visit;
    void *context;
    uint32_t count; /* rows so far */
    bool failed;
};

static void row_visit(struct walk *walk, const struct tn_call_row *row)
{
    walk->count++;
    walk->failed = walk->failed || !walk->visit(walk->context, walk->tree, row);
}

/* Rows of what is left of a node when its callees are visited. */
static void remainder_visit(struct walk *walk, const struct tn_call_node *node)
{
    const struct tn_call_sums remainder = remainder_of(walk->tree, node);
    struct tn_call_row row = {.parent = node->row, .depth = node->indent + 1};

    if (node->child_count > node->shown) {
        row.kind = TARN_CALL_OTHERS;
        row.sums = &remainder;
        row.others = node->child_count - node->shown;
        row_visit(walk, &row);
    }
    if (node->child_count > 0 && !sums_are_zero(&node->own)) {
        row.kind = TARN_CALL_ITSELF;
        row.sums = &node->own;
        row.others = 0;
        row_visit(walk, &row);
    }
}

/* Visits the row of a node, before those of its callees; returns the end of its chain. */
static struct tn_call_node *node_enter(struct walk *walk, struct tn_call_node *node,
                                       uint32_t indent)
{
    struct tn_call_node *last = chain_end(walk->tree, node);
    const bool is_root = node->number == 0;
    const struct tn_call_row row = {.parent = is_root ? TARN_NONE
                                                      : node_at(walk->tree, node->parent)->row,
                                    .depth = indent,
                                    .sums = &node->sums,
                                    .first = is_root ? NULL : node,
                                    .last = last};

    last->indent = indent;
    last->next = 0;
    last->shown = shown_count(walk->tree, last, walk->limits);
    last->row = walk->count;
    row_visit(walk, &row);
    return last;
}

/* The end of the chain that calls it. */
static struct tn_call_node *caller_of(const struct tn_call_tree *tree,
                                      const struct tn_call_node *last)
{
    struct tn_call_node *node;

    if (last->number == 0) {
        return NULL;
    }
    do {
        node = node_at(tree, last->parent);
        last = node;
    } while (goes_on(node));
    return node;
}

bool tn_call_tree_walk(struct tn_call_tree *tree, const struct tn_call_limits *limits,
                       tn_call_visit *visit, void *context)
{
    struct walk walk = {.tree = tree, .limits = limits, .visit = visit, .context = context};
    struct tn_call_node *at = node_enter(&walk, node_at(tree, 0), 0);

    while (at && !walk.failed) {
        if (at->next < at->shown) {
            struct tn_call_node *callee = child_at(tree, at, at->next++);

            at = node_enter(&walk, callee, at->indent + 1);
        } else {
            remainder_visit(&walk, at);
            at = caller_of(tree, at);
        }
    }
    return !walk.failed;
}

/* ---- text ---- */

static void frame_put(struct tn_text_out *out, const struct tn_model *model, uint32_t number)
{
    if (number >= FRAME_UNKNOWN) {
        tn_text_puts(out, number == FRAME_UNKNOWN ? "(not recorded)" : "(no frames)");
        return;
    }
    tn_frame_put(out, model, number, TN_ESCAPED_PLAIN);
}

static uint32_t chain_length(const struct tn_call_tree *tree, const struct tn_call_row *row)
{
    uint32_t length = row->first ? 1 : 0;

    for (const struct tn_call_node *node = row->last; row->first && node != row->first;
         node = node_at(tree, node->parent)) {
        length++;
    }
    return length;
}

/* "a > (7 more) > y > z" */
static void chain_put(struct tn_text_out *out, const struct tn_call_tree *tree,
                      const struct tn_call_row *row)
{
    const uint32_t length = chain_length(tree, row);
    const struct tn_call_node *node = row->first;

    for (uint32_t i = 0; i < length; i++) {
        if (i == 1 && length > CHAIN_SHOWN + 1) {
            tn_text_printf(out, " > (%" PRIu32 " more)", length - CHAIN_SHOWN);
        }
        if (i == 0 || length <= CHAIN_SHOWN + 1 || i > length - CHAIN_SHOWN) {
            tn_assert(node);
            tn_text_puts(out, i > 0 ? " > " : "");
            frame_put(out, tree->keys->model, node->frame);
        }
        node = i + 1 < length ? child_at(tree, node, 0) : node;
    }
}

void tn_call_row_put(struct tn_text_out *out, const struct tn_call_tree *tree,
                     const struct tn_call_row *row)
{
    switch (row->kind) {
    case TARN_CALL_CHAIN:
        if (row->first) {
            chain_put(out, tree, row);
        } else {
            tn_text_puts(out, "total");
        }
        break;
    case TARN_CALL_ITSELF:
        tn_text_puts(out, "(itself)");
        break;
    case TARN_CALL_OTHERS:
        tn_text_printf(out, "others (%" PRIu32 " %s)", row->others,
                       tn_plural(row->others, "calls").text);
        break;
    }
}

bool tn_call_row_frames(const struct tn_call_tree *tree, const struct tn_call_row *row,
                        struct tn_vec *frames)
{
    const uint32_t length = chain_length(tree, row);
    const struct tn_call_node *node = row->first;

    if (!tn_vec_reserve(frames, length)) {
        return false;
    }
    for (uint32_t i = 0; i < length; i++) {
        if (node->frame < FRAME_UNKNOWN) {
            ((uint32_t *)frames->items)[frames->count++] = node->frame;
        }
        node = i + 1 < length ? child_at(tree, node, 0) : node;
    }
    return true;
}
