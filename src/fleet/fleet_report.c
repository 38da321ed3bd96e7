/* SPDX-License-Identifier: MIT */
/* `tarn ranks`: the comparison of render/ranks_report.h, and what the ranks have in common. */
#include "fleet/fleet_rows.h"

#include "base/escaped.h"
#include "base/plural.h"
#include "render/ranks_report.h"

#include <inttypes.h>
#include <string.h>

enum {
    MISSING_SHOWN = 10,
    PARTIAL_SHOWN = 10, /* files */
    PARTIAL_LISTED = 100
};

#define OF_LABEL(member)  .at = offsetof(struct tn_label_row, member)
#define OF_GROUP(member)  .at = offsetof(struct tn_group_row, member)
#define OF_GROWTH(member) .at = offsetof(struct tn_growth_row, member)

static void text_put(struct tn_text_out *out, const char *text)
{
    tn_text_put_escaped(out, text, strlen(text), TN_ESCAPED_PLAIN);
}

/* ---- tables ---- */

static void label_put(struct tn_text_out *out, const void *row)
{
    const struct tn_label_row *label = row;

    text_put(out, label->key);
    tn_text_putc(out, '=');
    text_put(out, label->value);
}

static const struct tn_row_column label_columns[] = {
    {"key", NULL, TN_ROW_TEXT, 0, OF_LABEL(key)},
    {"value", NULL, TN_ROW_TEXT, 0, OF_LABEL(value)},
    {"outliers", "outliers", TN_ROW_COUNT, 10, OF_LABEL(outliers)},
    {"ranks", "ranks", TN_ROW_COUNT, 8, OF_LABEL(ranks)},
    {"other_outliers", "elsewhere", TN_ROW_COUNT, 11, OF_LABEL(other_outliers)},
    {"other_ranks", "ranks", TN_ROW_COUNT, 8, OF_LABEL(other_ranks)},
    {NULL, "", TN_ROW_LABEL, .put = label_put},
    {0}};

static const struct tn_row_table label_table = {
    .columns = label_columns, .row_size = sizeof(struct tn_label_row), .others_key = "labels"};

static void group_put(struct tn_text_out *out, const void *row)
{
    const struct tn_group_row *group = row;

    text_put(out, group->labels[0] ? group->labels : group->file);
    tn_text_puts(out, group->labels[0] || group->ranks == 1 ? "" : " ...");
}

static const struct tn_row_column group_columns[] = {
    {"ranks", "ranks", TN_ROW_COUNT, 8, OF_GROUP(ranks)},
    {"outliers", "outliers", TN_ROW_COUNT, 10, OF_GROUP(outliers)},
    {"least_bytes", "least", TN_ROW_SIZE, 0, OF_GROUP(least)},
    {"most_bytes", "most", TN_ROW_SIZE, 0, OF_GROUP(most)},
    {"labels", NULL, TN_ROW_TEXT, 0, OF_GROUP(labels)},
    {"file", NULL, TN_ROW_TEXT, 0, OF_GROUP(file)},
    {NULL, "", TN_ROW_LABEL, .put = group_put},
    {0}};

static const struct tn_row_table group_table = {
    .columns = group_columns, .row_size = sizeof(struct tn_group_row), .others_key = "groups"};

static void place_put(struct tn_text_out *out, const void *row)
{
    const struct tn_growth_row *growth = row;

    text_put(out, growth->file);
    tn_text_printf(out, ", device %d", growth->device);
    if (growth->stack[0]) {
        tn_text_puts(out, "  ");
        tn_text_put(out, growth->stack, strlen(growth->stack));
    }
}

static const struct tn_row_column growth_columns[] = {
    {"file", NULL, TN_ROW_TEXT, 0, OF_GROWTH(file)},
    {"device", NULL, TN_ROW_INT, 0, OF_GROWTH(device)},
    {"per_step_bytes", "per step", TN_ROW_CHANGE, 0, OF_GROWTH(per_step)},
    {"change_bytes", "in all", TN_ROW_CHANGE, 0, OF_GROWTH(change)},
    {"since_step", "since step", TN_ROW_COUNT, 12, OF_GROWTH(since)},
    {"stack", NULL, TN_ROW_TEXT, 0, OF_GROWTH(stack)},
    {NULL, "", TN_ROW_LABEL, .put = place_put},
    {0}};

static const struct tn_row_table growth_table = {
    .columns = growth_columns, .row_size = sizeof(struct tn_growth_row), .others_key = "ranks"};

static const struct tn_row_column headroom_columns[] = {
    {"file", NULL, TN_ROW_TEXT, 0, OF_GROWTH(file)},
    {"device", NULL, TN_ROW_INT, 0, OF_GROWTH(device)},
    {"headroom_bytes", "headroom", TN_ROW_SIZE, 0, OF_GROWTH(headroom)},
    {"per_step_bytes", "per step", TN_ROW_CHANGE, 0, OF_GROWTH(per_step)},
    {"steps_left", "steps left", TN_ROW_EVENT, 12, OF_GROWTH(steps_left)},
    {NULL, "", TN_ROW_LABEL, .put = place_put},
    {0}};

static const struct tn_row_table headroom_table = {
    .columns = headroom_columns, .row_size = sizeof(struct tn_growth_row), .others_key = "ranks"};

/* ---- document ---- */

/* A table of all rows, or in text of the first ones under a heading; nothing where there are none,
 * except in JSON. */
