/* SPDX-License-Identifier: MIT */
/* `tarn tree`: walks live memory in a terminal, or prints it as a tree. */
#include "escape.h"
#include "output.h"
#include "screen.h"
#include "select_opt.h"
#include "size_text.h"
#include "tree_screen.h"
#include "tree_wish.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct tree_values {
    struct cli_select_values select;
    int group; /* enum cli_tree_group */
    int order; /* enum cli_tree_order */
    uint64_t levels;
    double min_share;
    bool once;
};

static const struct tree_values tree_defaults = {.select = CLI_SELECT_DEFAULTS, .min_share = 1};

/* In the order of enum cli_tree_order. */
static const char *const orders[] = {"size", "count", "name", NULL};

static const struct cli_opt tree_opts[] = {
    {.name = "by",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct tree_values, group),
     .choices = cli_tree_groups,
     .help = "what the tree is made of; stream: of streams, their pools, and calls"},
    {.name = "sort",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct tree_values, order),
     .choices = orders,
     .help = "sort order of siblings"},
    {.name = "once",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct tree_values, once),
     .help = "print the tree as text, as is done without a terminal"},
    {.name = "depth",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct tree_values, levels),
     .value = "N",
     .help = "levels of the text below the total (default: all)"},
    {.name = "min-share",
     .kind = CLI_OPT_REAL,
     .at = offsetof(struct tree_values, min_share),
     .value = "PERCENT",
     .help = "smallest share of a line of the text (default: 1); the rest is summed"},
    CLI_SELECT_WHICH_OPTS(struct tree_values),
    CLI_SELECT_AT_OPT(struct tree_values),
    {.name = "frames",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct tree_values, select.frames),
     .choices = cli_frames_choices,
     .help = "which stack frames to use"},
    CLI_SELECT_ROW(struct tree_values, hide, "hide", CLI_OPT_TEXT, "REGEX", "drop matching frames"),
    CLI_SELECT_RULES_OPT(struct tree_values),
    {0}};

/* One run. */
struct tree_run {
    const struct cli_call *call;
    const char *when;
    struct cli_tree_source source;
    struct cli_tree_place place;
    struct cli_tree tree;
};

/* ---- text ---- */

static void row_print(const struct tree_run *run, uint32_t node, unsigned width)
{
    const struct cli_tree_node *at = &run->tree.nodes[node];
    const bool is_folded = cli_tree_has_below(&run->tree, node) && !at->is_open;
    char numbers[CLI_TREE_NUMBERS_MAX];
    char label[CLI_TREE_LABEL_MAX];

    cli_tree_size_text(numbers, &run->tree, node);
    const unsigned used = (unsigned)strlen(numbers) + 10 + 2 + at->depth * 2 + 2;

    (void)printf("%s%10" PRIu64 "  %*s%s", numbers, at->blocks, (int)(at->depth * 2), "",
                 is_folded ? "+ " : "");
    if (width > 0) {
        cli_tree_label_text(label, at->label, width > used + 20 ? width - used : 20, false);
    }
    (void)puts(width > 0 ? label : at->label);
}

static void text_print(const struct tree_run *run)
{
    char place[512];

    cli_tree_place_text(place, sizeof place, &run->place, run->when);
    (void)printf("device %d, %s\n\n", run->place.head.device, place);
    (void)printf("%*s  share    blocks  %s\n", cli_units() == TARN_UNITS_BYTES ? 17 : 11, "size",
                 ((const struct tree_values *)run->call->values)->group == CLI_TREE_CALLS
                     ? "allocated by"
                     : cli_tree_groups[((const struct tree_values *)run->call->values)->group]);
    for (uint32_t row = 0; row < run->tree.row_count; row++) {
        row_print(run, run->tree.rows[row], run->call->terminal->width);
    }
}

/* Loads what the text shows of lazy nodes. */
static enum tarn_status lazy_load(struct tree_run *run, struct tarn_error *error)
{
    const struct tree_values *values = run->call->values;
    enum tarn_status status = TARN_OK;

    for (uint32_t i = 0; i < run->tree.count && status == TARN_OK; i++) {
        const struct cli_tree_node *node = &run->tree.nodes[i];

        if (node->is_lazy && (values->levels == 0 || node->depth < values->levels) &&
            cli_tree_share(&run->tree, i) >= values->min_share) {
            status = cli_tree_load_below(&run->source, (enum cli_tree_group)values->group,
                                         &run->place, &run->tree, i, error);
            if (status == TARN_ERR_NOT_SUPPORTED) { /* the node says what there is */
                run->tree.nodes[i].is_lazy = false;
                status = TARN_OK;
            }
        }
    }
    return status;
}

