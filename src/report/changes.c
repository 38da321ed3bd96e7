/* SPDX-License-Identifier: MIT */
#include "report/changes.h"

enum kind {
    KIND_NEW,
    KIND_GREW,
    KIND_SHRANK,
    KIND_GONE,
    KIND_SAME
};

static const char *const kind_names[TARN_CHANGE_KINDS] = {
    [KIND_NEW] = "new",   [KIND_GREW] = "grew", [KIND_SHRANK] = "shrank",
    [KIND_GONE] = "gone", [KIND_SAME] = "same",
};

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

static struct tarn_change change_of(const struct tn_delta_row *row)
{
    return (struct tarn_change){.kind = kind_names[kind_of(row)],
                                .before = row->bytes[0],
                                .after = row->bytes[1],
                                .change = (int64_t)(row->bytes[1] - row->bytes[0]),
                                .blocks_before = row->blocks[0],
                                .blocks_after = row->blocks[1],
                                .block_change = (int64_t)(row->blocks[1] - row->blocks[0])};
}

static void sums_make(const struct tn_delta *delta, struct tarn_changes *changes)
{
    const struct tn_delta_row *rows = delta->rows.items;
    struct tn_delta_row others = {.name = 0};

    for (int i = 0; i < TARN_CHANGE_KINDS; i++) {
        changes->kinds[i].kind = kind_names[i];
    }
    for (size_t i = 0; i < delta->rows.count; i++) {
        struct tarn_change_sum *kind = &changes->kinds[kind_of(&rows[i])];

        kind->groups++;
        kind->change += (int64_t)(rows[i].bytes[1] - rows[i].bytes[0]);
        for (int side = 0; side < 2 && i >= changes->row_count; side++) {
            others.bytes[side] += rows[i].bytes[side];
            others.blocks[side] += rows[i].blocks[side];
        }
    }
    changes->other_count = delta->rows.count - changes->row_count;
    changes->others = change_of(&others);
    changes->total = change_of(&delta->total);
}

bool tn_changes_make(struct tn_result *result, const struct tn_delta *delta, enum tarn_grouping by,
                     uint64_t limit, struct tarn_changes *changes)
{
    const struct tn_delta_row *from = delta->rows.items;
    const size_t count = limit < delta->rows.count ? (size_t)limit : delta->rows.count;
    struct tarn_change *rows = tn_arena_alloc_array(tn_result_arena(result), count, sizeof *rows);

    *changes = (struct tarn_changes){.by = by, .rows = rows, .row_count = count};
    for (size_t i = 0; rows && i < count; i++) {
        const struct tn_name *name = tn_name_at(delta->names, from[i].name);

        rows[i] = change_of(&from[i]);
        rows[i].group.key = from[i].name;
        rows[i].group.text = tn_result_text(result, name->shown, name->shown_length);
        rows[i].group.name = tn_result_text(result, name->path, name->path_length);
        if (!rows[i].group.text || !rows[i].group.name) {
            return false;
        }
    }
    sums_make(delta, changes);
    return rows != NULL;
}
