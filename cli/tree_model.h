/* SPDX-License-Identifier: MIT */
/*
 * The tree that `tarn tree` walks: nodes with bytes and blocks, folded and unfolded, and the rows
 * that are visible. It knows nothing of snapshots or screens: tree_load.c fills it, tree_keys.c
 * changes it, tree_rows.c and tree_screen.c show it.
 *
 * Node 0 is the root. A node that opens only when asked for (`is_lazy`) has children that are
 * loaded the first time. Nodes are never removed. Every function that returns a bool returns false
 * when host memory is missing, and the tree is then as before.
 */
#ifndef CLI_TREE_MODEL_H
#define CLI_TREE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLI_TREE_NONE UINT32_MAX

/* What tells siblings' order; equals by their labels. */
enum cli_tree_order {
    CLI_TREE_BY_SIZE,
    CLI_TREE_BY_COUNT,
    CLI_TREE_BY_NAME
};

struct cli_tree_node {
    char *label;     /* safe to print */
    uint64_t bytes;  /* with everything below */
    uint64_t blocks; /* likewise */
    uint64_t path;   /* a hash of the labels from the root on: the same node in another tree */
    uint32_t parent; /* CLI_TREE_NONE of the root */
    uint32_t first;  /* child; CLI_TREE_NONE: none */
    uint32_t next;   /* sibling */
    uint32_t depth;
    bool is_open;
    bool is_lazy; /* may have children that are not loaded yet */
};

struct cli_tree {
    struct cli_tree_node *nodes;
    uint32_t count;
    uint32_t capacity;
    struct cli_tree_entry *entries; /* for sorting, as many as nodes fit */
    uint32_t *rows;                 /* visible nodes, top to bottom */
    uint32_t row_count;
    enum cli_tree_order order;
};

void cli_tree_init(struct cli_tree *tree);
void cli_tree_fini(struct cli_tree *tree);

/* Adds a node, folded, as the last child; copies the label. `parent` is CLI_TREE_NONE for the root.
 * Its number, or CLI_TREE_NONE without host memory. */
uint32_t cli_tree_add(struct cli_tree *tree, uint32_t parent, const char *label, uint64_t bytes,
                      uint64_t blocks);

/* Sorts all siblings, and finds the rows anew. */
void cli_tree_sort(struct cli_tree *tree, enum cli_tree_order order);

/* Finds the visible rows, after nodes were folded or unfolded. */
void cli_tree_update(struct cli_tree *tree);

/* Unfolds the root and, below unfolded nodes, what has at least `share` percent of it; at most
 * `depth` levels. Lazy nodes stay folded. */
void cli_tree_open(struct cli_tree *tree, double share, uint32_t depth);

/* Unfolds the nodes that are unfolded in `before`, and folds those that are folded there. */
bool cli_tree_adopt(struct cli_tree *tree, const struct cli_tree *before);

/* Folds or unfolds a node with everything below; lazy nodes are not unfolded. */
void cli_tree_open_below(struct cli_tree *tree, uint32_t node, bool is_open);

/* Unfolds all that are above. */
void cli_tree_reveal(struct cli_tree *tree, uint32_t node);

/* The row of a node, or of the nearest one above that is visible. */
uint32_t cli_tree_row_of(const struct cli_tree *tree, uint32_t node);

/* The node with that path; CLI_TREE_NONE: none. */
uint32_t cli_tree_find_path(const struct cli_tree *tree, uint64_t path);

/* The next node in the order of the tree, folded ones included, from `from` on (itself only when
 * `is_inclusive`), around the end, whose label contains the text in any case; backwards when
 * `is_back`. CLI_TREE_NONE: none has it. */
uint32_t cli_tree_search(const struct cli_tree *tree, uint32_t from, const char *text,
                         bool is_inclusive, bool is_back);

/* Puts one node "others (N)" in the place of siblings with less than `share` percent of the root,
 * for good. */
bool cli_tree_leave_out(struct cli_tree *tree, double share);

static inline bool cli_tree_has_below(const struct cli_tree *tree, uint32_t node)
{
    return tree->nodes[node].first != CLI_TREE_NONE || tree->nodes[node].is_lazy;
}

/* In percent of the root's bytes. */
double cli_tree_share(const struct cli_tree *tree, uint32_t node);

#endif
