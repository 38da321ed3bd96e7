/* SPDX-License-Identifier: MIT */
#include "base/tree.h"

#include "base/assertion.h"
#include "base/finding.h"

enum {
    SMALLER,
    GREATER
};

static int node_height(const struct tn_tree_node *node)
{
    return node ? node->height : 0;
}

/* Height on the smaller side minus height on the greater side. */
static int node_lean(const struct tn_tree_node *node)
{
    return node_height(node->child[SMALLER]) - node_height(node->child[GREATER]);
}

static void node_update(const struct tn_tree *tree, struct tn_tree_node *node)
{
    const int a = node_height(node->child[SMALLER]);
    const int b = node_height(node->child[GREATER]);

    node->height = 1 + (a > b ? a : b);
    if (tree->refresh) {
        tree->refresh(node);
    }
}

/* Replaces `child` with `new_child`, which may be NULL. */
static void node_replace(struct tn_tree *tree, const struct tn_tree_node *child,
                         struct tn_tree_node *new_child)
{
    struct tn_tree_node *const parent = child->parent;

    if (!parent) {
        tree->root = new_child;
    } else {
        parent->child[parent->child[GREATER] == child] = new_child;
    }
    if (new_child) {
        new_child->parent = parent;
    }
}

/* Rotates the child on `side` above `node`. Returns the new top. */
static struct tn_tree_node *node_rotate(struct tn_tree *tree, struct tn_tree_node *node, int side)
{
    struct tn_tree_node *const top = node->child[side];
    struct tn_tree_node *const middle = top->child[!side];

    node_replace(tree, node, top);
    top->child[!side] = node;
    node->parent = top;
    node->child[side] = middle;
    if (middle) {
        middle->parent = node;
    }
    node_update(tree, node);
    node_update(tree, top);
    return top;
}

/* Rebalances one node whose subtrees are balanced. Returns the top of its subtree. */
static struct tn_tree_node *node_balance(struct tn_tree *tree, struct tn_tree_node *node)
{
    const int lean = node_lean(node);

    if (lean >= -1 && lean <= 1) {
        node_update(tree, node);
        return node;
    }
    const int heavy = lean > 0 ? SMALLER : GREATER;
    struct tn_tree_node *const child = node->child[heavy];
    const int child_lean = node_lean(child);
    if ((heavy == SMALLER && child_lean < 0) || (heavy == GREATER && child_lean > 0)) {
        (void)node_rotate(tree, child, !heavy);
    }
    return node_rotate(tree, node, heavy);
}

/* Without `refresh` the walk ends where a subtree's height did not change. */
static void tree_rebalance(struct tn_tree *tree, struct tn_tree_node *node)
{
    while (node) {
        const int before = node->height;
        struct tn_tree_node *const top = node_balance(tree, node);

        if (!tree->refresh && top->height == before) {
            return;
        }
        node = top->parent;
    }
}

void tn_tree_init(struct tn_tree *tree,
                  int (*compare)(const struct tn_tree_node *a, const struct tn_tree_node *b),
                  void (*refresh)(struct tn_tree_node *node))
{
    *tree = (struct tn_tree){.compare = compare, .refresh = refresh};
}

void tn_tree_insert(struct tn_tree *tree, struct tn_tree_node *node)
{
    struct tn_tree_node *parent = NULL;
    struct tn_tree_node **link = &tree->root;

    while (*link) {
        const int order = tree->compare(node, *link);

        tn_assert(order != 0);
        parent = *link;
        link = &parent->child[order > 0];
    }
    *node = (struct tn_tree_node){.parent = parent, .height = 1};
    *link = node;
    tree->count++;
    if (tree->refresh) {
        tree->refresh(node);
    }
    tree_rebalance(tree, parent);
}

/* Replaces `node` with `heir`, keeping children and height. */
static void node_take_place(struct tn_tree *tree, struct tn_tree_node *heir,
                            const struct tn_tree_node *node)
{
    node_replace(tree, node, heir);
    heir->height = node->height;
    for (int side = SMALLER; side <= GREATER; side++) {
        heir->child[side] = node->child[side];
        if (heir->child[side]) {
            heir->child[side]->parent = heir;
        }
    }
}

