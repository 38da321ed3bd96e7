/* SPDX-License-Identifier: MIT */
/*
 * Many ranks side by side: their peaks, which of them stand out, and what these hold that the
 * others do not.
 *
 * How far a rank stands out is its distance from the median (spread.h). An outlier is compared with
 * the rank that is the (lower) median, so that the changes add up to the difference of the two.
 */
#include "report/ranks.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "report/changes.h"
#include "report/composition.h"
#include "report/spread.h"
#include "snapshot/snapshot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTLIERS_MAX = 5 /* that are compared with the median rank */
};

static_assert((int)TN_RANKS_MIN == (int)TN_SPREAD_MIN, "the header says from how many on");

/* One device of one snapshot. */
struct rank {
    struct tn_rank shown; /* its file is the arena's */
    size_t first;         /* of its parts */
    size_t count;
};

struct tn_ranks {
    struct tarn_report_options options;
    struct tn_model kept; /* stacks of the names, as snapshots go after they were added */
    struct tn_name_table names;
    struct tn_vec ranks; /* struct rank, in the order of addition */
    struct tn_vec parts; /* struct tn_rank_part */
    struct tn_vec order; /* size_t, by row of the last result: the number of its rank */
};

enum tarn_status tn_ranks_create(const struct tarn_report_options *options,
                                 struct tn_ranks **ranks_out, struct tarn_error *error)
{
    const struct tn_path_format format = {.ignore_lines = false};
    struct tn_ranks *ranks = tn_host_alloc_zero(sizeof *ranks);

    *ranks_out = NULL;
    if (!ranks || tn_model_init(&ranks->kept, 0) != TARN_OK) {
        tn_host_free(ranks, sizeof *ranks);
        return tn_fail_memory(error);
    }
    *ranks_out = ranks;
    ranks->options = *options;
    tn_name_table_init(&ranks->names, &format);
    tn_vec_init(&ranks->ranks, sizeof(struct rank));
    tn_vec_init(&ranks->parts, sizeof(struct tn_rank_part));
    tn_vec_init(&ranks->order, sizeof(size_t));
    return TARN_OK;
}

void tn_ranks_destroy(struct tn_ranks *ranks)
{
    if (!ranks) {
        return;
    }
    tn_vec_fini(&ranks->order);
    tn_vec_fini(&ranks->parts);
    tn_vec_fini(&ranks->ranks);
    tn_name_table_fini(&ranks->names);
    tn_model_fini(&ranks->kept);
    tn_host_free(ranks, sizeof *ranks);
}

/* ---- adding ---- */

bool tn_ranks_add_parts(struct tn_ranks *ranks, const struct tn_rank *shown,
                        const struct tn_rank_part *parts, size_t count)
{
    struct rank rank = {.shown = *shown, .first = ranks->parts.count, .count = count};

    rank.shown.file = tn_arena_copy_text(&ranks->names.arena, shown->file, strlen(shown->file));
    if (!rank.shown.file || !tn_vec_append(&ranks->parts, parts, count)) {
        return false;
    }
    if (!tn_vec_append(&ranks->ranks, &rank, 1)) {
        ranks->parts.count = rank.first;
        return false;
    }
    return true;
}

struct tn_name_table *tn_ranks_names(struct tn_ranks *ranks)
{
    return &ranks->names;
}

struct tn_model *tn_ranks_kept(struct tn_ranks *ranks)
{
    return &ranks->kept;
}

size_t tn_ranks_number(const struct tn_ranks *ranks, size_t row)
{
    return ((const size_t *)ranks->order.items)[row];
}

/* ---- distances ---- */

static double away(double number, double from)
{
    return number > from ? number - from : from - number;
}

/* Sorts the numbers. */
static struct tn_rank_range range_of(double *numbers, size_t count, double *median_out)
{
    *median_out = tn_median(numbers, count);
    return (struct tn_rank_range){.least = (uint64_t)numbers[0],
                                  .median = (uint64_t)*median_out,
                                  .most = (uint64_t)numbers[count - 1]};
}

