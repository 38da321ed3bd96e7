/* SPDX-License-Identifier: MIT */
/* A tree of calls as the rows of a table. */
#include "analysis/call_tree.h"
#include "base/assertion.h"
#include "report/result.h"

#include <string.h>

struct collector {
    const struct tn_row_set *set;
    size_t call_at;
    struct tn_result *result;
    struct tn_vec rows;   /* of the set's type */
    struct tn_vec frames; /* uint32_t: of one row */
};

static bool row_add(void *context, const struct tn_call_tree *tree, const struct tn_call_row *row)
{
    struct collector *to = context;
    char *added = tn_vec_push(&to->rows);
    const struct tarn_call call = {.kind = row->kind,
                                   .id = to->rows.count - 1,
                                   .depth = row->depth,
                                   .parent = row->parent,
                                   .others = row->others};
    struct tarn_group group = {0};

    to->frames.count = 0;
    tn_call_row_put(tn_result_text_begin(to->result), tree, row);
    group.text = tn_result_text_end(to->result);
    if (!added || !group.text || !tn_call_row_frames(tree, row, &to->frames) ||
        !tn_result_frames(to->result, tree->keys->model, to->frames.items, to->frames.count,
                          &group)) {
        return false;
    }
    memcpy(added, &group, sizeof group);
    memcpy(added + to->call_at, &call, sizeof call);
    memcpy(added + to->set->sums_at, row->sums->numbers, to->set->sum_count * sizeof(uint64_t));
    return true;
}

static bool tree_fill(struct tn_call_tree *tree, const struct tn_row_set *set)
{
    const char *row = set->rows.items;

    tn_assert(set->sum_count <= TN_CALL_NUMBERS);
    for (size_t i = 0; i < set->rows.count; i++, row += set->rows.item_size) {
        struct tn_call_sums sums = {{0}};
        uint64_t key;

        memcpy(&key, row, sizeof key);
        memcpy(sums.numbers, row + set->sums_at, set->sum_count * sizeof(uint64_t));
        if (!tn_call_tree_add(tree, key, &sums)) {
            return false;
        }
    }
    return tn_call_tree_sort(tree);
}

void *tn_tree_collect(const struct tn_report *report, const struct tn_group_keys *keys,
                      const struct tn_row_set *set, size_t call_at, size_t *count_out)
{
    const struct tn_call_limits limits = {.callees = report->limit,
                                          .min_share = report->options->min_share};
    struct collector to = {.set = set, .call_at = call_at, .result = report->result};
    struct tn_call_tree tree;
    void *rows = NULL;

    tn_vec_init(&to.rows, set->rows.item_size);
    tn_vec_init(&to.frames, sizeof(uint32_t));
    if (tn_call_tree_init(&tree, keys)) {
        if (tree_fill(&tree, set) && tn_call_tree_walk(&tree, &limits, row_add, &to)) {
            rows =
                tn_result_copy(report->result, to.rows.items, to.rows.count, set->rows.item_size);
            *count_out = to.rows.count;
        }
        tn_call_tree_fini(&tree);
    }
    tn_vec_fini(&to.frames);
    tn_vec_fini(&to.rows);
    return rows;
}
