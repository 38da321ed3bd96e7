/* SPDX-License-Identifier: MIT */
/*
 * What keys do in `tarn tree`: a state machine over the model, without a screen and without a
 * snapshot. It moves, folds, sorts and searches by itself; what needs the snapshot (another time
 * point, another grouping, the children of a lazy node) is returned as a wish, which the caller
 * grants and confirms with cli_tree_view_loaded or cli_tree_view_refused.
 */
#ifndef CLI_TREE_KEYS_H
#define CLI_TREE_KEYS_H

#include "tree_model.h"

enum {
    CLI_TREE_INPUT_MAX = 80,
    CLI_TREE_MESSAGE_MAX = 240
};

/* What the tree is made of, in the order of cli_tree_groups. */
enum cli_tree_group {
    CLI_TREE_CALLS,
    CLI_TREE_MODULES,
    CLI_TREE_CATEGORIES, /* below each its calls */
    CLI_TREE_STREAMS     /* below each its pools, and below those the calls */
};
extern const char *const cli_tree_groups[];

/* Keys that are not characters. */
enum cli_tree_key {
    CLI_KEY_UP = 0x1000,
    CLI_KEY_DOWN,
    CLI_KEY_LEFT,
    CLI_KEY_RIGHT,
    CLI_KEY_PAGE_UP,
    CLI_KEY_PAGE_DOWN,
    CLI_KEY_HOME,
    CLI_KEY_END,
    CLI_KEY_ENTER,
    CLI_KEY_ESCAPE,
    CLI_KEY_BACKSPACE,
    CLI_KEY_TAB
};

enum cli_tree_wish {
    CLI_TREE_NO_WISH,
    CLI_TREE_QUIT,
    CLI_TREE_LOAD,       /* `when` or `group` changed */
    CLI_TREE_LOAD_BELOW, /* the node at the cursor is lazy */
    CLI_TREE_STEP_BACK,  /* to the end of the step before, or after, the time point */
    CLI_TREE_STEP_ON
};

enum cli_tree_prompt {
    CLI_TREE_NO_PROMPT,
    CLI_TREE_SEARCH,
    CLI_TREE_TIME
};

struct cli_tree_view {
    struct cli_tree *tree;
    enum cli_tree_group group;
    enum cli_tree_group group_before; /* if the wish is refused */
    uint32_t cursor;                  /* row */
    uint32_t top;                     /* first row on the screen */
    uint32_t height;                  /* rows on the screen; at least 1 */
    enum cli_tree_prompt prompt;
    char input[CLI_TREE_INPUT_MAX];
    uint32_t node_before; /* where the search began */
    char search[CLI_TREE_INPUT_MAX];
    char message[CLI_TREE_MESSAGE_MAX]; /* until the next key */
    char when[CLI_TREE_INPUT_MAX];      /* time point that is wanted, as of --at */
    char when_before[CLI_TREE_INPUT_MAX];
    bool shows_help;
};

/* The view of a tree that is loaded, at its root. */
void cli_tree_view_init(struct cli_tree_view *view, struct cli_tree *tree,
                        enum cli_tree_group group, const char *when);

/* A key: a byte of text, or enum cli_tree_key. */
enum cli_tree_wish cli_tree_view_key(struct cli_tree_view *view, int key);

/* The height of the screen changed. */
void cli_tree_view_resize(struct cli_tree_view *view, uint32_t height);

/* The wish was granted: the tree has been replaced, `node` is where the cursor goes. */
void cli_tree_view_loaded(struct cli_tree_view *view, uint32_t node);

/* It was not; `why` is shown. */
void cli_tree_view_refused(struct cli_tree_view *view, const char *why);

/* The node at the cursor. */
uint32_t cli_tree_view_node(const struct cli_tree_view *view);

#endif
