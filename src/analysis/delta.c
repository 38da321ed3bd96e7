/* SPDX-License-Identifier: MIT */
#include "analysis/delta.h"

#include "base/size_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    KIND_NEW,
    KIND_GREW,
    KIND_SHRANK,
    KIND_GONE,
    KIND_SAME,
    KIND_COUNT
};

static const char *const kind_names[] = {
    [KIND_NEW] = "new",   [KIND_GREW] = "grew", [KIND_SHRANK] = "shrank",
    [KIND_GONE] = "gone", [KIND_SAME] = "same",
};

void tn_delta_init(struct tn_delta *delta, const struct tn_name_table *names)
{
    *delta = (struct tn_delta){.names = names};
    tn_vec_init(&delta->rows, sizeof(struct tn_delta_row));
    tn_vec_init(&delta->numbers, sizeof(uint32_t));
}

void tn_delta_fini(struct tn_delta *delta)
{
    tn_vec_fini(&delta->numbers);
    tn_vec_fini(&delta->rows);
}

static struct tn_delta_row *row_get(struct tn_delta *delta, uint32_t name)
{
    while (delta->numbers.count <= name) {
        if (!tn_vec_push(&delta->numbers)) {
            return NULL;
        }
    }
    uint32_t *number = (uint32_t *)delta->numbers.items + name;

    if (*number == 0) {
        struct tn_delta_row *row = tn_vec_push(&delta->rows);

        if (!row) {
            return NULL;
        }
        row->name = name;
        *number = (uint32_t)delta->rows.count;
    }
    return (struct tn_delta_row *)delta->rows.items + (*number - 1);
}

bool tn_delta_add(struct tn_delta *delta, enum tn_delta_side side, uint32_t name, uint64_t bytes,
                  uint64_t blocks)
{
    struct tn_delta_row *row = row_get(delta, name);

    if (!row) {
        return false;
    }
    row->bytes[side] += bytes;
    row->blocks[side] += blocks;
    delta->total.bytes[side] += bytes;
    delta->total.blocks[side] += blocks;
    return true;
}

bool tn_delta_add_groups(struct tn_delta *delta, struct tn_name_table *names,
                         enum tn_delta_side side, const struct tn_group_keys *keys,
                         const struct tn_groups *groups)
{
    const struct tn_group *rows = groups->rows.items;

    for (size_t i = 0; i < groups->rows.count; i++) {
        uint32_t name;

        if (!tn_name_find(names, keys, rows[i].key, &name) ||
            !tn_delta_add(delta, side, name, rows[i].bytes, rows[i].count)) {
            return false;
        }
    }
    return true;
}

static uint64_t change_size(const struct tn_delta_row *row)
{
    return row->bytes[0] > row->bytes[1] ? row->bytes[0] - row->bytes[1]
                                         : row->bytes[1] - row->bytes[0];
}

static int row_compare(const void *left, const void *right)
{
    const struct tn_delta_row *a = left;
    const struct tn_delta_row *b = right;
    const uint64_t changes[2] = {change_size(a), change_size(b)};

    if (changes[0] != changes[1]) {
        return changes[0] > changes[1] ? -1 : 1;
    }
    if (a->bytes[1] != b->bytes[1]) {
        return a->bytes[1] > b->bytes[1] ? -1 : 1;
    }
    return (a->name > b->name) - (a->name < b->name);
}

void tn_delta_sort(struct tn_delta *delta)
{
    if (delta->rows.count > 0) {
        qsort(delta->rows.items, delta->rows.count, sizeof(struct tn_delta_row), row_compare);
    }
    delta->numbers.count = 0; /* no longer true */
}

/* ---- sums ---- */

static struct tn_delta_row others_sum(const struct tn_delta *delta, uint64_t limit)
{
    const struct tn_delta_row *rows = delta->rows.items;
    struct tn_delta_row others = {.name = 0};

    for (size_t i = (size_t)limit; i < delta->rows.count; i++) {
        for (int side = 0; side < 2; side++) {
            others.bytes[side] += rows[i].bytes[side];
            others.blocks[side] += rows[i].blocks[side];
        }
    }
    return others;
}

static enum kind kind_of(const struct tn_delta_row *row)
{
    if (row->bytes[0] == row->bytes[1]) {
        return KIND_SAME;
    }
    if (row->blocks[0] == 0) {
        return KIND_NEW;
    }
    if (row->blocks[1] == 0) {
        return KIND_GONE;
    }
    return row->bytes[1] > row->bytes[0] ? KIND_GREW : KIND_SHRANK;
}

/* All rows of one kind. */
struct kind_sum {
    uint64_t count;
    double change;
};

static void kinds_sum(const struct tn_delta *delta, struct kind_sum sums[KIND_COUNT])
{
    const struct tn_delta_row *rows = delta->rows.items;

    for (size_t i = 0; i < delta->rows.count; i++) {
        struct kind_sum *sum = &sums[kind_of(&rows[i])];

        sum->count++;
        sum->change += (double)rows[i].bytes[1] - (double)rows[i].bytes[0];
    }
}

