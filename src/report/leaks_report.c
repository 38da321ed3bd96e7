/* SPDX-License-Identifier: MIT */
/*
 * Who holds more and more. Memory is looked at at moments at which a run should look alike (see
 * repeat.h). The growth of a group is the median of the slopes between all pairs of moments
 * (Theil-Sen), so that one large step, as at the first use of something, is not taken for a leak. A
 * group leaks when that growth is above zero, it holds more at the last moment than at the first,
 * and it grew in at least two and in a third of the steps between.
 *
 * Cost: O(blocks log moments) and O(moments^2 log moments) for each group that grew.
 */
#include "tarn/report.h"

#include "analysis/address_map.h"
#include "analysis/delta.h"
#include "analysis/repeat.h"
#include "analysis/suppress.h"
#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/size_text.h"
#include "report/report_out.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PAIRS_MAX = TN_REPEATS_MAX * (TN_REPEATS_MAX - 1) / 2
};

/* What one group holds at each moment. */
struct row {
    uint64_t key;
    uint64_t bytes[TN_REPEATS_MAX]; /* while lives are read: what changes there */
    uint64_t blocks;                /* at the last moment */
    double slope;                   /* bytes from one moment to the next; 0: does not leak */
    unsigned grew;                  /* from how many moments to the next */
    size_t first_growth;            /* the moment that is the first to be higher than before */
};

struct leaks {
    struct tn_repeats repeats;
    struct tn_vec rows; /* struct row; those that leak first, most growth first */
    struct tn_map numbers;
    size_t count;          /* of rows that leak */
    struct row suppressed; /* all of these in one */
    uint64_t suppressed_lives;
    struct row total;
    uint8_t *is_suppressed; /* a stack: 0 not asked, 1 no, 2 yes; NULL: there are none */
};

static uint64_t moment_at(const struct leaks *leaks, size_t number)
{
    return ((const uint64_t *)leaks->repeats.at.items)[number];
}

/* The first moment at or after an entry. */
static size_t moment_find(const struct leaks *leaks, uint64_t entry)
{
    size_t low = 0;
    size_t high = leaks->repeats.at.count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (moment_at(leaks, middle) < entry) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct row *row_get(struct leaks *leaks, uint64_t key)
{
    const uint64_t *number = tn_address_find(&leaks->numbers, key);

    if (number) {
        return (struct row *)leaks->rows.items + *number;
    }
    if (!tn_address_put(&leaks->numbers, key, leaks->rows.count)) {
        return NULL;
    }
    struct row *row = tn_vec_push(&leaks->rows);

    if (row) {
        row->key = key;
    }
    return row;
}

static bool is_suppressed(struct leaks *leaks, const struct tn_report_out *report, uint32_t stack)
{
    if (!leaks->is_suppressed) {
        return false;
    }
    if (leaks->is_suppressed[stack] == 0) {
        leaks->is_suppressed[stack] =
            tn_suppresses(report->options->suppressions, report->model, stack) ? 2 : 1;
    }
    return leaks->is_suppressed[stack] == 2;
}

static void life_count(const struct leaks *leaks, struct row *row,
                       const struct tn_lifetime *lifetime)
{
    const size_t from = lifetime->start == TN_NEVER ? 0 : moment_find(leaks, lifetime->start);
    const size_t to =
        lifetime->end == TN_NEVER ? leaks->repeats.at.count : moment_find(leaks, lifetime->end);

    if (from < to) {
        row->bytes[from] += lifetime->size;
        if (to < leaks->repeats.at.count) {
            row->bytes[to] -= lifetime->size;
        } else {
            row->blocks++;
        }
    }
}

static bool lives_read(struct leaks *leaks, const struct tn_report_out *report,
                       const struct tn_analysis *analysis)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        struct row *row = &leaks->suppressed;
        uint64_t key;

        if (is_suppressed(leaks, report, lifetimes[i].stack)) {
            leaks->suppressed_lives++;
        } else {
            row = tn_group_key_find(&analysis->keys, &lifetimes[i], &key) ? row_get(leaks, key)
                                                                          : NULL;
        }
        if (!row) {
            return false;
        }
        life_count(leaks, row, &lifetimes[i]);
        life_count(leaks, &leaks->total, &lifetimes[i]);
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

static int slope_compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
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
    qsort(slopes, count, sizeof slopes[0], slope_compare);
    return count % 2 == 1 ? slopes[count / 2] : (slopes[count / 2 - 1] + slopes[count / 2]) / 2;
}

static bool is_expandable(const struct leaks *leaks, const struct row *row)
{
    const size_t moments = leaks->repeats.at.count;

    return moments >= TN_REPEATS_MIN && row->bytes[moments - 1] > row->bytes[0] && row->grew >= 2 &&
           row->grew >= (moments - 1) / 3;
}

static int row_compare(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;

    if (a->slope != b->slope) {
        return a->slope > b->slope ? -1 : 1;
    }
    return (a->key > b->key) - (a->key < b->key);
}

