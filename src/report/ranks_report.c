/* SPDX-License-Identifier: MIT */
/*
 * Many ranks side by side: their peaks, which of them stand out, and what these hold that the
 * others do not. Snapshots are added one by one, and only what each held at its instant is kept.
 *
 * How far a rank stands out is its distance from the median in units of the usual distance (the
 * median of all distances, times 1.4826, which for a normal distribution is the standard
 * deviation). From 3.5 on, and 1 % of the median, it is an outlier. It is compared with the rank
 * that is the (lower) median, so that the changes add up to the difference of the two.
 */
#include "tarn/report.h"

#include "analysis/delta.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/size_text.h"
#include "report/report_out.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define OUTLIER_DISTANCE 3.5
#define OUTLIER_SHARE    0.01
#define NORMAL_FACTOR    1.4826 /* of the median distance to the standard deviation */
#define FAR_AWAY         999.9  /* a distance where all others are equal */

enum {
    ROWS_DEFAULT = 10,
    OUTLIERS_MAX = 5, /* of which it is said what they hold */
    RANKS_MIN = 3     /* of fewer nobody stands out */
};

/* What one group held. */
struct part {
    uint32_t name;
    uint64_t bytes;
    uint64_t blocks;
};

/* One device of one snapshot. */
struct rank {
    const char *file; /* the arena's */
    size_t device;
    struct tn_time_point moment;
    uint64_t reserved_peak;
    size_t first; /* of its parts */
    size_t count;
    double distance;
    bool is_outlier;
};

struct tarn_ranks {
    struct tarn_report_options options;
    struct tn_name_table names;
    struct tn_vec ranks; /* struct rank, in the order of addition */
    struct tn_vec parts; /* struct part */
};

enum tarn_status tarn_ranks_create(const struct tarn_report_options *options,
                                   struct tarn_ranks **ranks_out, struct tarn_error *error)
{
    const struct tn_path_format format = {.ignore_lines = false};
    struct tarn_ranks *ranks = tn_host_alloc_zero(sizeof *ranks);

    *ranks_out = ranks;
    if (!ranks) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the ranks");
    }
    if (options) {
        ranks->options = *options;
    }
    tn_name_table_init(&ranks->names, &format);
    tn_vec_init(&ranks->ranks, sizeof(struct rank));
    tn_vec_init(&ranks->parts, sizeof(struct part));
    return TARN_OK;
}

void tarn_ranks_destroy(struct tarn_ranks *ranks)
{
    if (!ranks) {
        return;
    }
    tn_vec_fini(&ranks->parts);
    tn_vec_fini(&ranks->ranks);
    tn_name_table_fini(&ranks->names);
    tn_host_free(ranks, sizeof *ranks);
}

/* ---- adding ---- */

static bool parts_add(struct tarn_ranks *ranks, struct rank *rank,
                      const struct tn_analysis *analysis)
{
    struct tn_groups groups;
    bool good = tn_groups_collect(&groups, analysis, rank->moment.entry);
    const struct tn_group *rows = good ? groups.rows.items : NULL;

    if (!good) {
        return false;
    }
    rank->first = ranks->parts.count;
    rank->count = groups.rows.count;
    for (size_t i = 0; good && i < groups.rows.count; i++) {
        struct part *part = tn_vec_push(&ranks->parts);
        uint32_t name;

        good = part && tn_name_find(&ranks->names, &analysis->keys, rows[i].key, &name);
        if (good) {
            *part = (struct part){name, rows[i].bytes, rows[i].count};
        }
    }
    tn_groups_fini(&groups);
    return good;
}

static const char *name_keep(struct tarn_ranks *ranks, const char *name)
{
    char *copy = tn_arena_alloc(&ranks->names.arena, strlen(name) + 1);

    if (copy) {
        memcpy(copy, name, strlen(name) + 1);
    }
    return copy;
}

static enum tarn_status device_add(struct tarn_ranks *ranks, struct tn_query *query, size_t device,
                                   const char *name, struct tarn_error *error)
{
    struct tn_analysis analysis;
    struct rank rank = {.device = device, .file = name_keep(ranks, name)};
    enum tarn_status status =
        rank.file ? tn_analysis_init(&analysis, query, device, error) : TARN_ERR_HOST_MEMORY;

    if (status) {
        return status;
    }
    status =
        tn_analysis_time_point(&analysis, &query->selection.at, TARN_AT_PEAK, &rank.moment, error);
    if (status == TARN_OK) {
        struct rank *added = NULL;

        rank.reserved_peak = analysis.timeline->reserved_peak.reserved;
        if (parts_add(ranks, &rank, &analysis)) {
            added = tn_vec_push(&ranks->ranks);
        }
        if (added) {
            *added = rank;
        } else {
            status = TARN_ERR_HOST_MEMORY;
        }
    }
    tn_analysis_fini(&analysis);
    return status;
}

