/* SPDX-License-Identifier: MIT */
#include "tree_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const cli_tree_groups[] = {"calls", "module", "category", "stream", NULL};

static const char *const orders[] = {"size", "count", "name"};

uint32_t cli_tree_view_node(const struct cli_tree_view *view)
{
    return view->tree->rows[view->cursor];
}

/* ---- moving ---- */

static void scroll(struct cli_tree_view *view)
{
    const uint32_t rows = view->tree->row_count;

    view->cursor = view->cursor < rows ? view->cursor : rows - 1;
    if (view->cursor < view->top) {
        view->top = view->cursor;
    }
    if (view->cursor >= view->top + view->height) {
        view->top = view->cursor - view->height + 1;
    }
    if (view->top > 0 && view->top + view->height > rows) {
        view->top = rows > view->height ? rows - view->height : 0;
    }
}

static void move_to(struct cli_tree_view *view, uint32_t node)
{
    view->cursor = cli_tree_row_of(view->tree, node);
    scroll(view);
}

static void move_by(struct cli_tree_view *view, int64_t rows)
{
    const int64_t to = (int64_t)view->cursor + rows;
    const int64_t last = (int64_t)view->tree->row_count - 1;

    view->cursor = (uint32_t)(to < 0 ? 0 : to > last ? last : to);
    scroll(view);
}

void cli_tree_view_resize(struct cli_tree_view *view, uint32_t height)
{
    view->height = height > 0 ? height : 1;
    scroll(view);
}

void cli_tree_view_init(struct cli_tree_view *view, struct cli_tree *tree,
                        enum cli_tree_group group, const char *when)
{
    *view =
        (struct cli_tree_view){.tree = tree, .group = group, .group_before = group, .height = 1};
    (void)snprintf(view->when, sizeof view->when, "%s", when);
    (void)snprintf(view->when_before, sizeof view->when_before, "%s", when);
}

void cli_tree_view_loaded(struct cli_tree_view *view, uint32_t node)
{
    view->group_before = view->group;
    (void)snprintf(view->when_before, sizeof view->when_before, "%s", view->when);
    move_to(view, node == CLI_TREE_NONE ? 0 : node);
}

void cli_tree_view_refused(struct cli_tree_view *view, const char *why)
{
    view->group = view->group_before;
    (void)snprintf(view->when, sizeof view->when, "%s", view->when_before);
    (void)snprintf(view->message, sizeof view->message, "%s", why);
}

/* ---- folding and sorting ---- */

static void fold(struct cli_tree_view *view, uint32_t node, bool is_open)
{
    view->tree->nodes[node].is_open = is_open;
    cli_tree_update(view->tree);
    move_to(view, node);
}

static enum cli_tree_wish unfold(struct cli_tree_view *view)
{
    const uint32_t node = cli_tree_view_node(view);

    if (view->tree->nodes[node].first == CLI_TREE_NONE) {
        return view->tree->nodes[node].is_lazy ? CLI_TREE_LOAD_BELOW : CLI_TREE_NO_WISH;
    }
    if (view->tree->nodes[node].is_open) {
        move_by(view, 1);
    } else {
        fold(view, node, true);
    }
    return CLI_TREE_NO_WISH;
}

static void fold_or_leave(struct cli_tree_view *view)
{
    const uint32_t node = cli_tree_view_node(view);

    if (view->tree->nodes[node].is_open) {
        fold(view, node, false);
    } else if (view->tree->nodes[node].parent != CLI_TREE_NONE) {
        move_to(view, view->tree->nodes[node].parent);
    }
}

static enum cli_tree_wish toggle(struct cli_tree_view *view)
{
    const uint32_t node = cli_tree_view_node(view);

    if (!view->tree->nodes[node].is_open) {
        return unfold(view);
    }
    fold(view, node, false);
    return CLI_TREE_NO_WISH;
}

static void fold_below(struct cli_tree_view *view, bool is_open)
{
    const uint32_t node = cli_tree_view_node(view);

    cli_tree_open_below(view->tree, node, is_open);
    move_to(view, node);
}

static void sort_next(struct cli_tree_view *view)
{
    const uint32_t node = cli_tree_view_node(view);
    const enum cli_tree_order order =
        view->tree->order == CLI_TREE_BY_NAME ? CLI_TREE_BY_SIZE : view->tree->order + 1;

    cli_tree_sort(view->tree, order);
    (void)snprintf(view->message, sizeof view->message, "sorted by %s", orders[order]);
    move_to(view, node);
}

/* ---- time and grouping ---- */

static enum cli_tree_wish jump(struct cli_tree_view *view, const char *when)
{
    (void)snprintf(view->when, sizeof view->when, "%s", when);
    return CLI_TREE_LOAD;
}

/* The first failed request, then one after another; the caller refuses one that there is not. */
static enum cli_tree_wish jump_to_oom(struct cli_tree_view *view)
{
    const uint64_t at =
        strncmp(view->when, "oom:", 4) == 0 ? strtoull(view->when + 4, NULL, 10) : 0;
    char when[CLI_TREE_INPUT_MAX];

    (void)snprintf(when, sizeof when, "oom:%" PRIu64, at + 1);
    return jump(view, when);
}

static enum cli_tree_wish group_next(struct cli_tree_view *view, enum cli_tree_group group)
{
    view->group = group <= CLI_TREE_STREAMS ? group : CLI_TREE_CALLS;
    return CLI_TREE_LOAD;
}

/* ---- what is typed ---- */

