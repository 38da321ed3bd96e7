/* SPDX-License-Identifier: MIT */
#include "tree_load.h"

#include "select_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABEL_MAX = 1024,
    WHERE_MAX = 8192
};

static const enum tarn_grouping groupings[] = {
    [CLI_TREE_CALLS] = TARN_BY_STACK,
    [CLI_TREE_MODULES] = TARN_BY_MODULE,
    [CLI_TREE_CATEGORIES] = TARN_BY_CATEGORY,
    [CLI_TREE_STREAMS] = TARN_BY_STREAM,
};

static enum tarn_status fail_memory(struct tarn_error *error)
{
    *error = (struct tarn_error){.status = TARN_ERR_HOST_MEMORY, .offset = -1};
    (void)snprintf(error->text, sizeof error->text, "no host memory for the tree");
    return TARN_ERR_HOST_MEMORY;
}

static enum tarn_status fail(struct tarn_error *error, enum tarn_status status, const char *text)
{
    *error = (struct tarn_error){.status = status, .offset = -1};
    (void)snprintf(error->text, sizeof error->text, "%s", text);
    return status;
}

/* ---- nodes ---- */

/* The tree of calls below a node, which stands for its root. */
static bool calls_add(struct cli_tree *tree, uint32_t top, const struct tarn_holders *holders)
{
    uint32_t *numbers = calloc(holders->tree_count + 1, sizeof *numbers);
    bool good = numbers != NULL;

    for (size_t i = 0; good && i < holders->tree_count; i++) {
        const struct tarn_holder *row = &holders->tree[i];

        numbers[i] = i == 0 ? top
                            : cli_tree_add(tree, numbers[row->call.parent], row->group.text,
                                           row->bytes, row->blocks);
        good = numbers[i] != CLI_TREE_NONE;
    }
    free(numbers);
    return good;
}

static bool rows_add(struct cli_tree *tree, uint32_t top, const struct tarn_holders *holders)
{
    for (size_t i = 0; i < holders->row_count; i++) {
        const struct tarn_holder *row = &holders->rows[i];
        const uint32_t node = cli_tree_add(tree, top, row->group.text, row->bytes, row->blocks);

        if (node == CLI_TREE_NONE) {
            return false;
        }
        tree->nodes[node].is_lazy = true;
    }
    return true;
}

static uint32_t child_find(const struct cli_tree *tree, uint32_t parent, const char *label)
{
    uint32_t child = tree->nodes[parent].first;

    while (child != CLI_TREE_NONE && strcmp(tree->nodes[child].label, label) != 0) {
        child = tree->nodes[child].next;
    }
    return child;
}

/* Adds a module by its path, "model.layers.0": a node for each part, with the sums of all that are
 * below. What a module holds besides its parts is a node of its own. */
static bool module_add(struct cli_tree *tree, const struct tarn_holder *row)
{
    const char *rest = row->group.text;
    uint32_t node = 0;

    while (*rest) {
        const size_t length = rest[0] == '(' ? strlen(rest) : strcspn(rest, ".");
        size_t kept = length < LABEL_MAX ? length : LABEL_MAX - 1;
        char part[LABEL_MAX];

        while (kept < length && kept > 0 && ((unsigned char)rest[kept] & 0xC0U) == 0x80) {
            kept--; /* no part of a character */
        }
        (void)snprintf(part, sizeof part, "%.*s", (int)kept, rest);
        uint32_t child = child_find(tree, node, part);

        if (child == CLI_TREE_NONE) {
            child = cli_tree_add(tree, node, part, 0, 0);
        }
        if (child == CLI_TREE_NONE) {
            return false;
        }
        node = child;
        tree->nodes[node].bytes += row->bytes;
        tree->nodes[node].blocks += row->blocks;
        rest += length + (rest[length] == '.');
    }
    return true;
}

/* What a module holds itself, beside modules within it. */
static bool itself_add(struct cli_tree *tree, uint32_t node)
{
    uint64_t bytes = tree->nodes[node].bytes;
    uint64_t blocks = tree->nodes[node].blocks;

    if (tree->nodes[node].first == CLI_TREE_NONE) {
        return true;
    }
    for (uint32_t i = tree->nodes[node].first; i != CLI_TREE_NONE; i = tree->nodes[i].next) {
        bytes -= tree->nodes[i].bytes;
        blocks -= tree->nodes[i].blocks;
    }
    return blocks == 0 || cli_tree_add(tree, node, "(itself)", bytes, blocks) != CLI_TREE_NONE;
}

