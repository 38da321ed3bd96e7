/* SPDX-License-Identifier: MIT */
/*
 * A run step by step. Steps are found as leaks finds its time points (repeat.h), which are the ends
 * of steps, or where a stack repeats their beginnings. What a step held at its beginning counts for
 * its peak, as PyTorch counts after reset_peak_memory_stats().
 *
 * Cost: O(events + blocks + steps), and O(steps log steps) when not all are shown.
 */
#include "analysis/repeat.h"
#include "base/order.h"
#include "report/reports.h"
#include "report/spread.h"

struct steps {
    const struct tn_analysis *analysis;
    struct tn_repeats repeats;
    struct tn_vec rows; /* struct tarn_step, in the order of the run */
    struct tarn_steps_result *result;
};

static struct tarn_step *row_at(const struct steps *steps, size_t number)
{
    return &((struct tarn_step *)steps->rows.items)[number];
}

/* ---- where they are ---- */

/* A row of the events [first, limit), unless there are none. */
static bool row_add(struct steps *steps, enum tarn_step_kind kind, uint64_t number, uint64_t first,
                    uint64_t limit)
{
    const struct tarn_step row = {.kind = kind,
                                  .number = kind == TARN_STEP_WHOLE ? number : TARN_NONE,
                                  .first_event = first,
                                  .last_event = limit - 1};

    return first >= limit || tn_vec_append(&steps->rows, &row, 1);
}

/* How many annotated steps end before the selected part, in which some end. */
static uint64_t steps_before(const struct tn_analysis *analysis)
{
    const uint64_t *ends = analysis->steps.items;
    uint64_t count = 0;

    while (tn_always(count < analysis->steps.count) && ends[count] < analysis->timeline->first) {
        count++;
    }
    return count;
}

static bool rows_by_ends(struct steps *steps)
{
    const struct tn_timeline *timeline = steps->analysis->timeline;
    const uint64_t *ends = steps->repeats.at.items;
    const uint64_t before =
        steps->repeats.kind == TN_REPEAT_STEPS ? steps_before(steps->analysis) : 0;
    uint64_t first = timeline->first;

    for (size_t i = 0; i < steps->repeats.at.count; i++) {
        if (!row_add(steps, TARN_STEP_WHOLE, before + i + 1, first, ends[i] + 1)) {
            return false;
        }
        first = ends[i] + 1;
    }
    return row_add(steps, TARN_STEP_AFTER, 0, first, timeline->limit);
}

static bool rows_by_beginnings(struct steps *steps)
{
    const struct tn_timeline *timeline = steps->analysis->timeline;
    const uint64_t *at = steps->repeats.at.items;
    const size_t count = steps->repeats.at.count;

    if (!row_add(steps, TARN_STEP_BEFORE, 0, timeline->first, at[0])) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!row_add(steps, TARN_STEP_WHOLE, i + 1, at[i],
                     i + 1 < count ? at[i + 1] : timeline->limit)) {
            return false;
        }
    }
    return true;
}

/* ---- what happened in them ---- */

/* Follows the trace through one row; `now` is right before it, and then at its end. */
static void row_follow(const struct tn_timeline *timeline, struct tarn_step *row,
                       struct tn_time_point *now)
{
    const uint64_t start = now->requested;
    const struct tn_time_peak peak = tn_timeline_follow(timeline, now, row->last_event + 1);

    row->peak = peak.requested;
    row->peak_event = peak.requested_entry; /* TN_NEVER is TARN_NONE */
    row->reserved_peak = peak.reserved;
    row->end = now->requested;
    row->growth = (int64_t)(row->end - start);
}

/* The row of an event, at or after that of the event before. */
static struct tarn_step *row_find(const struct steps *steps, struct tarn_step *row, uint64_t event)
{
    const struct tarn_step *last = row_at(steps, steps->rows.count - 1);

    while (row < last && row->last_event < event) {
        row++;
    }
    return row;
}

static void allocations_count(const struct steps *steps)
{
    const struct tn_timeline *timeline = steps->analysis->timeline;
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    struct tarn_step *row = row_at(steps, 0);

    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        if (lifetimes[i].start != TN_NEVER) { /* these begin one after the other */
            row = row_find(steps, row, lifetimes[i].start);
            row->allocations++;
            row->allocated += lifetimes[i].size;
        }
    }
}

