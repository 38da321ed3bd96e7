/* SPDX-License-Identifier: MIT */
#include "tracker/iteration_list.h"

#include "base/assertion.h"

#include <string.h>

void tn_iteration_list_init(struct tn_iteration_list *list)
{
    *list = (struct tn_iteration_list){0};
    tn_vec_init(&list->ended, sizeof(struct tn_iteration));
}

void tn_iteration_list_fini(struct tn_iteration_list *list)
{
    tn_vec_fini(&list->ended);
}

bool tn_iteration_list_reserve(struct tn_iteration_list *list)
{
    return list->ended.count == TN_ITERATIONS_KEPT || tn_vec_reserve(&list->ended, 1);
}

static void sum_categories(int64_t *sums, const struct tn_breakdown *now)
{
    memset(sums, 0, TARN_TRACK_CATEGORIES_MAX * sizeof *sums);
    for (size_t i = 0; i < now->count; i++) {
        for (size_t c = 0; c < TARN_TRACK_CATEGORIES_MAX; c++) {
            sums[c] += now->rows[i].bytes[c];
        }
    }
}

static void iteration_end(struct tn_iteration *iteration, const struct tn_breakdown *now,
                          int64_t total)
{
    sum_categories(iteration->end, now);
    iteration->end_total = total;
}

void tn_iteration_list_begin(struct tn_iteration_list *list, const struct tn_breakdown *now,
                             int64_t total)
{
    struct tn_iteration *current = &list->current;
    struct tn_iteration *ended = list->ended.items;
    uint64_t number = current->number;

    if (current->used) {
        if (list->ended.count == TN_ITERATIONS_KEPT) {
            list->ended.count--;
            memmove(ended, ended + 1, list->ended.count * sizeof *ended);
        }
        tn_assert(list->ended.count < list->ended.capacity);
        iteration_end(current, now, total);
        ended[list->ended.count++] = *current;
        number++;
    }
    *current = (struct tn_iteration){.number = number, .begin_total = total, .peak_total = total};
    sum_categories(current->begin, now);
    memcpy(current->peak, current->begin, sizeof current->peak);
}

void tn_iteration_list_op_done(struct tn_iteration_list *list, const struct tn_breakdown *now,
                               int64_t total)
{
    struct tn_iteration *current = &list->current;

    current->used = true;
    if (total > current->peak_total) {
        current->peak_total = total;
        sum_categories(current->peak, now);
    }
}

size_t tn_iteration_list_count(const struct tn_iteration_list *list)
{
    return list->ended.count + list->current.used;
}

struct tn_iteration tn_iteration_list_at(const struct tn_iteration_list *list, size_t at,
                                         const struct tn_breakdown *now, int64_t total)
{
    struct tn_iteration iteration = list->current;

    if (at < list->ended.count) {
        return ((const struct tn_iteration *)list->ended.items)[at];
    }
    iteration_end(&iteration, now, total);
    return iteration;
}