enum tarn_status tarn_ranks_add(struct tarn_ranks *ranks, const struct tarn_snapshot *snapshot,
                                const char *name, struct tarn_error *error)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tarn_report_options *options = &ranks->options;
    const size_t rank_count = ranks->ranks.count;
    const size_t part_count = ranks->parts.count;
    struct tn_query query;
    enum tarn_status status =
        tn_report_check_traces(model, options->one_device, options->device, error);

    if (status == TARN_OK) {
        status = tn_query_init(&query, model, options, error);
    }
    if (status) {
        return status;
    }
    for (size_t i = 0; status == TARN_OK && i < model->trace_count; i++) {
        if (model->traces[i].count > 0 && (!options->one_device || (size_t)options->device == i)) {
            status = device_add(ranks, &query, i, name, error);
        }
    }
    tn_query_fini(&query);
    if (status) {
        ranks->ranks.count = rank_count;
        ranks->parts.count = part_count;
    }
    return status == TARN_ERR_HOST_MEMORY ? tn_fail(error, status, "no host memory for a rank")
                                          : status;
}

/* ---- distances ---- */

static int number_compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* The median of numbers, which it sorts; of an even count the mean of both in the middle. */
static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, number_compare);
    return count % 2 == 1 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

/* Numbers of all ranks. */
struct spread {
    double least;
    double middle;
    double most;
};

static double away(double number, double from)
{
    return number > from ? number - from : from - number;
}

/* Sets the distances; `numbers` is room for one a rank. */
static struct spread distances_set(const struct tn_vec *ranks, double *numbers)
{
    struct rank *items = ranks->items;
    struct spread spread;

    for (size_t i = 0; i < ranks->count; i++) {
        numbers[i] = (double)items[i].moment.requested;
    }
    spread.middle = median(numbers, ranks->count);
    spread.least = numbers[0];
    spread.most = numbers[ranks->count - 1];
    for (size_t i = 0; i < ranks->count; i++) {
        numbers[i] = away((double)items[i].moment.requested, spread.middle);
    }
    const double usual = median(numbers, ranks->count) * NORMAL_FACTOR;

    for (size_t i = 0; i < ranks->count; i++) {
        const double distance = away((double)items[i].moment.requested, spread.middle);

        if (distance > 0) {
            items[i].distance =
                usual > 0 && distance / usual < FAR_AWAY ? distance / usual : FAR_AWAY;
        }
        items[i].is_outlier = ranks->count >= RANKS_MIN && items[i].distance >= OUTLIER_DISTANCE &&
                              distance > spread.middle * OUTLIER_SHARE;
    }
    return spread;
}

static struct spread reserved_spread(const struct tn_vec *ranks, double *numbers)
{
    const struct rank *items = ranks->items;
    struct spread spread;

    for (size_t i = 0; i < ranks->count; i++) {
        numbers[i] = (double)items[i].reserved_peak;
    }
    spread.middle = median(numbers, ranks->count);
    spread.least = numbers[0];
    spread.most = numbers[ranks->count - 1];
    return spread;
}

/* Those that stand out first, then by what they use. */
static int rank_compare(const void *left, const void *right)
{
    const struct rank *a = *(const struct rank *const *)left;
    const struct rank *b = *(const struct rank *const *)right;

    if (a->is_outlier != b->is_outlier) {
        return a->is_outlier ? -1 : 1;
    }
    if (a->is_outlier && a->distance != b->distance) {
        return a->distance > b->distance ? -1 : 1;
    }
    if (a->moment.requested != b->moment.requested) {
        return a->moment.requested > b->moment.requested ? -1 : 1;
    }
    return (a > b) - (a < b); /* they lie in one array: in the order of addition */
}

/* The rank nearest to the median, and not an outlier if any is not. */
static const struct rank *typical_find(const struct tn_vec *ranks, double middle)
{
    const struct rank *items = ranks->items;
    const struct rank *best = &items[0];

    for (size_t i = 1; i < ranks->count; i++) {
        if (away((double)items[i].moment.requested, middle) <
            away((double)best->moment.requested, middle)) {
            best = &items[i];
        }
    }
    return best;
}