void tn_tree_remove(struct tn_tree *tree, struct tn_tree_node *node)
{
    struct tn_tree_node *start = node->parent; /* lowest node whose subtree changed */

    tn_assert(tree->count > 0);
    if (node->child[SMALLER] && node->child[GREATER]) {
        struct tn_tree_node *const heir = tn_tree_next(node);

        start = heir->parent == node ? heir : heir->parent;
        node_replace(tree, heir, heir->child[GREATER]);
        node_take_place(tree, heir, node);
    } else {
        node_replace(tree, node, node->child[node->child[SMALLER] ? SMALLER : GREATER]);
    }
    tree->count--;
    tree_rebalance(tree, start);
}

struct tn_tree_node *tn_tree_find(const struct tn_tree *tree, const struct tn_tree_node *key)
{
    struct tn_tree_node *node = tree->root;

    while (node) {
        const int order = tree->compare(key, node);

        if (order == 0) {
            return node;
        }
        node = node->child[order > 0];
    }
    return NULL;
}

/* The nearest node on one side of the key, the equal one included. */
static struct tn_tree_node *tree_find_near(const struct tn_tree *tree,
                                           const struct tn_tree_node *key, int side)
{
    struct tn_tree_node *node = tree->root;
    struct tn_tree_node *best = NULL;

    while (node) {
        const int order = tree->compare(key, node);

        if (order == 0) {
            return node;
        }
        const int turn = order > 0 ? GREATER : SMALLER;
        if (turn != side) {
            best = node;
        }
        node = node->child[turn];
    }
    return best;
}

struct tn_tree_node *tn_tree_find_at_least(const struct tn_tree *tree,
                                           const struct tn_tree_node *key)
{
    return tree_find_near(tree, key, GREATER);
}

struct tn_tree_node *tn_tree_find_at_most(const struct tn_tree *tree,
                                          const struct tn_tree_node *key)
{
    return tree_find_near(tree, key, SMALLER);
}

static struct tn_tree_node *node_outermost(struct tn_tree_node *node, int side)
{
    while (node && node->child[side]) {
        node = node->child[side];
    }
    return node;
}

static struct tn_tree_node *node_step(const struct tn_tree_node *node, int side)
{
    if (node->child[side]) {
        return node_outermost(node->child[side], !side);
    }
    while (node->parent && node->parent->child[side] == node) {
        node = node->parent;
    }
    return node->parent;
}

struct tn_tree_node *tn_tree_first(const struct tn_tree *tree)
{
    return node_outermost(tree->root, SMALLER);
}

struct tn_tree_node *tn_tree_next(const struct tn_tree_node *node)
{
    return node_step(node, GREATER);
}

struct tn_tree_node *tn_tree_prev(const struct tn_tree_node *node)
{
    return node_step(node, SMALLER);
}

void tn_tree_refresh(const struct tn_tree *tree, struct tn_tree_node *node)
{
    for (; node; node = node->parent) {
        tree->refresh(node);
    }
}

/* Returns the actual height of the subtree. */
static int subtree_check(const struct tn_tree_node *node, const struct tn_tree_node *parent,
                         struct tarn_findings *findings)
{
    if (!node) {
        return 0;
    }
    const int a = subtree_check(node->child[SMALLER], node, findings);
    const int b = subtree_check(node->child[GREATER], node, findings);
    const int height = 1 + (a > b ? a : b);

    if (node->parent != parent) {
        tn_finding_add(findings, "tree: a node's parent link is wrong");
    }
    if (a - b > 1 || b - a > 1) {
        tn_finding_add(findings, "tree: sibling heights %d and %d", a, b);
    }
    if (node->height != height) {
        tn_finding_add(findings, "tree: height %d stored, %d counted", node->height, height);
    }
    return height;
}

uint64_t tn_tree_check(const struct tn_tree *tree, struct tarn_findings *findings)
{
    const uint64_t before = findings->count;
    const struct tn_tree_node *previous = NULL;
    size_t count = 0;

    (void)subtree_check(tree->root, NULL, findings);
    if (findings->count != before) {
        return findings->count - before; /* the walk below needs valid links */
    }
    for (const struct tn_tree_node *node = tn_tree_first(tree); node; node = tn_tree_next(node)) {
        if (previous && tree->compare(previous, node) >= 0) {
            tn_finding_add(findings, "tree: nodes %zu and %zu out of order", count - 1, count);
        }
        previous = node;
        count++;
    }
    if (count != tree->count) {
        tn_finding_add(findings, "tree: count %zu stored, %zu counted", tree->count, count);
    }
    return findings->count - before;
}
