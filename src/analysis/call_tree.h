/* SPDX-License-Identifier: MIT */
/*
 * Stacks as a tree of calls: a node for each different path from the outermost frame on, with the
 * numbers of all stacks that begin so. What a frame asked for itself, while it also calls others
 * that did, is a row "(itself)"; what is not shown is a row "others". So the rows below a row add
 * up to it.
 *
 * A row stands for a chain of calls if none of them but the last has another callee, or asked for
 * something itself.
 *
 * Owns: its nodes. Guarded by its owner. Cost: expected O(frames) of the stacks that are added,
 * O(nodes log nodes) to sort; no recursion.
 */
#ifndef TN_ANALYSIS_CALL_TREE_H
#define TN_ANALYSIS_CALL_TREE_H

#include "analysis/group_key.h"
#include "base/map.h"
#include "base/vec.h"

enum {
    TN_CALL_NUMBERS = 6
};

/* The numbers of a table's row; unused ones are 0. */
struct tn_call_sums {
    uint64_t rank; /* what rows are sorted by and shares are of */
    uint64_t numbers[TN_CALL_NUMBERS];
};

struct tn_call_tree {
    const struct tn_group_keys *keys;
    struct tn_vec nodes; /* struct tn_call_node (call_tree.c); 0 is the root */
    struct tn_vec order; /* uint32_t: nodes, siblings together, what ranks higher first */
    struct tn_map by_path;
};

/* How rows are written. */
struct tn_call_rows {
    /* The columns before the calls, with blanks behind. `all`: the root's. */
    void (*put)(struct tn_text_out *out, const struct tn_call_sums *sums,
                const struct tn_call_sums *all);
    /* The same as members of the open object. */
    void (*put_json)(struct tn_json_text *json, const struct tn_call_sums *sums);
    uint64_t limit;   /* callees of a row at most */
    double min_share; /* percent of the root's rank that a row has at least */
};

/* Keys must be of stacks. False when host memory is missing; then there is nothing to release. */
bool tn_call_tree_init(struct tn_call_tree *tree, const struct tn_group_keys *keys) TN_MUST_CHECK;
void tn_call_tree_fini(struct tn_call_tree *tree);

/* Adds the sums of a stack, by its key. False when host memory is missing. */
bool tn_call_tree_add(struct tn_call_tree *tree, uint64_t key,
                      const struct tn_call_sums *sums) TN_MUST_CHECK;

/* To be called once, after the last stack. False when host memory is missing. */
bool tn_call_tree_sort(struct tn_call_tree *tree) TN_MUST_CHECK;

/* The rows, a line each. */
void tn_call_tree_put(struct tn_text_out *out, struct tn_call_tree *tree,
                      const struct tn_call_rows *rows);

/* The member "tree": an array of the rows in the same order, each with "id" and "parent" (null for
 * the root), and its chain "frames", outermost first; or "itself": true; or "others": how many. */
void tn_call_tree_put_json(struct tn_json_text *json, struct tn_call_tree *tree,
                           const struct tn_call_rows *rows);

#endif