/* ---- writing ---- */

/* All that is written of. */
struct table {
    const struct tarn_ranks *ranks;
    const struct rank **sorted;
    size_t count;
    struct spread in_use;
    struct spread reserved;
    const struct rank *typical;
    struct tn_text_out out_text;
    struct tn_json_text out_json;
    struct tn_text_out *out;
    struct tn_json_text *json; /* NULL: text */
    uint64_t limit;
};

static bool delta_make(struct tn_delta *delta, const struct tarn_ranks *ranks,
                       const struct rank *typical, const struct rank *rank)
{
    const struct rank *sides[2] = {typical, rank};

    tn_delta_init(delta, &ranks->names);
    for (int side = 0; side < 2; side++) {
        const struct part *parts = (const struct part *)ranks->parts.items + sides[side]->first;

        for (size_t i = 0; i < sides[side]->count; i++) {
            if (!tn_delta_add(delta, (enum tn_delta_side)side, parts[i].name, parts[i].bytes,
                              parts[i].blocks)) {
                return false;
            }
        }
    }
    tn_delta_sort(delta);
    return true;
}

static void file_put(struct tn_text_out *out, const struct rank *rank)
{
    tn_text_put_escaped(out, rank->file, strlen(rank->file), TN_ESCAPED_PLAIN);
    tn_text_printf(out, ", device %zu", rank->device);
}

static void spread_put(struct tn_text_out *out, const char *what, const struct spread *spread)
{
    tn_text_printf(out, "%s: least %s", what, tn_text_size(out, spread->least).text);
    tn_text_printf(out, ", median %s", tn_text_size(out, spread->middle).text);
    tn_text_printf(out, ", most %s\n", tn_text_size(out, spread->most).text);
}

static void rows_put(const struct table *table)
{
    struct tn_text_out *out = table->out;
    const size_t limit = table->limit < table->count ? (size_t)table->limit : table->count;
    double others[2] = {0, 0}; /* of any number of files */
    double total[2] = {0, 0};

    tn_text_put_head(out, "\n#in use#reserved  distance\n");
    for (size_t i = 0; i < table->count; i++) {
        const struct rank *rank = table->sorted[i];

        total[0] += (double)rank->moment.requested;
        total[1] += (double)rank->reserved_peak;
        if (i >= limit) {
            others[0] += (double)rank->moment.requested;
            others[1] += (double)rank->reserved_peak;
            continue;
        }
        tn_text_put_size(out, (double)rank->moment.requested);
        tn_text_put_size(out, (double)rank->reserved_peak);
        tn_text_printf(out, "  %8.1f  ", rank->distance);
        file_put(out, rank);
        tn_text_puts(out, rank->is_outlier ? "  outlier\n" : "\n");
    }
    if (limit < table->count) {
        tn_text_put_size(out, others[0]);
        tn_text_put_size(out, others[1]);
        tn_text_printf(out, "            others (%zu ranks)\n", table->count - limit);
    }
    tn_text_put_size(out, total[0]);
    tn_text_put_size(out, total[1]);
    tn_text_puts(out, "            total\n");
}

static void rank_put_json(struct tn_json_text *json, const char *key, const struct rank *rank)
{
    tn_json_open_object(json, key);
    tn_json_text(json, "file", rank->file, strlen(rank->file));
    tn_json_number(json, "device", rank->device);
    tn_json_number(json, "requested_bytes", rank->moment.requested);
    tn_json_number(json, "left_out_bytes", rank->moment.left_out);
    tn_json_number(json, "reserved_peak_bytes", rank->reserved_peak);
    tn_json_bool(json, "is_outlier", rank->is_outlier);
    tn_json_close(json);
}

static void spread_put_json(struct tn_json_text *json, const char *key, const struct spread *spread)
{
    tn_json_open_object(json, key);
    tn_json_number(json, "least", (uint64_t)spread->least);
    tn_json_number(json, "median", (uint64_t)spread->middle);
    tn_json_number(json, "most", (uint64_t)spread->most);
    tn_json_close(json);
}

