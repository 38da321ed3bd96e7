/* SPDX-License-Identifier: MIT */
/*
 * Groups whose memory keeps growing. Memory is compared at points: time points at which a run
 * should look alike (repeat.h). The growth of a group is the median of the slopes between all
 * pairs of points (Theil-Sen), so that one large step, as at the first use of something, is not
 * taken for a leak. A group leaks when that growth is above zero, it holds more at the last moment
 * than at the first, and it grew in at least two, and at least a third, of the steps between.
 *
 * Cost: with n time points, O(blocks n) at worst and O(blocks) where most of them are short-lived,
 * and O(n^2 log n) for each group that grew; n is at most TN_REPEATS_MAX.
 */
#include "analysis/repeat.h"
#include "analysis/suppress.h"
#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/order.h"
#include "report/label_apart.h"
#include "report/reports.h"

#include <stdlib.h>

enum {
    PAIRS_MAX = TN_REPEATS_MAX * (TN_REPEATS_MAX - 1) / 2,
    ROWS_EXPECTED_MAX = 4096
};

/* What one group holds at each time point. */
struct row {
    struct tarn_group group;
    uint64_t bytes[TN_REPEATS_MAX]; /* until row_sum_up: the change since the one before */
    uint64_t blocks;                /* at the last time point */
    double slope;                   /* bytes from one time point to the next; 0: does not leak */
    uint64_t grew;                  /* between how many neighbouring time points */
    size_t first_growth;            /* the first time point that is higher than before */
};

struct leaks {
    struct tn_repeats repeats;
    struct tn_row_set set; /* struct row; those that leak first, most growth first */
    size_t count;          /* of rows that leak */
    struct row suppressed; /* all of these in one */
    uint64_t suppressed_blocks;
    struct row total;
    uint8_t *is_suppressed; /* a stack: 0 not asked, 1 no, 2 yes; NULL: there are none */
};

static uint64_t point_at(const struct leaks *leaks, size_t number)
{
    return ((const uint64_t *)leaks->repeats.at.items)[number];
}

/* The first time point at or after an entry. Looked for from one that is not behind it: blocks come
 * in the order of their allocations, and end after they begin. */
static size_t point_find(const struct leaks *leaks, uint64_t entry, size_t near)
{
    tn_assert(near == 0 || point_at(leaks, near - 1) < entry);
    while (near < leaks->repeats.at.count && point_at(leaks, near) < entry) {
        near++;
    }
    return near;
}

static bool is_suppressed(struct leaks *leaks, const struct tn_report *report,
                          const struct tn_model *model, uint32_t stack)
{
    if (!leaks->is_suppressed) {
        return false;
    }
    if (leaks->is_suppressed[stack] == 0) {
        leaks->is_suppressed[stack] =
            tn_suppresses(report->options->suppressions, model, stack) ? 2 : 1;
    }
    return leaks->is_suppressed[stack] == 2;
}

/* The time points [from, to) at which a block is allocated. */
struct points {
    size_t from;
    size_t to;
};

/* `near` are those of the block before. */
static struct points points_of(const struct leaks *leaks, const struct tn_lifetime *lifetime,
                               struct points near)
{
    const size_t from =
        lifetime->start == TN_NEVER ? 0 : point_find(leaks, lifetime->start, near.from);

    return (struct points){.from = from,
                           .to = lifetime->end == TN_NEVER
                                     ? leaks->repeats.at.count
                                     : point_find(leaks, lifetime->end, from)};
}

/* Whether a block comes and goes right before a time point and behind the one before: as most, and
 * told without a search. `point` is where the block before it began, or an earlier one. */
static bool is_between(const struct leaks *leaks, const struct tn_lifetime *lifetime, size_t point)
{
    tn_assert(point == 0 || lifetime->start > point_at(leaks, point - 1)); /* also TN_NEVER */
    return point < leaks->repeats.at.count && lifetime->start != TN_NEVER &&
           lifetime->end <= point_at(leaks, point);
}

static void row_count(const struct leaks *leaks, struct row *row, struct points points,
                      uint64_t size)
{
    row->bytes[points.from] += size;
    if (points.to < leaks->repeats.at.count) {
        row->bytes[points.to] -= size;
    } else {
        row->blocks++;
    }
}