static bool modules_add(struct cli_tree *tree, const struct tarn_holders *holders)
{
    for (size_t i = 0; i < holders->row_count; i++) {
        if (!module_add(tree, &holders->rows[i])) {
            return false;
        }
    }
    for (uint32_t node = tree->count; node-- > 1;) {
        if (!itself_add(tree, node)) {
            return false;
        }
    }
    return true;
}

/* ---- loading ---- */

static enum tarn_status holders_compute(const struct cli_tree_source *source,
                                        const struct tarn_selection *selection,
                                        enum tarn_grouping by, struct tarn_live_result **results,
                                        size_t *count, struct tarn_error *error)
{
    struct tarn_report_options options = source->options;

    options.selection = selection;
    options.by = by;
    options.tree = by == TARN_BY_STACK;
    options.rows = UINT64_MAX;
    options.min_share = 0;
    return tarn_live_compute(source->snapshot, &options, results, count, error);
}

static bool tree_fill(struct cli_tree *tree, enum cli_tree_group group,
                      const struct tarn_holders *holders)
{
    if (cli_tree_add(tree, CLI_TREE_NONE, "total", holders->total.bytes, holders->total.blocks) ==
        CLI_TREE_NONE) {
        return false;
    }
    if (group == CLI_TREE_CALLS) {
        return calls_add(tree, 0, holders);
    }
    return group == CLI_TREE_MODULES ? modules_add(tree, holders) : rows_add(tree, 0, holders);
}

static enum tarn_status instant_read(const char *when, struct tarn_instant *at,
                                     struct tarn_error *error)
{
    return cli_read_instant(when, at)
               ? TARN_OK
               : fail(error, TARN_ERR_INVALID_ARGUMENT,
                      "no time point; allowed: peak, reserved-peak, start, end, oom[:N], event:N, "
                      "time:T, step:N");
}

/* Of several devices the one with the most memory. */
static const struct tarn_live_result *largest(const struct tarn_live_result *results, size_t count)
{
    const struct tarn_live_result *best = results;

    for (size_t i = 1; i < count; i++) {
        if (results[i].composition.at.requested > best->composition.at.requested) {
            best = &results[i];
        }
    }
    return best;
}

enum tarn_status cli_tree_load(struct cli_tree_source *source, enum cli_tree_group group,
                               const char *when, struct cli_tree *tree,
                               struct cli_tree_place *place_out, struct tarn_error *error)
{
    struct tarn_selection selection = source->selection;
    struct tarn_live_result *results = NULL;
    size_t count = 0;
    enum tarn_status status = instant_read(when, &selection.at, error);

    if (status == TARN_OK) {
        status = holders_compute(source, &selection, groupings[group], &results, &count, error);
    }
    if (status == TARN_OK && count == 0) {
        status = fail(error, TARN_ERR_NOT_FOUND, "the file has no device with memory");
    }
    if (status == TARN_OK) {
        const struct tarn_live_result *live = largest(results, count);

        source->options.one_device = true;
        source->options.device = live->head.device;
        *place_out = (struct cli_tree_place){live->head, live->composition.at};
        status = tree_fill(tree, group, &live->composition.holders) ? TARN_OK : fail_memory(error);
        cli_tree_sort(tree, tree->order);
    }
    tarn_report_destroy(results);
    return status;
}

/* ---- below a lazy node ---- */

/* A category's name, without what the report says of how it was found, "(by lifetime)". */
static void category_name(char name[LABEL_MAX], const char *label)
{
    const char *by = strstr(label, " (by ");

    (void)snprintf(name, LABEL_MAX, "%.*s", (int)(by ? by - label : (ptrdiff_t)strlen(label)),
                   label);
}

static enum tarn_status category_where(const struct cli_tree_source *source, const char *label,
                                       struct tarn_where **where_out, struct tarn_error *error)
{
    char name[LABEL_MAX];
    char text[WHERE_MAX];

    category_name(name, label);
    (void)snprintf(text, sizeof text, "%s%s%scategory == \"%s\"", source->where ? "(" : "",
                   source->where ? source->where : "", source->where ? ") && " : "", name);
    return tarn_where_parse(text, where_out, error);
}

/* "private (0, 2)", "default"; false if it is neither. */
static bool pool_read(const char *label, struct tarn_selection *selection)
{
    char *end;

    if (strcmp(label, "default") == 0) {
        selection->pools = TARN_POOLS_DEFAULT;
        return true;
    }
    if (strncmp(label, "private (", 9) != 0) {
        return false;
    }
    selection->pools = TARN_POOLS_ONE;
    selection->pool[0] = strtoull(label + 9, &end, 10);
    if (strncmp(end, ", ", 2) != 0) {
        return false;
    }
    selection->pool[1] = strtoull(end + 2, &end, 10);
    return strcmp(end, ")") == 0;
}