static void leaks_rank(struct leaks *leaks)
{
    struct row *rows = leaks->rows.items;

    for (size_t i = 0; i < leaks->rows.count; i++) {
        row_sum_up(leaks, &rows[i]);
        if (is_expandable(leaks, &rows[i])) {
            const double slope = slope_of(leaks, &rows[i]);

            rows[i].slope = slope > 0 ? slope : 0;
            leaks->count += slope > 0;
        }
    }
    row_sum_up(leaks, &leaks->suppressed);
    row_sum_up(leaks, &leaks->total);
    if (leaks->rows.count > 0) {
        qsort(rows, leaks->rows.count, sizeof *rows, row_compare);
    }
}

/* The sum of rows [from, to). */
static struct row rows_sum(const struct leaks *leaks, size_t from, size_t to)
{
    const struct row *rows = leaks->rows.items;
    struct row sum = {.key = 0};

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

/* ---- text ---- */

static void moments_put(struct tn_text_out *out, const struct tn_analysis *analysis,
                        const struct leaks *leaks)
{
    const size_t count = leaks->repeats.at.count;

    tn_text_printf(out, "compared at %zu moments", count);
    if (count < leaks->repeats.found) {
        tn_text_printf(out, " of %" PRIu64, leaks->repeats.found);
    }
    switch (leaks->repeats.kind) {
    case TN_REPEAT_STEPS:
        tn_text_puts(out, ", the ends of steps");
        break;
    case TN_REPEAT_STACK:
        tn_text_puts(out, ", where this repeats: ");
        tn_stack_put(out, analysis->timeline->model, leaks->repeats.stack);
        break;
    case TN_REPEAT_PARTS:
        tn_text_puts(out, ", the ends of equal parts");
        break;
    case TN_REPEAT_GUESSED:
        tn_text_puts(out, ", the ends of equal parts: nothing tells steps (--steps N sets how "
                          "many parts)");
        break;
    }
    tn_text_puts(out, "\n\n");
}

static void row_put(struct tn_text_out *out, const struct leaks *leaks, const struct row *row,
                    bool is_one)
{
    const size_t last = leaks->repeats.at.count - 1;

    tn_change_put_column(out, row->slope);
    tn_change_put_column(out, (double)row->bytes[last] - (double)row->bytes[0]);
    tn_text_put_size(out, (double)row->bytes[0]);
    tn_text_put_size(out, (double)row->bytes[last]);
    tn_text_printf(out, "  %8" PRIu64 "  ", row->blocks);
    if (is_one) {
        tn_text_printf(out, "%3u of %-3zu  %7" PRIu64 "  ", row->grew, last,
                       moment_at(leaks, row->first_growth));
    } else {
        tn_text_puts(out, "                     ");
    }
}

static void leaks_put(const struct tn_report_out *report, const struct tn_analysis *analysis,
                      const struct leaks *leaks, size_t limit)
{
    const struct row *rows = leaks->rows.items;
    struct tn_text_out *out = report->out;
    const struct row more = rows_sum(leaks, limit, leaks->count);
    const struct row rest = rows_sum(leaks, leaks->count, leaks->rows.count);

    tn_assert(rows || limit == 0);
    tn_text_printf(out, "%s that hold more and more: %zu\n", tn_grouping_plural(analysis->keys.by),
                   leaks->count);
    tn_text_printf(out, "  %*s", tn_text_size_width(out) + 1, "per step");
    tn_text_printf(out, "  %*s", tn_text_size_width(out) + 1, "change");
    tn_text_put_head(out, "#first#last    blocks  grew in      from  ");
    tn_text_printf(out, "%s\n", tn_grouping_heading(analysis->keys.by));
    for (size_t i = 0; i < limit; i++) {
        row_put(out, leaks, &rows[i], true);
        tn_group_key_put(out, &analysis->keys, rows[i].key);
        tn_text_putc(out, '\n');
    }
    if (limit < leaks->count) {
        row_put(out, leaks, &more, false);
        tn_text_printf(out, "more that grow (%zu %s)\n", leaks->count - limit,
                       tn_grouping_plural(analysis->keys.by));
    }
    row_put(out, leaks, &rest, false);
    tn_text_printf(out, "the others (%zu %s)\n", leaks->rows.count - leaks->count,
                   tn_grouping_plural(analysis->keys.by));
    if (leaks->suppressed_lives > 0) {
        row_put(out, leaks, &leaks->suppressed, false);
        tn_text_puts(out, "suppressed\n");
    }
    struct row total = leaks->total;

    total.slope = more.slope + rows_sum(leaks, 0, limit).slope;
    row_put(out, leaks, &total, false);
    tn_text_puts(out, "total\n");
}

/* ---- JSON ---- */

static void row_members(struct tn_json_text *json, const struct leaks *leaks, const struct row *row)
{
    tn_json_open_array(json, "bytes");
    for (size_t i = 0; i < leaks->repeats.at.count; i++) {
        tn_json_number(json, NULL, row->bytes[i]);
    }
    tn_json_close(json);
    tn_json_number(json, "blocks", row->blocks);
}

static void sum_put_json(struct tn_json_text *json, const struct leaks *leaks, const char *key,
                         const struct row *row)
{
    tn_json_open_object(json, key);
    row_members(json, leaks, row);
    tn_json_close(json);
}

static void leaks_put_json(const struct tn_report_out *report, const struct tn_analysis *analysis,
                           const struct leaks *leaks, size_t limit)
{
    static const char *const kinds[] = {[TN_REPEAT_STEPS] = "steps",
                                        [TN_REPEAT_STACK] = "repeating stack",
                                        [TN_REPEAT_PARTS] = "parts",
                                        [TN_REPEAT_GUESSED] = "guessed parts"};
    const struct row *rows = leaks->rows.items;
    const struct row more = rows_sum(leaks, limit, leaks->count);
    const struct row rest = rows_sum(leaks, leaks->count, leaks->rows.count);
    struct tn_json_text *json = report->json;

    tn_assert(rows || limit == 0);
    tn_json_word(json, "moments_by", kinds[leaks->repeats.kind]);
    tn_json_open_array(json, "moments");
    for (size_t i = 0; i < leaks->repeats.at.count; i++) {
        tn_json_number(json, NULL, moment_at(leaks, i));
    }
    tn_json_close(json);
    tn_json_number(json, "leaks", leaks->count);
    tn_json_open_array(json, "groups");
    for (size_t i = 0; i < limit; i++) {
        tn_json_open_object(json, NULL);
        tn_json_number(json, "bytes_per_step", (uint64_t)rows[i].slope);
        tn_json_number(json, "steps_that_grew", rows[i].grew);
        tn_json_number(json, "first_growth_entry", moment_at(leaks, rows[i].first_growth));
        row_members(json, leaks, &rows[i]);
        tn_group_key_put_json(json, &analysis->keys, rows[i].key);
        tn_json_close(json);
    }
    tn_json_close(json);
    sum_put_json(json, leaks, "more_that_grow", &more);
    sum_put_json(json, leaks, "others", &rest);
    sum_put_json(json, leaks, "suppressed", &leaks->suppressed);
    sum_put_json(json, leaks, "total", &leaks->total);
}

/* ---- devices ---- */

static bool leaks_init(struct leaks *leaks, const struct tn_report_out *report,
                       const struct tn_analysis *analysis)
{
    *leaks = (struct leaks){.count = 0};
    if (!tn_repeats_init(&leaks->repeats, analysis, report->options->parts)) {
        return false;
    }
    tn_vec_init(&leaks->rows, sizeof(struct row));
    if (report->options->suppressions) {
        leaks->is_suppressed = tn_host_alloc_zero((size_t)report->model->stacks.count + 1);
    }
    return !report->options->suppressions || leaks->is_suppressed;
}

static void leaks_fini(struct leaks *leaks, const struct tn_report_out *report)
{
    tn_host_free(leaks->is_suppressed, (size_t)report->model->stacks.count + 1);
    tn_map_fini(&leaks->numbers);
    tn_vec_fini(&leaks->rows);
    tn_repeats_fini(&leaks->repeats);
}

static void device_write(const struct tn_report_out *report, const struct tn_analysis *analysis,
                         const struct leaks *leaks)
{
    const size_t limit = report->limit < leaks->count ? (size_t)report->limit : leaks->count;

    if (report->json) {
        tn_json_open_object(report->json, NULL);
        tn_json_signed(report->json, "device", analysis->timeline->device);
        tn_analysis_put_selection_json(report->json, analysis);
        leaks_put_json(report, analysis, leaks, limit);
        tn_json_close(report->json);
        return;
    }
    tn_text_printf(report->out, "device %" PRId64 "\n", analysis->timeline->device);
    tn_analysis_put_selection(report->out, analysis);
    moments_put(report->out, analysis, leaks);
    if (leaks->repeats.at.count < TN_REPEATS_MIN) {
        tn_text_printf(report->out, "too few to tell what grows: %d are needed\n", TN_REPEATS_MIN);
        return;
    }
    leaks_put(report, analysis, leaks, limit);
    if (tn_analysis_is_part(analysis)) {
        tn_text_printf(report->out, "  %s in use at the end are left out by the selection\n",
                       tn_text_size(report->out, (double)analysis->timeline->end.left_out).text);
    }
}

static enum tarn_status device_put(const struct tn_report_out *report,
                                   const struct tn_analysis *analysis, struct tarn_error *error)
{
    struct leaks leaks;
    bool good = leaks_init(&leaks, report, analysis) && lives_read(&leaks, report, analysis);

    (void)error;
    if (good) {
        leaks_rank(&leaks);
        device_write(report, analysis, &leaks);
        if (report->options->leaks_out) {
            *report->options->leaks_out += leaks.count;
        }
    }
    leaks_fini(&leaks, report);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

enum tarn_status tarn_report_leaks(const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *options,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    if (options && options->leaks_out) {
        *options->leaks_out = 0;
    }
    return tn_report_traces(snapshot, options, "tarn.leaks/1", device_put, writer, error);
}
