/* SPDX-License-Identifier: MIT */
/*
 * Fills the tree of `tarn tree` from a snapshot: the report `live` at a time point, as calls, by
 * module, by category, or by stream and pool. The parts of a category, a stream or a pool are
 * loaded when they are opened.
 *
 * Cost: that of `tarn live`, a quarter of a second for a million events.
 */
#ifndef CLI_TREE_LOAD_H
#define CLI_TREE_LOAD_H

#include "tarn/report.h"
#include "tree_keys.h"

/* What is read. The caller sets everything. */
struct cli_tree_source {
    const struct tarn_snapshot *snapshot;
    struct tarn_report_options options; /* one device, once something was loaded */
    struct tarn_selection selection;
    const char *where; /* text of selection.where; NULL: none */
};

/* Where in the run the tree is. */
struct cli_tree_place {
    struct tarn_report_head head;
    struct tarn_time_point at;
};

/* Replaces an empty tree. TARN_ERR_INVALID_ARGUMENT for a time point that cannot be read; on
 * failure the tree must be released all the same. */
enum tarn_status cli_tree_load(struct cli_tree_source *source, enum cli_tree_group group,
                               const char *when, struct cli_tree *tree,
                               struct cli_tree_place *place_out, struct tarn_error *error);

/* Loads what is below a lazy node. On failure the tree is still valid. */
enum tarn_status cli_tree_load_below(const struct cli_tree_source *source,
                                     enum cli_tree_group group, const struct cli_tree_place *place,
                                     struct cli_tree *tree, uint32_t node,
                                     struct tarn_error *error);

/* The last event of the step before, or after, the place. TARN_ERR_NOT_FOUND: there is none. */
enum tarn_status cli_tree_step(const struct cli_tree_source *source,
                               const struct cli_tree_place *place, bool is_back,
                               uint64_t *event_out, struct tarn_error *error);

#endif