static bool stream_read(const char *label, struct tarn_selection *selection)
{
    char *end;

    if (strncmp(label, "stream ", 7) != 0) {
        return false;
    }
    errno = 0;
    selection->one_stream = true;
    selection->stream = strtoull(label + 7, &end, 10);
    return errno == 0 && end != label + 7 && !*end;
}

/* The blocks of a node of the grouping by stream: of a stream, or of a pool within one. */
static bool stream_select(const struct cli_tree *tree, uint32_t node,
                          struct tarn_selection *selection)
{
    const struct cli_tree_node *at = &tree->nodes[node];

    return at->depth == 1 ? stream_read(at->label, selection)
                          : pool_read(at->label, selection) &&
                                stream_read(tree->nodes[at->parent].label, selection);
}

static bool below_add(struct cli_tree *tree, uint32_t node, enum tarn_grouping by,
                      const struct tarn_holders *holders)
{
    return by == TARN_BY_STACK ? calls_add(tree, node, holders) : rows_add(tree, node, holders);
}

enum tarn_status cli_tree_load_below(const struct cli_tree_source *source,
                                     enum cli_tree_group group, const struct cli_tree_place *place,
                                     struct cli_tree *tree, uint32_t node, struct tarn_error *error)
{
    struct tarn_selection selection = source->selection;
    const bool is_stream = group == CLI_TREE_STREAMS;
    const enum tarn_grouping by =
        is_stream && tree->nodes[node].depth == 1 ? TARN_BY_POOL : TARN_BY_STACK;
    struct tarn_live_result *results = NULL;
    struct tarn_where *where = NULL;
    size_t count = 0;
    enum tarn_status status = TARN_OK;

    selection.at =
        (struct tarn_instant){.kind = place->at.event != TARN_NONE ? TARN_AT_EVENT
                                      : place->head.events > 0     ? TARN_AT_START
                                                                   : TARN_AT_END,
                              .number = place->at.event != TARN_NONE ? place->at.event : 0};
    if (!is_stream) {
        status = category_where(source, tree->nodes[node].label, &where, error);
        selection.where = where;
    } else if (!stream_select(tree, node, &selection)) {
        status = fail(error, TARN_ERR_NOT_SUPPORTED, "what is below cannot be selected");
    }
    if (status == TARN_OK) {
        status = holders_compute(source, &selection, by, &results, &count, error);
    }
    if (status == TARN_OK &&
        (count == 0 || results->composition.holders.total.bytes != tree->nodes[node].bytes)) {
        status = fail(error, TARN_ERR_NOT_SUPPORTED,
                      "these calls cannot be told from those of another category");
    }
    if (status == TARN_OK) {
        const uint32_t before = tree->count;

        tree->nodes[node].is_lazy = false;
        status =
            below_add(tree, node, by, &results->composition.holders) ? TARN_OK : fail_memory(error);
        tree->nodes[node].is_open = tree->count > before;
        cli_tree_sort(tree, tree->order);
    }
    tarn_report_destroy(results);
    tarn_where_destroy(where);
    return status;
}

/* ---- steps ---- */

enum tarn_status cli_tree_step(const struct cli_tree_source *source,
                               const struct cli_tree_place *place, bool is_back,
                               uint64_t *event_out, struct tarn_error *error)
{
    struct tarn_report_options options = source->options;
    struct tarn_steps_result *steps;
    uint64_t found = TARN_NONE;
    size_t count;
    const enum tarn_status status =
        tarn_steps_compute(source->snapshot, &options, &steps, &count, error);

    if (status) {
        return status;
    }
    for (size_t i = 0; count > 0 && i < steps->row_count; i++) {
        const uint64_t end = steps->rows[i].last_event;

        if (is_back && place->at.event != TARN_NONE && end < place->at.event) {
            found = end;
        }
        if (!is_back && found == TARN_NONE &&
            (place->at.event == TARN_NONE || end > place->at.event)) {
            found = end;
        }
    }
    tarn_report_destroy(steps);
    if (found == TARN_NONE) {
        return fail(error, TARN_ERR_NOT_FOUND,
                    is_back ? "this is the first step" : "this is the last step");
    }
    *event_out = found;
    return TARN_OK;
}
