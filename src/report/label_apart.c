/* SPDX-License-Identifier: MIT */
#include "report/label_apart.h"

#include "base/host_mem.h"
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

enum {
    NEIGHBOURS_MAX = 32 /* of rows with equal labels: others that one is compared with */
};

/* Rows with their labels, and where their stacks are. */
struct labels {
    struct tn_result *result;
    tn_label_of *label_of;
    const void *context;
};

static int label_compare(const void *left, const void *right)
{
    const struct tarn_group *const *a = left;
    const struct tarn_group *const *b = right;
    const int order = strcmp((*a)->text, (*b)->text);

    return order ? order : tn_order((*a)->key, (*b)->key);
}

/* A new label for a group with the frames that are wanted. */
static bool label_make(const struct labels *labels, struct tn_stack_label label, const bool *wanted,
                       struct tarn_group *group)
{
    label.wanted = wanted;
    tn_stack_label_put(tn_result_text_begin(labels->result), &label);
    group->text = tn_result_text_end(labels->result);
    return group->text != NULL;
}

/* New labels for `count` groups that have the same. */
static bool same_distinguish(const struct labels *labels, struct tarn_group *const *groups,
                             size_t count)
{
    for (size_t i = 0; count > 1 && i < count; i++) {
        const struct tn_stack_label label = labels->label_of(labels->context, groups[i]);
        const size_t first = i > NEIGHBOURS_MAX ? i - NEIGHBOURS_MAX : 0;
        const size_t frames = label.stack.count;
        bool *wanted =
            tn_arena_alloc_array(tn_result_arena(labels->result), frames, sizeof *wanted);

        if (!wanted) {
            return false;
        }
        memset(wanted, 0, frames * sizeof *wanted);
        for (size_t k = first; k < count && k <= i + NEIGHBOURS_MAX; k++) {
            const struct tn_stack_label other = labels->label_of(labels->context, groups[k]);

            tn_stack_label_tell_apart(&label, &other, wanted);
        }
        if (!label_make(labels, label, wanted, groups[i])) {
            return false;
        }
    }
    return true;
}

bool tn_labels_tell_apart(struct tn_result *result, tn_label_of *label_of, const void *context,
                          void *rows, size_t count, size_t row_size)
{
    const struct labels labels = {result, label_of, context};
    struct tarn_group **groups = tn_host_alloc_zero((count + 1) * sizeof(struct tarn_group *));
    bool good = groups != NULL;

    for (size_t i = 0; good && i < count; i++) {
        groups[i] = (void *)((char *)rows + i * row_size);
    }
    if (good) {
        qsort(groups, count, sizeof(struct tarn_group *), label_compare);
    }
    for (size_t first = 0, end; good && first < count; first = end) {
        for (end = first + 1; end < count && strcmp(groups[first]->text, groups[end]->text) == 0;) {
            end++;
        }
        good = same_distinguish(&labels, groups + first, end - first);
    }
    tn_host_free(groups, (count + 1) * sizeof(struct tarn_group *));
    return good;
}

/* Of rows of one analysis: `context` is its keys. */
static struct tn_stack_label own_label(const void *context, const struct tarn_group *group)
{
    return tn_group_key_label(context, group->key);
}

bool tn_labels_distinguish(struct tn_result *result, const struct tn_group_keys *keys, void *rows,
                           size_t count, size_t row_size)
{
    return keys->by != TARN_BY_STACK || keys->full_stacks || keys->only_frames ||
           tn_labels_tell_apart(result, own_label, keys, rows, count, row_size);
}

void *tn_rows_name(struct tn_result *result, const struct tn_row_set *set, size_t count,
                   const struct tn_group_keys *keys)
{
    char *rows = tn_result_copy(result, set->rows.items, count, set->rows.item_size);

    for (size_t i = 0; rows && i < count; i++) {
        if (!tn_result_group(result, keys, (void *)(rows + i * set->rows.item_size))) {
            return NULL;
        }
    }
    return rows && tn_labels_distinguish(result, keys, rows, count, set->rows.item_size) ? rows
                                                                                         : NULL;
}