static enum tarn_status once_run(struct tree_run *run, struct tarn_error *error)
{
    const struct tree_values *values = run->call->values;
    const enum tarn_status status = lazy_load(run, error);

    if (status) {
        return status;
    }
    if (!cli_tree_leave_out(&run->tree, values->min_share)) {
        return TARN_ERR_HOST_MEMORY;
    }
    cli_tree_open(&run->tree, 0,
                  values->levels > 0 && values->levels < UINT32_MAX ? (uint32_t)values->levels
                                                                    : UINT32_MAX);
    text_print(run);
    return TARN_OK;
}

/* ---- the terminal ---- */

static enum cli_exit screen_run(struct tree_run *run)
{
    const struct tree_values *values = run->call->values;
    const char *slash = strrchr(run->call->arguments[0], '/');
    const struct cli_escaped name = cli_escaped(slash ? slash + 1 : run->call->arguments[0]);
    struct cli_tree_view view;
    struct cli_tree_screen screen = {.source = &run->source,
                                     .view = &view,
                                     .place = &run->place,
                                     .name = name.text,
                                     .has_color = run->call->terminal->out_color};
    const char *why = NULL;

    cli_tree_open(&run->tree, CLI_TREE_OPEN_SHARE, CLI_TREE_OPEN_DEPTH);
    cli_tree_view_init(&view, &run->tree, (enum cli_tree_group)values->group, run->when);
    return cli_tree_screen_run(&screen, &why) ? CLI_EXIT_OK
                                              : cli_fail(run->call->command, CLI_EXIT_USAGE,
                                                         "%s; --once prints the tree as text", why);
}

/* ---- running ---- */

static enum cli_exit tree_show(struct tree_run *run)
{
    const struct tree_values *values = run->call->values;
    const bool wants_screen = !values->once && cli_screen_is_possible();
    struct tarn_error error = {.offset = -1};
    enum tarn_status status = cli_tree_load(&run->source, (enum cli_tree_group)values->group,
                                            run->when, &run->tree, &run->place, &error);

    if (status == TARN_OK && wants_screen && cli_tree_screen_is_built()) {
        return screen_run(run);
    }
    if (status == TARN_OK) {
        if (wants_screen) {
            cli_note("this build has no terminal view, since ncurses was missing");
        }
        status = once_run(run, &error);
    }
    return status ? cli_fail_status(run->call->command, status, &error, NULL) : CLI_EXIT_OK;
}

static enum cli_exit tree_run(const struct cli_call *call)
{
    const struct tree_values *values = call->values;
    struct cli_selected selected;
    struct tree_run run = {.call = call};
    int code;
    enum cli_exit shown = cli_select_read(call->command, &values->select, &selected);

    if (shown) {
        return shown;
    }
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (snapshot) {
        run.source = (struct cli_tree_source){
            .snapshot = snapshot,
            .options = {.struct_size = sizeof run.source.options, .units = cli_units()},
            .selection = selected.selection,
            .where = values->select.where};
        cli_select_apply(&selected, &values->select, &run.source.options);
        run.when = values->select.at ? values->select.at : "peak";
        cli_tree_init(&run.tree);
        run.tree.order = (enum cli_tree_order)values->order;
        shown = tree_show(&run);
        cli_tree_fini(&run.tree);
        tarn_snapshot_destroy(snapshot);
    }
    cli_select_release(&selected);
    return shown ? shown : (enum cli_exit)code;
}

const struct cli_command cli_command_tree = {
    .name = "tree",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "walk what memory consists of, in the terminal",
    .details = "Shows the peak as a tree of calls, and folds, sorts and searches it; other keys\n"
               "jump to another time point or group by module, category or stream and pool.\n"
               "? lists the keys, q quits. Without a terminal, and with --once, the tree is\n"
               "printed as text.\n",
    .examples = "tarn tree dump.pickle\n"
                "tarn tree --once --by category --min-share 5 dump.pickle\n"
                "tarn tree --once --at end --depth 3 dump.pickle",
    .is_unpaged = true,
    .is_redirected = true,
    .prints_sizes = true,
    .opts = tree_opts,
    .values_size = sizeof(struct tree_values),
    .defaults = &tree_defaults,
    .run = tree_run,
};
