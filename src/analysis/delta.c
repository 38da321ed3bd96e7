/* SPDX-License-Identifier: MIT */
#include "analysis/delta.h"

#include <stdlib.h>

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
