/* SPDX-License-Identifier: MIT */
#include "tree_wish.h"

#include <inttypes.h>
#include <stdio.h>

/* Puts another tree in the place of the view's, which is released. */
static void tree_replace(struct cli_tree_view *view, struct cli_tree *tree)
{
    const uint64_t path = view->tree->nodes[cli_tree_view_node(view)].path;

    cli_tree_open(tree, CLI_TREE_OPEN_SHARE, CLI_TREE_OPEN_DEPTH);
    if (!cli_tree_adopt(tree, view->tree)) {
        cli_tree_update(tree);
    }
    cli_tree_fini(view->tree);
    *view->tree = *tree;
    cli_tree_view_loaded(view, cli_tree_find_path(view->tree, path));
}

static void load(struct cli_tree_source *source, struct cli_tree_view *view,
                 struct cli_tree_place *place)
{
    struct cli_tree_place found = *place;
    struct cli_tree tree;
    struct tarn_error error = {.offset = -1};

    cli_tree_init(&tree);
    tree.order = view->tree->order;
    if (cli_tree_load(source, view->group, view->when, &tree, &found, &error) != TARN_OK) {
        cli_tree_fini(&tree);
        cli_tree_view_refused(view, error.text);
        return;
    }
    *place = found;
    tree_replace(view, &tree);
}

static void step(struct cli_tree_source *source, struct cli_tree_view *view,
                 struct cli_tree_place *place, bool is_back)
{
    struct tarn_error error = {.offset = -1};
    uint64_t event = 0;

    if (cli_tree_step(source, place, is_back, &event, &error) != TARN_OK) {
        cli_tree_view_refused(view, error.text);
        return;
    }
    (void)snprintf(view->when, sizeof view->when, "event:%" PRIu64, event);
    load(source, view, place);
}

static void load_below(const struct cli_tree_source *source, struct cli_tree_view *view,
                       const struct cli_tree_place *place)
{
    const uint32_t node = cli_tree_view_node(view);
    struct tarn_error error = {.offset = -1};

    if (cli_tree_load_below(source, view->group, place, view->tree, node, &error) != TARN_OK) {
        cli_tree_view_refused(view, error.text);
    }
    cli_tree_view_loaded(view, node);
}

void cli_tree_grant(struct cli_tree_source *source, struct cli_tree_view *view,
                    struct cli_tree_place *place, enum cli_tree_wish wish)
{
    switch (wish) {
    case CLI_TREE_LOAD:
        load(source, view, place);
        break;
    case CLI_TREE_LOAD_BELOW:
        load_below(source, view, place);
        break;
    case CLI_TREE_STEP_BACK:
    case CLI_TREE_STEP_ON:
        step(source, view, place, wish == CLI_TREE_STEP_BACK);
        break;
    case CLI_TREE_NO_WISH:
    case CLI_TREE_QUIT:
        break;
    }
}