/* ---- text ---- */

static void change_put(struct tn_text_out *out, int width, double change)
{
    const struct tn_size_text text = tn_text_size(out, change < 0 ? -change : change);
    const int blanks = width - (int)strlen(text.text);

    tn_text_printf(out, "%*s%s%s", blanks > 0 ? blanks : 0, "", change < 0 ? "-" : "+", text.text);
}

void tn_change_put(struct tn_text_out *out, double change)
{
    change_put(out, 0, change);
}

void tn_change_put_column(struct tn_text_out *out, double change)
{
    tn_text_puts(out, "  ");
    change_put(out, tn_text_size_width(out), change);
}

static void row_put(struct tn_text_out *out, const struct tn_delta_row *row)
{
    tn_change_put_column(out, (double)row->bytes[1] - (double)row->bytes[0]);
    tn_text_put_size(out, (double)row->bytes[0]);
    tn_text_put_size(out, (double)row->bytes[1]);
    tn_text_printf(out, "  %+8" PRId64 "  ", (int64_t)row->blocks[1] - (int64_t)row->blocks[0]);
}

void tn_delta_put(struct tn_text_out *out, const struct tn_delta *delta, enum tarn_grouping by,
                  uint64_t limit)
{
    const struct tn_delta_row *rows = delta->rows.items;

    limit = limit < delta->rows.count ? limit : delta->rows.count;
    tn_text_printf(out, "  %*s", tn_text_size_width(out) + 1, "change");
    tn_text_put_head(out, "#before#after    blocks          ");
    tn_text_printf(out, "%s\n", tn_grouping_heading(by));
    for (size_t i = 0; i < limit; i++) {
        const struct tn_name *name = tn_name_at(delta->names, rows[i].name);

        row_put(out, &rows[i]);
        tn_text_printf(out, "%-6s  ", kind_names[kind_of(&rows[i])]);
        tn_text_put(out, name->shown, name->shown_length);
        tn_text_putc(out, '\n');
    }
    if (limit < delta->rows.count) {
        const struct tn_delta_row others = others_sum(delta, limit);

        row_put(out, &others);
        tn_text_printf(out, "        others (%" PRIu64 " %s)\n", delta->rows.count - limit,
                       tn_grouping_plural(by));
    }
    row_put(out, &delta->total);
    tn_text_puts(out, "        total\n");
}

void tn_delta_put_kinds(struct tn_text_out *out, const struct tn_delta *delta,
                        enum tarn_grouping by)
{
    struct kind_sum sums[KIND_COUNT] = {{0, 0}};

    kinds_sum(delta, sums);
    for (int i = 0; i < KIND_COUNT; i++) {
        if (sums[i].count > 0) {
            tn_change_put_column(out, sums[i].change);
            tn_text_printf(out, "  %-6s  %" PRIu64 " %s\n", kind_names[i], sums[i].count,
                           tn_grouping_plural(by));
        }
    }
}

/* ---- JSON ---- */

static void row_members(struct tn_json_text *json, const struct tn_delta_row *row)
{
    tn_json_number(json, "before_bytes", row->bytes[0]);
    tn_json_number(json, "after_bytes", row->bytes[1]);
    tn_json_signed(json, "change_bytes", (int64_t)(row->bytes[1] - row->bytes[0]));
    tn_json_number(json, "before_blocks", row->blocks[0]);
    tn_json_number(json, "after_blocks", row->blocks[1]);
}

void tn_delta_put_json(struct tn_json_text *json, const struct tn_delta *delta,
                       enum tarn_grouping by, uint64_t limit)
{
    const struct tn_delta_row *rows = delta->rows.items;
    struct kind_sum sums[KIND_COUNT] = {{0, 0}};

    limit = limit < delta->rows.count ? limit : delta->rows.count;
    kinds_sum(delta, sums);
    tn_json_open_array(json, "changes");
    for (size_t i = 0; i < limit; i++) {
        const struct tn_name *name = tn_name_at(delta->names, rows[i].name);

        tn_json_open_object(json, NULL);
        tn_json_word(json, "kind", kind_names[kind_of(&rows[i])]);
        row_members(json, &rows[i]);
        tn_json_text(json, "path", name->path, name->path_length);
        tn_json_close(json);
    }
    tn_json_close(json);
    const struct tn_delta_row others = others_sum(delta, limit);

    tn_json_open_object(json, "others");
    tn_json_number(json, tn_grouping_plural(by), delta->rows.count - limit);
    row_members(json, &others);
    tn_json_close(json);
    tn_json_open_object(json, "total");
    row_members(json, &delta->total);
    tn_json_close(json);
    tn_json_open_object(json, "kinds");
    for (int i = 0; i < KIND_COUNT; i++) {
        tn_json_open_object(json, kind_names[i]);
        tn_json_number(json, tn_grouping_plural(by), sums[i].count);
        tn_json_signed(json, "change_bytes", (int64_t)sums[i].change);
        tn_json_close(json);
    }
    tn_json_close(json);
}
