/* SPDX-License-Identifier: MIT */
/*
 * Intrusive ordered tree: height-balanced (AVL), with parent links, so that stepping and removing
 * need no search and no operation needs host memory.
 *
 * A record embeds a node. `compare` orders two nodes (negative, zero, positive); no two nodes of a
 * tree may compare equal. A search takes a key: a record on the caller's stack in which only the
 * fields that `compare` reads are set. An optional `refresh` recomputes what a node caches about
 * its subtree (a maximum, a sum) from its own fields and its two children; the tree calls it bottom
 * up after every change, and after a record changed by itself its owner calls tn_tree_refresh.
 *
 * Invariants: heights of siblings differ by at most one; count = number of nodes.
 * Locks: the caller's. Cost: O(log n) each; tn_tree_next and tn_tree_prev O(1) on average.
 */
#ifndef TN_BASE_TREE_H
#define TN_BASE_TREE_H

#include "tarn/findings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_tree_node {
    struct tn_tree_node *child[2]; /* smaller, greater */
    struct tn_tree_node *parent;   /* NULL at the root */
    int height;                    /* 1 for a leaf */
};

struct tn_tree {
    struct tn_tree_node *root;
    size_t count;
    int (*compare)(const struct tn_tree_node *a, const struct tn_tree_node *b);
    void (*refresh)(struct tn_tree_node *node); /* may be NULL */
};

/* The record that embeds `node` as its member `member`. */
#define TN_TREE_ENTRY(node, type, member)                                                          \
    ((type *)(void *)((char *)(uintptr_t)(node)-offsetof(type, member)))

/* Order of two numbers, for `compare` functions. */
static inline int tn_tree_order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

void tn_tree_init(struct tn_tree *tree,
                  int (*compare)(const struct tn_tree_node *a, const struct tn_tree_node *b),
                  void (*refresh)(struct tn_tree_node *node));

/* `node` must not be in a tree; its old contents do not matter. */
void tn_tree_insert(struct tn_tree *tree, struct tn_tree_node *node);

/* `node` must be in this tree. */
void tn_tree_remove(struct tn_tree *tree, struct tn_tree_node *node);

/* The node equal to the key; the smallest one not less than it; the greatest one not greater; NULL
 * when there is none. */
struct tn_tree_node *tn_tree_find(const struct tn_tree *tree, const struct tn_tree_node *key);
struct tn_tree_node *tn_tree_find_at_least(const struct tn_tree *tree,
                                           const struct tn_tree_node *key);
struct tn_tree_node *tn_tree_find_at_most(const struct tn_tree *tree,
                                          const struct tn_tree_node *key);

/* In order; NULL at the end. */
struct tn_tree_node *tn_tree_first(const struct tn_tree *tree);
struct tn_tree_node *tn_tree_next(const struct tn_tree_node *node);
struct tn_tree_node *tn_tree_prev(const struct tn_tree_node *node);

/* Calls `refresh` from `node` up to the root. */
void tn_tree_refresh(const struct tn_tree *tree, struct tn_tree_node *node);

/* Checks heights, order, links and the count; adds violations to `findings` and returns their
 * number. The recursion depth is the height of the tree. */
uint64_t tn_tree_check(const struct tn_tree *tree, struct tarn_findings *findings);

#endif
