/* SPDX-License-Identifier: MIT */
#include "tracker/iteration_list.h"

#include "base/assertion.h"

#include <string.h>

void tn_iteration_list_init(struct tn_iteration_list *list)
{
    *list = (struct tn_iteration_list){0};
    tn_vec_init(&list->past, sizeof(struct tn_iteration));
}

void tn_iteration_list_fini(struct tn_iteration_list *list)
{
    tn_vec_fini(&list->past);
}

bool tn_iteration_list_reserve(struct tn_iteration_list *list)
{
    return list->past.count == TN_ITERATIONS_KEPT || tn_vec_reserve(&list->past, 1);
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
    struct tn_iteration *past = list->past.items;
    uint64_t number = current->number;

    if (current->used) {
        if (list->past.count == TN_ITERATIONS_KEPT) {
            list->past.count--;
            memmove(past, past + 1, list->past.count * sizeof *past);
        }
        tn_assert(list->past.count < list->past.capacity);
        iteration_end(current, now, total);
        past[list->past.count++] = *current;
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
    return list->past.count + list->current.used;
}

struct tn_iteration tn_iteration_list_at(const struct tn_iteration_list *list, size_t at,
                                         const struct tn_breakdown *now, int64_t total)
{
    struct tn_iteration iteration = list->current;

    if (at < list->past.count) {
        return ((const struct tn_iteration *)list->past.items)[at];
    }
    iteration_end(&iteration, now, total);
    return iteration;
}
