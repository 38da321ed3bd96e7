/* SPDX-License-Identifier: MIT */
#include "tree_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY_FIRST = 256
};

/* A node among all, for sorting. */
struct cli_tree_entry {
    uint64_t rank;
    const char *label;
    uint32_t parent;
    uint32_t node;
};

void cli_tree_init(struct cli_tree *tree)
{
    *tree = (struct cli_tree){.order = CLI_TREE_BY_SIZE};
}

void cli_tree_fini(struct cli_tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        free(tree->nodes[i].label);
    }
    free(tree->nodes);
    free(tree->entries);
    free(tree->rows);
    cli_tree_init(tree);
}

/* ---- adding ---- */

/* Makes the three arrays larger; those that were are kept when one is not. */
static bool arrays_grow(struct cli_tree *tree, size_t capacity)
{
    struct cli_tree_node *nodes = realloc(tree->nodes, capacity * sizeof *nodes);
    struct cli_tree_entry *entries = realloc(tree->entries, capacity * sizeof *entries);
    uint32_t *rows = realloc(tree->rows, capacity * sizeof *rows);

    if (nodes) {
        tree->nodes = nodes;
    }
    if (entries) {
        tree->entries = entries;
    }
    if (rows) {
        tree->rows = rows;
    }
    return nodes != NULL && entries != NULL && rows != NULL;
}

static bool has_room(struct cli_tree *tree)
{
    const uint32_t capacity = tree->capacity ? tree->capacity * 2 : CAPACITY_FIRST;

    if (tree->count < tree->capacity) {
        return true;
    }
    if (capacity < tree->capacity || !arrays_grow(tree, capacity)) {
        return false;
    }
    tree->capacity = capacity;
    return true;
}

/* FNV-1a. */
static uint64_t path_hash(uint64_t above, const char *label)
{
    uint64_t hash = above ^ 0xcbf29ce484222325U;

    for (; *label; label++) {
        hash = (hash ^ (unsigned char)*label) * 0x100000001b3U;
    }
    return (hash ^ '\n') * 0x100000001b3U;
}

uint32_t cli_tree_add(struct cli_tree *tree, uint32_t parent, const char *label, uint64_t bytes,
                      uint64_t blocks)
{
    char *copy = has_room(tree) ? strdup(label) : NULL;
    const uint32_t number = tree->count;

    if (!copy) {
        return CLI_TREE_NONE;
    }
    tree->nodes[tree->count++] = (struct cli_tree_node){.label = copy,
                                                        .bytes = bytes,
                                                        .blocks = blocks,
                                                        .path = path_hash(0, label),
                                                        .parent = parent,
                                                        .first = CLI_TREE_NONE,
                                                        .next = CLI_TREE_NONE};
    if (parent != CLI_TREE_NONE) {
        struct cli_tree_node *above = &tree->nodes[parent];

        tree->nodes[number].depth = above->depth + 1;
        tree->nodes[number].path = path_hash(above->path, label);
        tree->nodes[number].next = above->first;
        above->first = number;
    }
    return number;
}

/* ---- order ---- */

static int entry_compare(const void *left, const void *right)
{
    const struct cli_tree_entry *a = left;
    const struct cli_tree_entry *b = right;

    if (a->parent != b->parent) {
        return a->parent < b->parent ? -1 : 1;
    }
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    const int order = strcmp(a->label, b->label);

    return order ? order : (a->node > b->node) - (a->node < b->node);
}

static uint64_t rank_of(const struct cli_tree_node *node, enum cli_tree_order order)
{
    switch (order) {
    case CLI_TREE_BY_SIZE:
        return node->bytes;
    case CLI_TREE_BY_COUNT:
        return node->blocks;
    case CLI_TREE_BY_NAME:
        break;
    }
    return 0;
}

void cli_tree_sort(struct cli_tree *tree, enum cli_tree_order order)
{
    tree->order = order;
    if (tree->count == 0) {
        return;
    }
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct cli_tree_node *node = &tree->nodes[i];

        tree->entries[i] =
            (struct cli_tree_entry){rank_of(node, order), node->label, node->parent, i};
        tree->nodes[i].first = CLI_TREE_NONE;
    }
    qsort(tree->entries, tree->count, sizeof *tree->entries, entry_compare);
    for (uint32_t i = tree->count; i-- > 0;) {
        const struct cli_tree_entry *entry = &tree->entries[i];

        if (entry->parent != CLI_TREE_NONE) {
            tree->nodes[entry->node].next = tree->nodes[entry->parent].first;
            tree->nodes[entry->parent].first = entry->node;
        }
    }
    cli_tree_update(tree);
}

/* The node after this one in the order of the tree, within `top`; below it only if `enters`. */
static uint32_t node_after(const struct cli_tree *tree, uint32_t node, uint32_t top, bool enters)
{
    if (enters && tree->nodes[node].first != CLI_TREE_NONE) {
        return tree->nodes[node].first;
    }
    while (node != top && tree->nodes[node].next == CLI_TREE_NONE) {
        node = tree->nodes[node].parent;
    }
    return node == top ? CLI_TREE_NONE : tree->nodes[node].next;
}

void cli_tree_update(struct cli_tree *tree)
{
    tree->row_count = 0;
    for (uint32_t node = tree->count > 0 ? 0 : CLI_TREE_NONE; node != CLI_TREE_NONE;
         node = node_after(tree, node, 0, tree->nodes[node].is_open)) {
        tree->rows[tree->row_count++] = node;
    }
}

/* ---- folding ---- */

double cli_tree_share(const struct cli_tree *tree, uint32_t node)
{
    const uint64_t all = tree->nodes[0].bytes;

    return all > 0 ? (double)tree->nodes[node].bytes / (double)all * 100 : 0.0;
}

