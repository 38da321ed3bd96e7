/* SPDX-License-Identifier: MIT */
#include "report/changes.h"

#include "base/order.h"
#include "report/label_apart.h"

#include <stddef.h>

enum {
    SUM_COUNT = 6 /* of a row: from `before` to `block_change` */
};

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

void tn_changes_init(struct tn_row_set *set)
{
    tn_row_set_init(set, sizeof(struct tarn_change), offsetof(struct tarn_change, before),
                    SUM_COUNT);
}

bool tn_changes_add(struct tn_row_set *set, enum tn_change_side side, uint32_t name, uint64_t bytes,
                    uint64_t blocks)
{
    struct tarn_change *row = tn_row_get(set, name);

    if (row) {
        *(side == TN_CHANGE_BEFORE ? &row->before : &row->after) += bytes;
        *(side == TN_CHANGE_BEFORE ? &row->blocks_before : &row->blocks_after) += blocks;
    }
    return row != NULL;
}

bool tn_changes_add_holders(struct tn_row_set *set, struct tn_name_table *names,
                            enum tn_change_side side, const struct tn_group_keys *keys,
                            const struct tn_row_set *holders)
{
    const struct tarn_holder *rows = holders->rows.items;

    for (size_t i = 0; i < holders->rows.count; i++) {
        uint32_t name;

        if (!tn_name_find(names, keys, rows[i].group.key, &name) ||
            !tn_changes_add(set, side, name, rows[i].bytes, rows[i].blocks)) {
            return false;
        }
    }
    return true;
}

static enum kind kind_of(const struct tarn_change *row)
{
    if (row->before == row->after) {
        return KIND_SAME;
    }
    if (row->blocks_before == 0) {
        return KIND_NEW;
    }
    if (row->blocks_after == 0) {
        return KIND_GONE;
    }
    return row->after > row->before ? KIND_GREW : KIND_SHRANK;
}

static uint64_t change_size(const struct tarn_change *row)
{
    return row->before > row->after ? row->before - row->after : row->after - row->before;
}

static int row_compare(const void *left, const void *right)
{
    const struct tarn_change *a = left;
    const struct tarn_change *b = right;
    int order = tn_order(change_size(b), change_size(a));

    order = order ? order : tn_order(b->after, a->after);
    return order ? order : tn_order(a->group.key, b->group.key);
}

static void sums_make(struct tn_row_set *set, struct tarn_changes *changes)
{
    struct tarn_change *rows = set->rows.items;

    for (int i = 0; i < TARN_CHANGE_KINDS; i++) {
        changes->kinds[i].kind = kind_names[i];
    }
    for (size_t i = 0; i < set->rows.count; i++) {
        struct tarn_change_sum *kind = &changes->kinds[kind_of(&rows[i])];

        rows[i].kind = kind->kind;
        rows[i].change = (int64_t)(rows[i].after - rows[i].before);
        rows[i].block_change = (int64_t)(rows[i].blocks_after - rows[i].blocks_before);
        kind->groups++;
        kind->change += rows[i].change;
    }
    tn_rows_sum(set, changes->row_count, &changes->others);
    tn_rows_sum(set, 0, &changes->total);
    changes->others.kind = kind_names[kind_of(&changes->others)];
    changes->total.kind = kind_names[kind_of(&changes->total)];
}

static struct tn_stack_label name_label(const void *context, const struct tarn_group *group)
{
    return tn_name_at(context, (uint32_t)group->key)->label;
}

/* Labels that look alike get the frames that differ. */
static bool labels_distinguish(struct tn_result *result, const struct tn_name_table *names,
                               enum tarn_grouping by, struct tarn_change *rows, size_t count)
{
    return by != TARN_BY_STACK ||
           tn_labels_tell_apart(result, name_label, names, rows, count, sizeof *rows);
}

bool tn_changes_make(struct tn_result *result, struct tn_row_set *set,
                     const struct tn_name_table *names, enum tarn_grouping by, uint64_t limit,
                     struct tarn_changes *changes)
{
    const size_t count = limit < set->rows.count ? (size_t)limit : set->rows.count;

    *changes =
        (struct tarn_changes){.by = by, .row_count = count, .other_count = set->rows.count - count};
    tn_row_set_sort(set, row_compare);
    sums_make(set, changes);
    struct tarn_change *rows = tn_result_copy(result, set->rows.items, count, sizeof *rows);

    for (size_t i = 0; rows && i < count; i++) {
        const struct tn_name *name = tn_name_at(names, (uint32_t)rows[i].group.key);

        rows[i].group.text = tn_result_text(result, name->shown, name->shown_length);
        rows[i].group.name = tn_result_text(result, name->path, name->path_length);
        if (!rows[i].group.text || !rows[i].group.name) {
            return false;
        }
    }
    changes->rows = rows;
    return rows && labels_distinguish(result, names, by, rows, count);
}