static void device_call_count(struct tarn_step *row, const struct tn_trace_entry *entry)
{
    row->device_calls++;
    row->segment_allocs += entry->action == TN_TRACE_SEGMENT_ALLOC;
    row->segment_frees += entry->action == TN_TRACE_SEGMENT_FREE;
    row->segment_maps += entry->action == TN_TRACE_SEGMENT_MAP;
    row->segment_unmaps += entry->action == TN_TRACE_SEGMENT_UNMAP;
}

/* Device calls, of all segments whichever are selected, and failed requests. */
static void device_calls_count(const struct steps *steps)
{
    const struct tn_timeline *timeline = steps->analysis->timeline;
    const struct tn_vec *memory = &steps->analysis->whole.memory;
    const struct tn_memory_change *changes = memory->items;
    const uint64_t *ooms = timeline->ooms.items;
    struct tarn_step *row = row_at(steps, 0);

    for (size_t i = 0; i < memory->count; i++) {
        const uint64_t entry = changes[i].entry;

        if (entry >= timeline->first && entry < timeline->limit) {
            row = row_find(steps, row, entry);
            device_call_count(row, tn_trace_at(timeline->model, timeline->trace, entry));
        }
    }
    row = row_at(steps, 0);
    for (size_t i = 0; i < timeline->ooms.count; i++) {
        row = row_find(steps, row, ooms[i]);
        row->ooms++;
    }
}

static bool rows_make(struct steps *steps)
{
    struct tn_time_point now = steps->analysis->timeline->start;

    if (!(steps->repeats.kind == TN_REPEAT_STACK ? rows_by_beginnings : rows_by_ends)(steps)) {
        return false;
    }
    for (size_t i = 0; i < steps->rows.count; i++) {
        row_follow(steps->analysis->timeline, row_at(steps, i), &now);
    }
    allocations_count(steps);
    device_calls_count(steps);
    return true;
}

/* ---- which stand out ---- */

/* Above the median before below it, then the farthest. */
static bool is_farther(const struct tarn_step *left, const struct tarn_step *right, double median)
{
    const bool left_above = (double)left->peak > median;
    const bool right_above = (double)right->peak > median;

    return left_above != right_above ? left_above : left->distance > right->distance;
}

static void outlier_count(struct tarn_steps_result *result, const struct tarn_step *row,
                          double median)
{
    if (result->outlier_count == 0 || is_farther(row, &result->outlier, median)) {
        result->outlier = *row;
    }
    result->outlier_count++;
}

/* Whether steps should look alike: equal parts of a trace need not. */
static bool is_even(enum tn_repeat_kind kind)
{
    return kind == TN_REPEAT_STEPS || kind == TN_REPEAT_STACK;
}

static void outliers_find(struct steps *steps, double *peaks)
{
    size_t count = 0;

    for (size_t i = 0; i < steps->rows.count; i++) {
        if (row_at(steps, i)->kind == TARN_STEP_WHOLE) {
            peaks[count++] = (double)row_at(steps, i)->peak;
        }
    }
    tn_assert(count > 0); /* a part has an event, and so a time point */
    const struct tn_spread spread = tn_spread_of(peaks, count);

    steps->result->step_count = count;
    steps->result->median_peak = (uint64_t)spread.median;
    for (size_t i = 0; i < steps->rows.count && is_even(steps->repeats.kind); i++) {
        struct tarn_step *row = row_at(steps, i);

        if (row->kind == TARN_STEP_WHOLE) {
            row->distance = tn_spread_distance(&spread, (double)row->peak);
            row->is_outlier = tn_spread_has_outlier(&spread, (double)row->peak);
        }
        if (row->is_outlier) {
            outlier_count(steps->result, row, spread.median);
        }
    }
}

/* ---- which are shown ---- */

static int by_peak(const void *left, const void *right)
{
    const struct tarn_step *a = left;
    const struct tarn_step *b = right;
    const int order = tn_order(b->peak, a->peak);

    return order ? order : tn_order(a->first_event, b->first_event);
}