/* Sets the distances and what there is of all ranks; `numbers` is room for one number per rank.
 * Returns the median. */
static double distances_set(const struct tn_vec *ranks, double *numbers,
                            struct tn_ranks_result *result)
{
    struct rank *items = ranks->items;
    double middle;

    for (size_t i = 0; i < ranks->count; i++) {
        numbers[i] = (double)items[i].shown.reserved_peak;
    }
    result->reserved_peak = range_of(numbers, ranks->count, &middle);
    for (size_t i = 0; i < ranks->count; i++) {
        numbers[i] = (double)items[i].shown.requested;
    }
    result->requested = range_of(numbers, ranks->count, &middle);
    const struct tn_spread spread = tn_spread_of(numbers, ranks->count);

    for (size_t i = 0; i < ranks->count; i++) {
        const double number = (double)items[i].shown.requested;

        items[i].shown.distance = tn_spread_distance(&spread, number);
        items[i].shown.is_outlier = tn_spread_has_outlier(&spread, number);
    }
    return middle;
}

/* Those that stand out first, then by what they use. */
static int rank_compare(const void *left, const void *right)
{
    const struct rank *a = *(const struct rank *const *)left;
    const struct rank *b = *(const struct rank *const *)right;

    if (a->shown.is_outlier != b->shown.is_outlier) {
        return a->shown.is_outlier ? -1 : 1;
    }
    if (a->shown.is_outlier && a->shown.distance != b->shown.distance) {
        return a->shown.distance > b->shown.distance ? -1 : 1;
    }
    if (a->shown.requested != b->shown.requested) {
        return a->shown.requested > b->shown.requested ? -1 : 1;
    }
    return (a > b) - (a < b); /* they lie in one array: in the order of addition */
}

/* The rank nearest to the median, and not an outlier if any is not. */
static const struct rank *typical_find(const struct tn_vec *ranks, double middle)
{
    const struct rank *items = ranks->items;
    const struct rank *best = &items[0];

    for (size_t i = 1; i < ranks->count; i++) {
        if (away((double)items[i].shown.requested, middle) <
            away((double)best->shown.requested, middle)) {
            best = &items[i];
        }
    }
    return best;
}

/* ---- the result ---- */

static bool changes_fill(struct tn_row_set *changes, const struct tn_ranks *ranks,
                         const struct rank *typical, const struct rank *rank)
{
    const struct rank *sides[2] = {typical, rank};

    for (int side = 0; side < 2; side++) {
        const struct tn_rank_part *parts =
            (const struct tn_rank_part *)ranks->parts.items + sides[side]->first;

        for (size_t i = 0; i < sides[side]->count; i++) {
            if (!tn_changes_add(changes, (enum tn_change_side)side, parts[i].name, parts[i].bytes,
                                parts[i].blocks)) {
                return false;
            }
        }
    }
    return true;
}

static bool outlier_make(const struct tn_ranks *ranks, const struct rank *typical,
                         const struct rank *rank, struct tn_result *memory,
                         struct tn_rank_outlier *outlier)
{
    struct tn_row_set changes;

    tn_changes_init(&changes);
    const bool good = changes_fill(&changes, ranks, typical, rank) &&
                      tn_changes_make(memory, &changes, &ranks->names, ranks->options.by,
                                      tn_report_limit(&ranks->options), &outlier->changes);

    tn_row_set_fini(&changes);
    return good;
}