static bool lifetimes_read(struct leaks *leaks, const struct tn_report *report,
                           const struct tn_analysis *analysis)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);
    struct points points = {0, 0};

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        struct row *row = &leaks->suppressed;
        uint64_t key;

        if (report->for_summary && is_between(leaks, &lifetimes[i], points.from)) {
            continue; /* a summary has no count of those that did not grow */
        }
        points = points_of(leaks, &lifetimes[i], points);
        if (report->for_summary && points.from >= points.to) {
            continue;
        }
        if (is_suppressed(leaks, report, analysis->whole.model, lifetimes[i].stack)) {
            leaks->suppressed_blocks++;
        } else {
            row = tn_group_key_find(&analysis->keys, &lifetimes[i], &key)
                      ? tn_row_get(&leaks->set, key)
                      : NULL;
        }
        if (!row) {
            return false;
        }
        if (points.from < points.to) {
            row_count(leaks, row, points, lifetimes[i].size);
            row_count(leaks, &leaks->total, points, lifetimes[i].size);
        }
    }
    return true;
}

/* ---- growth ---- */

static void row_sum_up(const struct leaks *leaks, struct row *row)
{
    for (size_t i = 1; i < leaks->repeats.at.count; i++) {
        row->bytes[i] += row->bytes[i - 1];
        if (row->bytes[i] > row->bytes[i - 1]) {
            row->first_growth = row->grew == 0 ? i : row->first_growth;
            row->grew++;
        }
    }
}

static double slope_of(const struct leaks *leaks, const struct row *row)
{
    double slopes[PAIRS_MAX] = {0};
    size_t count = 0;

    for (size_t i = 0; i < leaks->repeats.at.count; i++) {
        for (size_t k = i + 1; k < leaks->repeats.at.count; k++) {
            slopes[count++] = ((double)row->bytes[k] - (double)row->bytes[i]) / (double)(k - i);
        }
    }
    return tn_median(slopes, count);
}

static bool has_grown(const struct leaks *leaks, const struct row *row)
{
    const size_t points = leaks->repeats.at.count;

    return points >= TN_REPEATS_MIN && row->bytes[points - 1] > row->bytes[0] && row->grew >= 2 &&
           row->grew >= (points - 1) / 3;
}

static int row_compare(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;

    if (a->slope != b->slope) {
        return a->slope > b->slope ? -1 : 1;
    }
    return tn_order(a->group.key, b->group.key);
}

/* Puts a row behind those that leak before it. */
static void row_move_up(struct leaks *leaks, size_t number)
{
    struct row *rows = leaks->set.rows.items;
    const struct row leaking = rows[number];

    rows[number] = rows[leaks->count];
    rows[leaks->count++] = leaking;
}

/* Rows that do not leak are large and many, and stay in any order. */
static void leaks_rank(struct leaks *leaks)
{
    struct row *rows = leaks->set.rows.items;

    for (size_t i = 0; i < leaks->set.rows.count; i++) {
        row_sum_up(leaks, &rows[i]);
        if (has_grown(leaks, &rows[i])) {
            const double slope = slope_of(leaks, &rows[i]);

            rows[i].slope = slope > 0 ? slope : 0;
            if (slope > 0) {
                row_move_up(leaks, i);
            }
        }
    }
    row_sum_up(leaks, &leaks->suppressed);
    row_sum_up(leaks, &leaks->total);
    if (leaks->count > 0) {
        qsort(rows, leaks->count, sizeof *rows, row_compare);
    }
}

/* The sum of rows [from, to). */
static struct row rows_sum(const struct leaks *leaks, size_t from, size_t to)
{
    const struct row *rows = leaks->set.rows.items;
    struct row sum = {.blocks = 0};

    tn_assert(rows || from >= to);
    for (size_t i = from; i < to; i++) {
        for (size_t k = 0; k < leaks->repeats.at.count; k++) {
            sum.bytes[k] += rows[i].bytes[k];
        }
        sum.blocks += rows[i].blocks;
        sum.slope += rows[i].slope;
    }
    return sum;
}

/* ---- devices ---- */

/* The row in the result; `is_sum` has no steps of its own. */
static bool row_make(const struct tn_report *report, const struct leaks *leaks,
                     const struct row *row, bool is_sum, struct tarn_leak_row *row_out)
{
    const size_t count = leaks->repeats.at.count;
    const size_t last = count - 1;

    tn_assert(count > 0); /* a part has an event, and its end is a time point if nothing else is */
    *row_out = (struct tarn_leak_row){
        .group = row->group,
        .growth = (int64_t)row->slope,
        .change = (int64_t)(row->bytes[last] - row->bytes[0]),
        .first = row->bytes[0],
        .last = row->bytes[last],
        .blocks = row->blocks,
        .point_count = count,
        .bytes = tn_result_copy(report->result, row->bytes, count, sizeof row->bytes[0])};
    if (!is_sum) {
        row_out->steps = last;
        row_out->steps_grown = row->grew;
        row_out->first_growth_event = point_at(leaks, row->first_growth);
    }
    return row_out->bytes != NULL;
}