static int by_time(const void *left, const void *right)
{
    const struct tarn_step *a = left;
    const struct tarn_step *b = right;

    return tn_order(a->first_event, b->first_event);
}

static void sum_add(struct tarn_step *sum, const struct tarn_step *row)
{
    if (row->last_event >= sum->last_event) {
        sum->last_event = row->last_event;
        sum->end = row->end;
    }
    if (row->peak > sum->peak) {
        sum->peak = row->peak;
        sum->peak_event = row->peak_event;
    }
    sum->first_event = row->first_event < sum->first_event ? row->first_event : sum->first_event;
    sum->reserved_peak =
        row->reserved_peak > sum->reserved_peak ? row->reserved_peak : sum->reserved_peak;
    sum->growth += row->growth;
    sum->allocations += row->allocations;
    sum->allocated += row->allocated;
    sum->device_calls += row->device_calls;
    sum->segment_allocs += row->segment_allocs;
    sum->segment_frees += row->segment_frees;
    sum->segment_maps += row->segment_maps;
    sum->segment_unmaps += row->segment_unmaps;
    sum->ooms += row->ooms;
}

static struct tarn_step sum_of(const struct steps *steps, size_t first)
{
    struct tarn_step sum = {
        .number = TARN_NONE, .peak_event = TARN_NONE, .first_event = UINT64_MAX};

    for (size_t i = first; i < steps->rows.count; i++) {
        sum_add(&sum, row_at(steps, i));
    }
    sum.first_event = steps->rows.count > first ? sum.first_event : 0;
    return sum;
}

static bool rows_show(const struct tn_report *report, struct steps *steps)
{
    struct tarn_steps_result *result = steps->result;
    const uint64_t wanted = report->options->rows;
    const size_t count = steps->rows.count;

    result->row_count = wanted > 0 && wanted < count ? (size_t)wanted : count;
    result->other_count = count - result->row_count;
    result->total = sum_of(steps, 0);
    if (result->other_count > 0) {
        tn_vec_sort(&steps->rows, by_peak);
    }
    result->others = sum_of(steps, result->row_count);
    steps->rows.count = result->row_count;
    tn_vec_sort(&steps->rows, by_time);
    result->rows =
        tn_result_copy(report->result, steps->rows.items, result->row_count, sizeof *result->rows);
    return result->rows != NULL;
}

/* ---- devices ---- */

static bool points_make(const struct tn_report *report, const struct steps *steps)
{
    static const enum tarn_leak_points kinds[] = {[TN_REPEAT_STEPS] = TARN_LEAK_POINTS_STEPS,
                                                  [TN_REPEAT_STACK] = TARN_LEAK_POINTS_STACK,
                                                  [TN_REPEAT_PARTS] = TARN_LEAK_POINTS_PARTS,
                                                  [TN_REPEAT_GUESSED] = TARN_LEAK_POINTS_GUESSED};

    steps->result->points_by = kinds[steps->repeats.kind];
    return steps->repeats.kind != TN_REPEAT_STACK ||
           tn_result_stack(report->result, steps->analysis->whole.model, steps->repeats.stack,
                           &steps->result->repeated);
}

static bool steps_fill(const struct tn_report *report, struct steps *steps)
{
    if (!rows_make(steps)) {
        return false;
    }
    double *peaks =
        tn_arena_alloc_array(tn_result_arena(report->result), steps->rows.count + 1, sizeof *peaks);

    if (!peaks) {
        return false;
    }
    outliers_find(steps, peaks);
    return points_make(report, steps) && rows_show(report, steps);
}

enum tarn_status tn_steps_compute(const struct tn_report *report,
                                  const struct tn_analysis *analysis, void *result_out,
                                  struct tarn_error *error)
{
    struct steps steps = {.analysis = analysis, .result = result_out};

    (void)error;
    tn_vec_init(&steps.rows, sizeof(struct tarn_step));
    if (!tn_repeats_init_all(&steps.repeats, analysis, report->options->parts)) {
        return TARN_ERR_HOST_MEMORY;
    }
    const bool good = steps_fill(report, &steps);

    tn_repeats_fini(&steps.repeats);
    tn_vec_fini(&steps.rows);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}
