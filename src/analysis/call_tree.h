/* SPDX-License-Identifier: MIT */
/*
 * Stacks as a tree of calls: a node for each different path from the outermost frame on, with the
 * numbers of all stacks that begin with it. What a frame allocates itself, while its callees
 * allocate too, is a row "(itself)"; what is not shown is a row "others". So the rows below a row
 * add up to it.
 *
 * A row represents a chain of calls if only the last of them has several callees or allocates
 * itself.
 *
 * Owns: its nodes. Guarded by its owner. Cost: expected O(frames) of the stacks that are added,
 * O(nodes log nodes) to sort; no recursion.
 */
#ifndef TN_ANALYSIS_CALL_TREE_H
#define TN_ANALYSIS_CALL_TREE_H

#include "analysis/group_key.h"
#include "base/map.h"
#include "base/vec.h"
#include "tarn/report.h"

enum {
    TN_CALL_NUMBERS = 7
};

/* The numbers of a table's row, of which rows are sorted by the first; unused ones are 0. */
struct tn_call_sums {
    uint64_t numbers[TN_CALL_NUMBERS];
};

struct tn_call_node;

struct tn_call_tree {
    const struct tn_group_keys *keys;
    struct tn_vec nodes; /* struct tn_call_node (call_tree.c); 0 is the root */
    struct tn_vec order; /* uint32_t: nodes, siblings together, what ranks higher first */
    struct tn_map by_path;
};

struct tn_call_limits {
    uint64_t callees; /* of a row at most */
    double min_share; /* percent of the root's first number that a row has at least */
};

/* A row, borrowed while it is visited. */
struct tn_call_row {
    enum tarn_call_kind kind;
    uint32_t depth;
    uint64_t parent; /* number of a row visited before; TARN_NONE of the root */
    uint32_t others;
    const struct tn_call_sums *sums;
    const struct tn_call_node *first; /* of its chain; NULL: none */
    const struct tn_call_node *last;
};

/* False ends the walk. */
typedef bool tn_call_visit(void *context, const struct tn_call_tree *tree,
                           const struct tn_call_row *row);

/* A node of a tree among its siblings, for sorting. */
struct tn_sibling {
    uint64_t rank;
    uint32_t parent;
    uint32_t number;
};

/* Siblings together, by parent; what ranks higher first, of equals the lower number. */
void tn_siblings_sort(struct tn_sibling *siblings, size_t count);

/* Keys must be of stacks. False when host memory is missing; then there is nothing to release. */
bool tn_call_tree_init(struct tn_call_tree *tree, const struct tn_group_keys *keys) TN_MUST_CHECK;
void tn_call_tree_fini(struct tn_call_tree *tree);

/* Adds the sums of a stack, by its key. False when host memory is missing. */
bool tn_call_tree_add(struct tn_call_tree *tree, uint64_t key,
                      const struct tn_call_sums *sums) TN_MUST_CHECK;

/* To be called once, after the last stack. False when host memory is missing. */
bool tn_call_tree_sort(struct tn_call_tree *tree) TN_MUST_CHECK;

/* Visits the rows, callers first. False when a visit returned that. */
bool tn_call_tree_walk(struct tn_call_tree *tree, const struct tn_call_limits *limits,
                       tn_call_visit *visit, void *context) TN_MUST_CHECK;

/* The row's calls in one line. */
void tn_call_row_put(struct tn_text_out *out, const struct tn_call_tree *tree,
                     const struct tn_call_row *row);

/* Appends the frames of its chain (uint32_t, numbers of the model), outermost first. False without
 * host memory. */
bool tn_call_row_frames(const struct tn_call_tree *tree, const struct tn_call_row *row,
                        struct tn_vec *frames) TN_MUST_CHECK;

#endif