void cli_tree_open(struct cli_tree *tree, double share, uint32_t depth)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        struct cli_tree_node *node = &tree->nodes[i];

        node->is_open = node->first != CLI_TREE_NONE && node->depth < depth &&
                        (i == 0 || cli_tree_share(tree, i) >= share);
    }
    cli_tree_update(tree);
}

void cli_tree_open_below(struct cli_tree *tree, uint32_t node, bool is_open)
{
    for (uint32_t i = node; i != CLI_TREE_NONE; i = node_after(tree, i, node, true)) {
        tree->nodes[i].is_open = is_open && tree->nodes[i].first != CLI_TREE_NONE;
    }
    cli_tree_update(tree);
}

void cli_tree_reveal(struct cli_tree *tree, uint32_t node)
{
    for (uint32_t i = tree->nodes[node].parent; i != CLI_TREE_NONE; i = tree->nodes[i].parent) {
        tree->nodes[i].is_open = true;
    }
    cli_tree_update(tree);
}

/* What is known of a node of another tree. */
struct fold {
    uint64_t path;
    bool is_open;
};

static int fold_compare(const void *left, const void *right)
{
    const struct fold *a = left;
    const struct fold *b = right;

    return (a->path > b->path) - (a->path < b->path);
}

bool cli_tree_adopt(struct cli_tree *tree, const struct cli_tree *before)
{
    struct fold *folds = malloc((before->count + 1U) * sizeof *folds);
    size_t count = 0;

    if (!folds) {
        return false;
    }
    for (uint32_t i = 0; i < before->count; i++) {
        if (cli_tree_has_below(before, i)) {
            folds[count++] = (struct fold){before->nodes[i].path, before->nodes[i].is_open};
        }
    }
    qsort(folds, count, sizeof *folds, fold_compare);
    for (uint32_t i = 0; i < tree->count; i++) {
        struct cli_tree_node *node = &tree->nodes[i];
        const struct fold wanted = {.path = node->path};
        const struct fold *same = bsearch(&wanted, folds, count, sizeof *folds, fold_compare);

        if (same) {
            node->is_open = same->is_open && node->first != CLI_TREE_NONE;
        }
    }
    free(folds);
    cli_tree_update(tree);
    return true;
}

/* ---- finding ---- */

uint32_t cli_tree_row_of(const struct cli_tree *tree, uint32_t node)
{
    for (; node != CLI_TREE_NONE; node = tree->nodes[node].parent) {
        for (uint32_t row = 0; row < tree->row_count; row++) {
            if (tree->rows[row] == node) {
                return row;
            }
        }
    }
    return 0;
}

uint32_t cli_tree_find_path(const struct cli_tree *tree, uint64_t path)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        if (tree->nodes[i].path == path) {
            return i;
        }
    }
    return CLI_TREE_NONE;
}

static bool contains(const char *label, const char *text)
{
    for (; *label; label++) {
        size_t i = 0;

        while (text[i] && tolower((unsigned char)label[i]) == tolower((unsigned char)text[i])) {
            i++;
        }
        if (!text[i]) {
            return true;
        }
    }
    return false;
}

uint32_t cli_tree_search(const struct cli_tree *tree, uint32_t from, const char *text,
                         bool is_inclusive, bool is_back)
{
    uint32_t first[2] = {CLI_TREE_NONE, CLI_TREE_NONE}; /* before `from`, and after it */
    uint32_t last[2] = {CLI_TREE_NONE, CLI_TREE_NONE};
    uint32_t itself = CLI_TREE_NONE;
    size_t part = 0;

    for (uint32_t i = 0; i != CLI_TREE_NONE; i = node_after(tree, i, 0, true)) {
        const bool has = contains(tree->nodes[i].label, text);

        if (i == from) {
            itself = has ? i : CLI_TREE_NONE;
            part = 1;
        } else if (has) {
            first[part] = first[part] == CLI_TREE_NONE ? i : first[part];
            last[part] = i;
        }
    }
    if (is_inclusive && itself != CLI_TREE_NONE) {
        return itself;
    }
    const uint32_t near = is_back ? last[0] : first[1];
    const uint32_t far = is_back ? last[1] : first[0];

    return near != CLI_TREE_NONE ? near : far != CLI_TREE_NONE ? far : itself;
}

/* ---- leaving out ---- */

/* One node in place of the children of `above` that are too small; false without host memory. */
static bool others_add(struct cli_tree *tree, uint32_t above, double share)
{
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    unsigned count = 0;
    char label[64];

    for (uint32_t i = tree->nodes[above].first; i != CLI_TREE_NONE; i = tree->nodes[i].next) {
        if (cli_tree_share(tree, i) < share) {
            bytes += tree->nodes[i].bytes;
            blocks += tree->nodes[i].blocks;
            count++;
        }
    }
    if (count < 2) { /* the sum of one says less than it does */
        return true;
    }
    for (uint32_t i = tree->nodes[above].first; i != CLI_TREE_NONE; i = tree->nodes[i].next) {
        if (cli_tree_share(tree, i) < share) {
            tree->nodes[i].parent = CLI_TREE_NONE;
        }
    }
    (void)snprintf(label, sizeof label, "others (%u)", count);
    return cli_tree_add(tree, above, label, bytes, blocks) != CLI_TREE_NONE;
}

bool cli_tree_leave_out(struct cli_tree *tree, double share)
{
    const uint32_t count = tree->count;

    for (uint32_t i = 0; i < count; i++) {
        if ((i == 0 || tree->nodes[i].parent != CLI_TREE_NONE) && !others_add(tree, i, share)) {
            return false;
        }
    }
    cli_tree_sort(tree, tree->order);
    return true;
}