static bool rows_make(const struct tn_report *report, const struct tn_analysis *analysis,
                      const struct leaks *leaks, struct tarn_leaks_result *result)
{
    const struct row *from = leaks->set.rows.items;
    const size_t count = tn_report_rows(report, leaks->count);
    struct tarn_leak_row *rows =
        tn_arena_alloc_array(tn_result_arena(report->result), count, sizeof *rows);

    result->rows = rows;
    result->row_count = count;
    for (size_t i = 0; rows && i < count; i++) {
        if (!row_make(report, leaks, &from[i], false, &rows[i]) ||
            !tn_result_group(report->result, &analysis->keys, &rows[i].group)) {
            return false;
        }
    }
    return rows &&
           tn_labels_distinguish(report->result, &analysis->keys, rows, count, sizeof *rows);
}

static bool sums_make(const struct tn_report *report, const struct leaks *leaks,
                      struct tarn_leaks_result *result)
{
    const size_t shown = result->row_count;
    const struct row more = rows_sum(leaks, shown, leaks->count);
    const struct row others = rows_sum(leaks, leaks->count, leaks->set.rows.count);
    struct row total = leaks->total;

    total.slope = more.slope + rows_sum(leaks, 0, shown).slope;
    result->more_count = leaks->count - shown;
    result->other_count = leaks->set.rows.count - leaks->count;
    result->suppressed_blocks = leaks->suppressed_blocks;
    return row_make(report, leaks, &more, true, &result->more) &&
           row_make(report, leaks, &others, true, &result->others) &&
           row_make(report, leaks, &leaks->suppressed, true, &result->suppressed) &&
           row_make(report, leaks, &total, true, &result->total);
}

static bool points_make(const struct tn_report *report, const struct tn_analysis *analysis,
                        const struct leaks *leaks, struct tarn_leaks_result *result)
{
    static const enum tarn_leak_points kinds[] = {[TN_REPEAT_STEPS] = TARN_LEAK_POINTS_STEPS,
                                                  [TN_REPEAT_STACK] = TARN_LEAK_POINTS_STACK,
                                                  [TN_REPEAT_PARTS] = TARN_LEAK_POINTS_PARTS,
                                                  [TN_REPEAT_GUESSED] = TARN_LEAK_POINTS_GUESSED};
    const struct tn_repeats *repeats = &leaks->repeats;

    result->points_by = kinds[repeats->kind];
    result->points_found = repeats->found;
    result->point_count = repeats->at.count;
    result->points =
        tn_result_copy(report->result, repeats->at.items, repeats->at.count, sizeof(uint64_t));
    return result->points && (repeats->kind != TN_REPEAT_STACK ||
                              tn_result_stack(report->result, analysis->whole.model, repeats->stack,
                                              &result->repeated));
}

/* Rows are large: as many as there are likely to be are not copied while the table grows. */
static size_t rows_expected(const struct tn_analysis *analysis)
{
    const uint64_t stacks = analysis->whole.model->stacks.count;

    return stacks < ROWS_EXPECTED_MAX ? (size_t)stacks : ROWS_EXPECTED_MAX;
}

static bool leaks_init(struct leaks *leaks, const struct tn_report *report,
                       const struct tn_analysis *analysis)
{
    *leaks = (struct leaks){.count = 0};
    if (!tn_repeats_init(&leaks->repeats, analysis, report->options->parts)) {
        return false;
    }
    tn_row_set_init(&leaks->set, sizeof(struct row), 0, 0);
    if (report->options->suppressions) {
        leaks->is_suppressed = tn_host_alloc_zero((size_t)analysis->whole.model->stacks.count + 1);
    }
    return tn_vec_reserve(&leaks->set.rows, rows_expected(analysis)) &&
           (!report->options->suppressions || leaks->is_suppressed);
}

static void leaks_fini(struct leaks *leaks, const struct tn_analysis *analysis)
{
    tn_host_free(leaks->is_suppressed, (size_t)analysis->whole.model->stacks.count + 1);
    tn_row_set_fini(&leaks->set);
    tn_repeats_fini(&leaks->repeats);
}

enum tarn_status tn_leaks_compute(const struct tn_report *report,
                                  const struct tn_analysis *analysis, void *result_out,
                                  struct tarn_error *error)
{
    struct tarn_leaks_result *result = result_out;
    struct leaks leaks;
    bool good = leaks_init(&leaks, report, analysis) && lifetimes_read(&leaks, report, analysis);

    (void)error;
    if (good) {
        leaks_rank(&leaks);
        result->leak_count = leaks.count;
        if (report->options->leaks_out) {
            *report->options->leaks_out += leaks.count;
        }
        result->left_out_at_end = analysis->timeline->end.left_out;
        good = points_make(report, analysis, &leaks, result) &&
               rows_make(report, analysis, &leaks, result) && sums_make(report, &leaks, result);
    }
    leaks_fini(&leaks, analysis);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}