static bool outliers_make(const struct tn_ranks *ranks, const struct rank *typical,
                          const struct rank *const *sorted, struct tn_ranks_result *result)
{
    struct tn_result *memory = tn_result_of(result);
    const size_t count = ranks->ranks.count;

    while (tn_always(result->outlier_count < count) && /* the median does not stand out */
           result->outlier_count < OUTLIERS_MAX &&
           sorted[result->outlier_count]->shown.is_outlier) {
        result->outlier_count++;
    }
    struct tn_rank_outlier *outliers =
        tn_arena_alloc_array(tn_result_arena(memory), result->outlier_count, sizeof *outliers);

    for (size_t i = 0; outliers && i < result->outlier_count; i++) {
        outliers[i].rank = result->ranks[i];
        if (!outlier_make(ranks, typical, sorted[i], memory, &outliers[i])) {
            return false;
        }
    }
    result->outliers = outliers;
    return outliers != NULL;
}

static void rank_sum(struct tn_rank *into, const struct tn_rank *from)
{
    into->requested += from->requested;
    into->left_out += from->left_out;
    into->reserved_peak += from->reserved_peak;
}

static bool rows_make(const struct tn_ranks *ranks, const struct rank *const *sorted,
                      struct tn_ranks_result *result)
{
    struct tn_result *memory = tn_result_of(result);
    const uint64_t limit = tn_report_limit(&ranks->options);
    const size_t count = ranks->ranks.count;
    struct tn_rank *rows = tn_arena_alloc_array(tn_result_arena(memory), count, sizeof *rows);

    for (size_t i = 0; rows && i < count; i++) {
        rows[i] = sorted[i]->shown;
        rows[i].file = tn_result_text(memory, rows[i].file, strlen(rows[i].file));
        if (!rows[i].file) {
            return false;
        }
        rank_sum(&result->total, &rows[i]);
        if (i >= limit) {
            rank_sum(&result->others, &rows[i]);
        }
    }
    result->ranks = rows;
    result->rank_count = count;
    result->other_count = limit < count ? count - (size_t)limit : 0;
    return rows != NULL;
}

static bool order_keep(struct tn_ranks *ranks, const struct rank *const *sorted)
{
    const struct rank *items = ranks->ranks.items;

    ranks->order.count = 0;
    for (size_t i = 0; i < ranks->ranks.count; i++) {
        const size_t number = (size_t)(sorted[i] - items);

        if (!tn_vec_append(&ranks->order, &number, 1)) {
            return false;
        }
    }
    return true;
}

/* `numbers` and `sorted` are room for one of each rank. */
static bool result_fill(struct tn_ranks *ranks, double *numbers, const struct rank **sorted,
                        struct tn_ranks_result *result)
{
    const struct tn_vec *items = &ranks->ranks;
    const double middle = distances_set(items, numbers, result);
    const struct rank *typical = typical_find(items, middle);

    for (size_t i = 0; i < items->count; i++) {
        sorted[i] = (const struct rank *)items->items + i;
    }
    qsort(sorted, items->count, sizeof(const struct rank *), rank_compare);
    result->typical = typical->shown;
    result->typical.file =
        tn_result_text(tn_result_of(result), typical->shown.file, strlen(typical->shown.file));
    return result->typical.file && order_keep(ranks, sorted) && rows_make(ranks, sorted, result) &&
           outliers_make(ranks, typical, sorted, result);
}

enum tarn_status tn_ranks_compare(struct tn_ranks *ranks, struct tn_ranks_result **result_out,
                                  struct tarn_error *error)
{
    const size_t count = ranks->ranks.count;

    *result_out = NULL;
    if (count == 0) {
        return tn_fail(error, TARN_ERR_STATE, "no snapshot was added");
    }
    double *numbers = tn_host_alloc(count * sizeof *numbers);
    const struct rank **sorted = tn_host_alloc(count * sizeof(const struct rank *));
    struct tn_ranks_result *result = tn_result_create(sizeof *result);
    const bool good = numbers && sorted && result && result_fill(ranks, numbers, sorted, result);

    tn_host_free(sorted, count * sizeof(const struct rank *));
    tn_host_free(numbers, count * sizeof *numbers);
    if (!good) {
        tarn_report_destroy(result);
        return tn_fail_memory(error);
    }
    *result_out = result;
    return TARN_OK;
}