static void search_from(struct cli_tree_view *view, uint32_t from, bool is_inclusive, bool is_back)
{
    const char *text = view->prompt == CLI_TREE_SEARCH ? view->input : view->search;
    const uint32_t found =
        *text ? cli_tree_search(view->tree, from, text, is_inclusive, is_back) : from;

    if (!*text && view->prompt == CLI_TREE_NO_PROMPT) {
        (void)snprintf(view->message, sizeof view->message, "/ searches");
    } else if (found == CLI_TREE_NONE) {
        (void)snprintf(view->message, sizeof view->message, "nothing here contains \"%s\"", text);
        move_to(view, from);
    } else {
        cli_tree_reveal(view->tree, found);
        move_to(view, found);
    }
}

static void prompt_begin(struct cli_tree_view *view, enum cli_tree_prompt prompt)
{
    view->prompt = prompt;
    view->input[0] = '\0';
    view->node_before = cli_tree_view_node(view);
}

/* Enter. */
static enum cli_tree_wish prompt_end(struct cli_tree_view *view)
{
    const enum cli_tree_prompt prompt = view->prompt;

    view->prompt = CLI_TREE_NO_PROMPT;
    if (prompt == CLI_TREE_SEARCH) {
        memcpy(view->search, view->input, sizeof view->search);
        return CLI_TREE_NO_WISH;
    }
    return view->input[0] ? jump(view, view->input) : CLI_TREE_NO_WISH;
}

static void input_shorten(struct cli_tree_view *view)
{
    size_t length = strlen(view->input);

    while (length > 0 && ((unsigned char)view->input[length - 1] & 0xC0U) == 0x80) {
        length--; /* the rest of a character of several bytes */
    }
    view->input[length > 0 ? length - 1 : 0] = '\0';
}

static void input_add(struct cli_tree_view *view, int key)
{
    const size_t length = strlen(view->input);

    if (key >= ' ' && key != 0x7F && key <= 0xFF && length + 1 < sizeof view->input) {
        view->input[length] = (char)key;
        view->input[length + 1] = '\0';
    }
}

static enum cli_tree_wish prompt_key(struct cli_tree_view *view, int key)
{
    if (key == CLI_KEY_ENTER) {
        return prompt_end(view);
    }
    if (key == CLI_KEY_ESCAPE || (key == CLI_KEY_BACKSPACE && !view->input[0])) {
        if (view->prompt == CLI_TREE_SEARCH) {
            move_to(view, view->node_before);
        }
        view->prompt = CLI_TREE_NO_PROMPT;
        return CLI_TREE_NO_WISH;
    }
    if (key == CLI_KEY_BACKSPACE) {
        input_shorten(view);
    } else {
        input_add(view, key);
    }
    if (view->prompt == CLI_TREE_SEARCH) {
        search_from(view, view->node_before, true, false);
    }
    return CLI_TREE_NO_WISH;
}

/* ---- keys ---- */

/* Those that only move; false if it is none of them. */
static bool moved(struct cli_tree_view *view, int key)
{
    switch (key) {
    case CLI_KEY_UP:
    case 'k':
        move_by(view, -1);
        return true;
    case CLI_KEY_DOWN:
    case 'j':
        move_by(view, 1);
        return true;
    case CLI_KEY_PAGE_UP:
        move_by(view, -(int64_t)view->height);
        return true;
    case CLI_KEY_PAGE_DOWN:
        move_by(view, view->height);
        return true;
    case CLI_KEY_HOME:
        move_by(view, -(int64_t)view->tree->row_count);
        return true;
    case CLI_KEY_END:
        move_by(view, view->tree->row_count);
        return true;
    default:
        return false;
    }
}

/* Those that need the snapshot, and q. */
static enum cli_tree_wish wish_of(struct cli_tree_view *view, int key)
{
    switch (key) {
    case 'q':
        return CLI_TREE_QUIT;
    case 'p':
        return jump(view, "peak");
    case 'e':
        return jump(view, "end");
    case 'o':
        return jump_to_oom(view);
    case '[':
        return CLI_TREE_STEP_BACK;
    case ']':
        return CLI_TREE_STEP_ON;
    case 'g':
    case CLI_KEY_TAB:
        return group_next(view, view->group + 1);
    case '1':
    case '2':
    case '3':
    case '4':
        return group_next(view, (enum cli_tree_group)(key - '1'));
    case CLI_KEY_RIGHT:
    case 'l':
        return unfold(view);
    case CLI_KEY_ENTER:
    case ' ':
        return toggle(view);
    default:
        return CLI_TREE_NO_WISH;
    }
}

static enum cli_tree_wish command_key(struct cli_tree_view *view, int key)
{
    switch (key) {
    case CLI_KEY_LEFT:
    case 'h':
        fold_or_leave(view);
        break;
    case '*':
        fold_below(view, true);
        break;
    case '-':
        fold_below(view, false);
        break;
    case 's':
        sort_next(view);
        break;
    case '/':
        prompt_begin(view, CLI_TREE_SEARCH);
        break;
    case 't':
        prompt_begin(view, CLI_TREE_TIME);
        break;
    case 'n':
        search_from(view, cli_tree_view_node(view), false, false);
        break;
    case 'N':
        search_from(view, cli_tree_view_node(view), false, true);
        break;
    case '?':
        view->shows_help = true;
        break;
    default:
        return wish_of(view, key);
    }
    return CLI_TREE_NO_WISH;
}

enum cli_tree_wish cli_tree_view_key(struct cli_tree_view *view, int key)
{
    view->message[0] = '\0';
    if (view->shows_help) {
        view->shows_help = false;
        return CLI_TREE_NO_WISH;
    }
    if (view->prompt != CLI_TREE_NO_PROMPT) {
        return prompt_key(view, key);
    }
    return moved(view, key) ? CLI_TREE_NO_WISH : command_key(view, key);
}
