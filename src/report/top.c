/* SPDX-License-Identifier: MIT */
/*
 * Stacks, or other groups, over the whole trace: bytes they held at the peak (or at another
 * instant), bytes they hold at the end, bytes and blocks they allocated. The stack of a block from
 * before the trace is unknown, unless the snapshot still has it.
 */
#include "base/order.h"
#include "report/composition.h"
#include "report/label_apart.h"
#include "report/reports.h"

#include <stddef.h>

/* All numbers of a row can be summed. */
#define SUMS_AT offsetof(struct tarn_top_row, rank)

/* Adds a block. Its share of the rank is not among it: the rank of the sum is the sum of ranks. */
static void row_count(struct tarn_top_row *row, const struct tn_lifetime *block,
                      const struct tn_time_point *at)
{
    row->at_instant += tn_lifetime_is_at(block, at->entry) ? block->size : 0;
    row->at_end += block->end == TN_NEVER ? block->size : 0;
    if (block->start != TN_NEVER) {
        row->allocated += block->size;
        row->allocations++;
        row->freed += block->end != TN_NEVER;
        row->lifetime_events += block->end != TN_NEVER ? block->end - block->start : 0;
    }
}

static uint64_t rank_of(const struct tarn_top_row *row, enum tarn_top_order order)
{
    switch (order) {
    case TARN_TOP_BY_PEAK:
        return row->at_instant;
    case TARN_TOP_BY_END:
        return row->at_end;
    case TARN_TOP_BY_REQUESTED:
        return row->allocated;
    case TARN_TOP_BY_COUNT:
        break;
    }
    return row->allocations;
}

static int row_compare(const void *left, const void *right)
{
    const struct tarn_top_row *a = left;
    const struct tarn_top_row *b = right;
    const int order = tn_order(b->rank, a->rank);

    return order ? order : tn_order(a->group.key, b->group.key);
}

static void rows_rank(struct tn_row_set *set, enum tarn_top_order order)
{
    struct tarn_top_row *rows = set->rows.items;

    for (size_t i = 0; i < set->rows.count; i++) {
        rows[i].rank = rank_of(&rows[i], order);
    }
    tn_row_set_sort(set, row_compare);
}

static bool set_fill(struct tn_row_set *set, const struct tn_analysis *analysis,
                     const struct tn_time_point *at, enum tarn_top_order order)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        uint64_t key;
        struct tarn_top_row *row =
            tn_group_key_find(&analysis->keys, &lifetimes[i], &key) ? tn_row_get(set, key) : NULL;

        if (!row) {
            return false;
        }
        row_count(row, &lifetimes[i], at);
    }
    rows_rank(set, order);
    return true;
}

static void sums_make(struct tarn_top_result *top, const struct tn_row_set *set)
{
    top->other_count = set->rows.count - top->row_count;
    tn_rows_sum(set, 0, &top->total);
    tn_rows_sum(set, top->row_count, &top->others);
    if (top->head.by == TARN_BY_CATEGORY) {
        const struct tarn_top_row *row = tn_row_find(set, TN_CATEGORY_UNCLASSIFIED);

        top->unclassified = row ? *row : (struct tarn_top_row){.rank = 0};
    }
}

static bool tree_make(const struct tn_report *report, const struct tn_analysis *analysis,
                      struct tarn_top_result *top, const struct tn_row_set *set)
{
    top->tree = tn_tree_collect(report, &analysis->keys, set, offsetof(struct tarn_top_row, call),
                                &top->tree_count);
    return top->tree != NULL;
}

enum tarn_status tn_top_compute(const struct tn_report *report, const struct tn_analysis *analysis,
                                void *result_out, struct tarn_error *error)
{
    struct tarn_top_result *top = result_out;
    struct tn_row_set set;
    struct tn_time_point at;
    const enum tarn_status status =
        tn_analysis_time_point(analysis, &analysis->query->selection.at, TARN_AT_PEAK, &at, error);

    if (status) {
        return status;
    }
    top->whole_peak = tn_result_time_point(&analysis->whole.requested_peak);
    top->at = tn_result_time_point(&at);
    top->bytes_without_frames = tn_bytes_without_frames(analysis, at.entry);
    top->left_out_at_end = analysis->timeline->end.left_out;
    tn_row_set_init(&set, sizeof(struct tarn_top_row), SUMS_AT,
                    (sizeof(struct tarn_top_row) - SUMS_AT) / sizeof(uint64_t));
    bool good = set_fill(&set, analysis, &at, report->options->order);

    if (good) {
        top->row_count = tn_report_rows(report, set.rows.count);
        sums_make(top, &set);
        top->rows = tn_rows_name(report->result, &set, top->row_count, &analysis->keys);
        good = top->rows && (!report->options->tree || tree_make(report, analysis, top, &set));
    }
    tn_row_set_fini(&set);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}
