/* SPDX-License-Identifier: MIT */
#include "analysis/call_tree.h"

#include "analysis/address_map.h"
#include "analysis/fold.h"

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
    into->rank += from->rank;
    for (int i = 0; i < TN_CALL_NUMBERS; i++) {
        into->numbers[i] += from->numbers[i];
    }
}

static void sums_take(struct tn_call_sums *from, const struct tn_call_sums *less)
{
    from->rank -= less->rank;
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

/* For qsort, which knows no context: nodes as pairs of what they are sorted by. */
struct sorted {
    uint64_t rank;
    uint32_t parent;
    uint32_t number;
};

static int sorted_compare(const void *left, const void *right)
{
    const struct sorted *a = left;
    const struct sorted *b = right;

    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static void order_fill(struct tn_call_tree *tree, const struct sorted *sorted, size_t count)
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

    tn_vec_init(&pairs, sizeof(struct sorted));
    const bool good = tn_vec_reserve(&pairs, count) && tn_vec_reserve(&tree->order, count);

    if (good && count > 0) {
        struct sorted *sorted = pairs.items;

        for (size_t i = 0; i < count; i++) {
            const struct tn_call_node *node = node_at(tree, (uint32_t)i + 1);

            sorted[i] = (struct sorted){node->sums.rank, node->parent, node->number};
        }
        qsort(sorted, count, sizeof *sorted, sorted_compare);
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
                            const struct tn_call_rows *rows)
{
    const double least = (double)node_at(tree, 0)->sums.rank * rows->min_share / 100;
    const uint32_t most =
        node->child_count < rows->limit ? node->child_count : (uint32_t)rows->limit;
    uint32_t count = 0;

    while (count < most && (double)child_at(tree, node, count)->sums.rank >= least) {
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
static struct tn_call_sums rest_of(const struct tn_call_tree *tree, const struct tn_call_node *node)
{
    struct tn_call_sums rest = node->sums;

    sums_take(&rest, &node->own);
    for (uint32_t i = 0; i < node->shown; i++) {
        sums_take(&rest, &child_at(tree, node, i)->sums);
    }
    return rest;
}

enum row_kind {
    ROW_CALLS,
    ROW_ITSELF,
    ROW_OTHERS
};

/* One line of the table. */
struct row {
    enum row_kind kind;
    const struct tn_call_node *first; /* of the chain */
    const struct tn_call_node *last;
    const struct tn_call_sums *sums;
    uint32_t count;  /* of the others */
    uint32_t number; /* of the row */
    uint32_t indent;
};

struct walk {
    struct tn_call_tree *tree;
    const struct tn_call_rows *rows;
    struct tn_text_out *out;
    struct tn_json_text *json; /* NULL: text */
    uint32_t written;
};

static void row_put(struct walk *walk, const struct row *row);

/* Rows of what is left of a node when its callees are written. */
static void rest_put(struct walk *walk, const struct tn_call_node *node)
{
    const struct tn_call_sums rest = rest_of(walk->tree, node);
    struct row row = {.first = node, .indent = node->indent + 1};

    if (node->child_count > node->shown) {
        row.kind = ROW_OTHERS;
        row.sums = &rest;
        row.count = node->child_count - node->shown;
        row_put(walk, &row);
    }
    if (node->child_count > 0 && !sums_are_zero(&node->own)) {
        row.kind = ROW_ITSELF;
        row.sums = &node->own;
        row_put(walk, &row);
    }
}

/* Writes the row of a node and what it calls directly; returns the end of its chain. */
static struct tn_call_node *node_enter(struct walk *walk, struct tn_call_node *node,
                                       uint32_t indent)
{
    struct tn_call_node *last = chain_end(walk->tree, node);

    last->indent = indent;
    last->next = 0;
    last->shown = shown_count(walk->tree, last, walk->rows);
    last->row = walk->written;
    row_put(walk,
            &(struct row){.first = node, .last = last, .sums = &node->sums, .indent = indent});
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

static void rows_walk(struct walk *walk)
{
    struct tn_call_node *at = node_enter(walk, node_at(walk->tree, 0), 0);

    while (at) {
        if (at->next < at->shown) {
            struct tn_call_node *callee = child_at(walk->tree, at, at->next++);

            at = node_enter(walk, callee, at->indent + 1);
        } else {
            rest_put(walk, at);
            at = caller_of(walk->tree, at);
        }
    }
}

/* ---- text ---- */

static void string_put(struct tn_text_out *out, struct tn_string text)
{
    tn_text_put_escaped(out, text.text, text.length, TN_ESCAPED_PLAIN);
}

static void frame_put(struct tn_text_out *out, const struct tn_model *model, uint32_t number)
{
    if (number >= FRAME_UNKNOWN) {
        tn_text_puts(out, number == FRAME_UNKNOWN ? "(not recorded)" : "(no frames)");
        return;
    }
    const struct tn_frame *frame = tn_model_frame(model, number);

    string_put(out, tn_fold_base_name(tn_model_string(model, frame->filename)));
    tn_text_printf(out, ":%" PRId64 ":", frame->line);
    string_put(out, tn_model_string(model, frame->name));
}

/* "a > (7 more) > y > z" */
static void chain_put(const struct walk *walk, const struct row *row)
{
    const struct tn_call_tree *tree = walk->tree;
    uint32_t length = 1;

    for (const struct tn_call_node *node = row->last; node != row->first;
         node = node_at(tree, node->parent)) {
        length++;
    }
    const struct tn_call_node *node = row->first;

    for (uint32_t i = 0; i < length; i++) {
        if (i == 1 && length > CHAIN_SHOWN + 1) {
            tn_text_printf(walk->out, " > (%" PRIu32 " more)", length - CHAIN_SHOWN);
        }
        if (i == 0 || length <= CHAIN_SHOWN + 1 || i > length - CHAIN_SHOWN) {
            tn_text_puts(walk->out, i > 0 ? " > " : "");
            frame_put(walk->out, tree->keys->model, node->frame);
        }
        node = i + 1 < length ? child_at(tree, node, 0) : node;
    }
}

static void row_put_text(const struct walk *walk, const struct row *row)
{
    walk->rows->put(walk->out, row->sums, &node_at(walk->tree, 0)->sums);
    tn_text_printf(walk->out, "%*s", (int)(row->indent < 1000 ? 2 * row->indent : 2000), "");
    switch (row->kind) {
    case ROW_CALLS:
        if (row->first->number == 0) {
            tn_text_puts(walk->out, "total");
        } else {
            chain_put(walk, row);
        }
        break;
    case ROW_ITSELF:
        tn_text_puts(walk->out, "(itself)");
        break;
    case ROW_OTHERS:
        tn_text_printf(walk->out, "others (%" PRIu32 " calls)", row->count);
        break;
    }
    tn_text_putc(walk->out, '\n');
}

/* ---- JSON ---- */

static void chain_put_json(const struct walk *walk, const struct row *row)
{
    const struct tn_model *model = walk->tree->keys->model;
    struct tn_json_text *json = walk->json;
    const struct tn_call_node *node = row->first;

    tn_json_open_array(json, "frames");
    for (bool is_last = node->number == 0; !is_last;) {
        is_last = node == row->last;
        if (node->frame < FRAME_UNKNOWN) {
            tn_frame_put_json(json, model, node->frame);
        }
        node = is_last ? node : child_at(walk->tree, node, 0);
    }
    tn_json_close(json);
}

/* The number of the row that a row is below. */
static void parent_put_json(const struct walk *walk, const struct row *row)
{
    if (row->kind != ROW_CALLS) {
        tn_json_number(walk->json, "parent", row->first->row);
    } else if (row->first->number == 0) {
        tn_json_null(walk->json, "parent");
    } else {
        tn_json_number(walk->json, "parent", node_at(walk->tree, row->first->parent)->row);
    }
}

static void row_put_json(const struct walk *walk, const struct row *row)
{
    struct tn_json_text *json = walk->json;

    tn_json_open_object(json, NULL);
    tn_json_number(json, "id", row->number);
    parent_put_json(walk, row);
    walk->rows->put_json(json, row->sums);
    switch (row->kind) {
    case ROW_CALLS:
        chain_put_json(walk, row);
        break;
    case ROW_ITSELF:
        tn_json_bool(json, "itself", true);
        break;
    case ROW_OTHERS:
        tn_json_number(json, "others", row->count);
        break;
    }
    tn_json_close(json);
}

static void row_put(struct walk *walk, const struct row *given)
{
    struct row row = *given;

    row.number = walk->written++;
    if (walk->json) {
        row_put_json(walk, &row);
    } else {
        row_put_text(walk, &row);
    }
}

void tn_call_tree_put(struct tn_text_out *out, struct tn_call_tree *tree,
                      const struct tn_call_rows *rows)
{
    rows_walk(&(struct walk){.tree = tree, .rows = rows, .out = out});
}

void tn_call_tree_put_json(struct tn_json_text *json, struct tn_call_tree *tree,
                           const struct tn_call_rows *rows)
{
    tn_json_open_array(json, "tree");
    rows_walk(&(struct walk){.tree = tree, .rows = rows, .json = json});
    tn_json_close(json);
}