static void head_put(const struct table *table)
{
    if (table->json) {
        spread_put_json(table->json, "requested_bytes", &table->in_use);
        spread_put_json(table->json, "reserved_peak_bytes", &table->reserved);
        tn_json_open_array(table->json, "ranks");
        for (size_t i = 0; i < table->count; i++) {
            rank_put_json(table->json, NULL, table->sorted[i]);
        }
        tn_json_close(table->json);
        rank_put_json(table->json, "typical", table->typical);
        tn_json_open_array(table->json, "outliers");
        return;
    }
    tn_text_printf(table->out, "%zu ranks\n", table->count);
    spread_put(table->out, "in use", &table->in_use);
    spread_put(table->out, "most reserved", &table->reserved);
    rows_put(table);
    if (table->count < RANKS_MIN) {
        tn_text_puts(table->out, "too few ranks to tell which stands out: 3 are needed\n");
    } else if (!table->sorted[0]->is_outlier) {
        tn_text_puts(table->out, "no rank stands out\n");
    }
}

static void outlier_put(const struct table *table, const struct rank *rank,
                        const struct tn_delta *delta)
{
    const enum tarn_grouping by = table->ranks->options.by;

    if (table->json) {
        tn_json_open_object(table->json, NULL);
        tn_json_text(table->json, "file", rank->file, strlen(rank->file));
        tn_json_number(table->json, "device", rank->device);
        tn_delta_put_json(table->json, delta, by, table->limit);
        tn_json_close(table->json);
        return;
    }
    tn_text_putc(table->out, '\n');
    file_put(table->out, rank);
    tn_text_puts(table->out, " (after) against ");
    file_put(table->out, table->typical);
    tn_text_puts(table->out, " (before)\n");
    tn_delta_put(table->out, delta, by, table->limit);
}

static bool table_put(const struct table *table)
{
    head_put(table);
    for (size_t i = 0; i < table->count && i < OUTLIERS_MAX && table->sorted[i]->is_outlier; i++) {
        struct tn_delta delta;
        const bool good = delta_make(&delta, table->ranks, table->typical, table->sorted[i]);

        if (good) {
            outlier_put(table, table->sorted[i], &delta);
        }
        tn_delta_fini(&delta);
        if (!good) {
            return false;
        }
    }
    return true;
}

/* Distances and order; `numbers` is room for one a rank. */
static void table_fill(struct table *table, double *numbers)
{
    const struct tn_vec *ranks = &table->ranks->ranks;

    table->in_use = distances_set(ranks, numbers);
    table->reserved = reserved_spread(ranks, numbers);
    table->typical = typical_find(ranks, table->in_use.middle);
    for (size_t i = 0; i < ranks->count; i++) {
        table->sorted[i] = (const struct rank *)ranks->items + i;
    }
    qsort(table->sorted, ranks->count, sizeof(const struct rank *), rank_compare);
}

static enum tarn_status table_write(struct table *table, const struct tarn_writer *writer,
                                    struct tarn_error *error)
{
    tn_text_init(&table->out_text, writer);
    table->out_text.units = table->ranks->options.units;
    table->out = &table->out_text;
    table->json = table->ranks->options.json ? &table->out_json : NULL;
    if (table->json) {
        tn_json_begin(table->json, table->out, "tarn.ranks/1");
    }
    if (!table_put(table)) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory to compare ranks");
    }
    if (table->json) {
        tn_json_end(table->json);
    }
    const enum tarn_status status = tn_text_finish(table->out);

    return status ? tn_fail(error, status, "cannot write the report") : TARN_OK;
}

enum tarn_status tarn_ranks_report(struct tarn_ranks *ranks, const struct tarn_writer *writer,
                                   struct tarn_error *error)
{
    const size_t count = ranks->ranks.count;
    struct table table = {
        .ranks = ranks,
        .count = count,
        .limit = ranks->options.rows > 0 ? ranks->options.rows : ROWS_DEFAULT,
    };

    if (count == 0) {
        return tn_fail(error, TARN_ERR_STATE, "no snapshot was added");
    }
    double *numbers = tn_host_alloc(count * sizeof *numbers);

    table.sorted = tn_host_alloc(count * sizeof(const struct rank *));
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    if (numbers && table.sorted) {
        table_fill(&table, numbers);
        status = table_write(&table, writer, error);
    } else {
        (void)tn_fail(error, status, "no host memory to compare ranks");
    }
    tn_host_free(table.sorted, count * sizeof(const struct rank *));
    tn_host_free(numbers, count * sizeof *numbers);
    return status;
}
