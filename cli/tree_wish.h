/* SPDX-License-Identifier: MIT */
/* What `tarn tree` does with a wish of its view: reads the snapshot, and replaces or extends the
 * tree. */
#ifndef CLI_TREE_WISH_H
#define CLI_TREE_WISH_H

#include "tree_load.h"

/* Unfolds what has at least this share, in percent, when a tree is new. */
#define CLI_TREE_OPEN_SHARE 20.0
#define CLI_TREE_OPEN_DEPTH 12

/* Grants the wish, or tells the view why not. The cursor and what is folded stay where they were,
 * as far as the new tree has the same nodes. */
void cli_tree_grant(struct cli_tree_source *source, struct cli_tree_view *view,
                    struct cli_tree_place *place, enum cli_tree_wish wish);

#endif