static void table_put(struct tn_document *document, const struct tn_row_table *table,
                      const char *key, const char *heading, const struct tn_vec *vec,
                      uint64_t limit)
{
    const struct tn_rows rows = {.rows = vec->items,
                                 .count = document->text && limit < vec->count ? (size_t)limit
                                                                               : vec->count};

    if (document->text && vec->count == 0) {
        return;
    }
    if (document->text) {
        tn_text_printf(document->text, "\n%s\n", heading);
    }
    tn_table_put(document, table, key, &rows);
    if (document->text && rows.count < vec->count) {
        tn_text_printf(document->text, "  and %zu more\n", vec->count - rows.count);
    }
}

static void missing_text(struct tn_text_out *out, const struct tn_fleet_rows *rows)
{
    const uint64_t *numbers = rows->missing.items;
    const size_t count = rows->missing.count < MISSING_SHOWN ? rows->missing.count : MISSING_SHOWN;

    if (rows->missing_count == 0) {
        return;
    }
    tn_text_printf(out, "\nmissing of ranks 0 to %" PRIu64 ":", rows->highest_rank);
    for (size_t i = 0; i < count; i++) {
        tn_text_printf(out, "%s %" PRIu64, i > 0 ? "," : "", numbers[i]);
    }
    if (rows->missing_count > count) {
        tn_text_printf(out, " and %" PRIu64 " more", rows->missing_count - count);
    }
    tn_text_putc(out, '\n');
}

/* Their figures are those of a part of the run, so it matters which they are. */
static void partial_text(struct tn_text_out *out, const struct tn_fleet_rows *rows)
{
    const struct tn_fleet_member *members = rows->members.items;
    size_t shown = 0;

    if (rows->partial == 0) {
        return;
    }
    tn_text_printf(out, "\n%" PRIu64 " %s of snapshots that were cut off:\n", rows->partial,
                   tn_plural(rows->partial, "ranks").text);
    for (size_t i = 0; i < rows->members.count && shown < PARTIAL_SHOWN; i++) {
        if (members[i].is_partial) {
            tn_text_puts(out, "  ");
            text_put(out, members[i].file);
            tn_text_printf(out, ", device %d\n", members[i].device);
            shown++;
        }
    }
    if (rows->partial > shown) {
        tn_text_printf(out, "  and %" PRIu64 " more\n", rows->partial - shown);
    }
}

static void partial_json(struct tn_json_text *json, const struct tn_fleet_rows *rows)
{
    const struct tn_fleet_member *members = rows->members.items;
    size_t listed = 0;

    tn_json_open_array(json, "partial");
    for (size_t i = 0; i < rows->members.count && listed < PARTIAL_LISTED; i++) {
        if (members[i].is_partial) {
            tn_json_open_object(json, NULL);
            tn_json_word(json, "file", members[i].file);
            tn_json_signed(json, "device", members[i].device);
            tn_json_close(json);
            listed++;
        }
    }
    tn_json_close(json);
}

static void notes_text(struct tn_text_out *out, const struct tn_fleet_rows *rows)
{
    const struct {
        uint64_t count;
        const char *what;
    } notes[] = {{rows->ooms, "with failed requests: \"tarn oom\" says why"},
                 {rows->doubled, "counted again: the same summary is there more than once"}};

    missing_text(out, rows);
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        if (notes[i].count > 0) {
            tn_text_printf(out, "\n%" PRIu64 " %s %s\n", notes[i].count,
                           tn_plural(notes[i].count, "ranks").text, notes[i].what);
        }
    }
    partial_text(out, rows);
}

static void notes_json(struct tn_json_text *json, const struct tn_fleet_rows *rows)
{
    const uint64_t *numbers = rows->missing.items;

    tn_json_number(json, "ranks_with_ooms", rows->ooms);
    tn_json_number(json, "partial_ranks", rows->partial);
    partial_json(json, rows);
    tn_json_number(json, "doubled_ranks", rows->doubled);
    tn_json_number(json, "missing_count", rows->missing_count);
    tn_json_open_array(json, "missing");
    for (size_t i = 0; i < rows->missing.count; i++) {
        tn_json_number(json, NULL, numbers[i]);
    }
    tn_json_close(json);
}

/* Groups say something if they are fewer than ranks and more than one. */
static bool groups_matter(const struct tn_fleet_rows *rows, const struct tn_document *document)
{
    return !document->text || (rows->groups.count > 1 && rows->groups.count < rows->members.count);
}

enum tarn_status tn_fleet_rows_put(const struct tn_fleet_rows *rows,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_row_table *const tables[] = {
        &tn_ranks_table, &tn_ranks_changes_table, &label_table, &group_table,
        &growth_table,   &headroom_table,         NULL};
    const uint64_t limit = tn_report_limit(&rows->options);
    struct tn_document document;

    tn_document_begin(&document, &rows->options, TN_RANKS_SCHEMA, tables, writer);
    tn_ranks_put(&document, rows->result);
    document.context = NULL;
    table_put(&document, &label_table, "labels", "labels of those that stand out", &rows->labels,
              limit);
    if (groups_matter(rows, &document)) {
        table_put(&document, &group_table, "groups", "groups of like ranks, by requested memory",
                  &rows->groups, limit);
    }
    table_put(&document, &growth_table, "growth", "ranks that grow", &rows->growth, limit);
    table_put(&document, &headroom_table, "headroom", "ranks that fail first", &rows->headroom,
              limit);
    if (document.text) {
        notes_text(document.text, rows);
    } else if (document.json) {
        notes_json(document.json, rows);
    }
    return tn_document_end(&document, error);
}

enum tarn_status tarn_fleet_report(struct tarn_fleet *fleet,
                                   const struct tarn_report_options *options,
                                   const struct tarn_fleet_options *how,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    struct tn_fleet_rows rows;
    enum tarn_status status = tn_fleet_rows_make(&rows, fleet, options, how, error);

    status = status ? status : tn_fleet_rows_put(&rows, writer, error);
    tn_fleet_rows_fini(&rows);
    return status;
}
