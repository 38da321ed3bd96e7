/* SPDX-License-Identifier: MIT */
/*
 * What changed between two snapshots, or two instants: by names that mean the same in both, so also
 * between different runs, where addresses do not.
 */
#include "tarn/report.h"

#include "analysis/delta.h"
#include "base/errinfo.h"
#include "report/report_out.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>

enum {
    ROWS_DEFAULT = 10
};

/* Growth in percent where there was nothing before. */
#define SHARE_OF_NOTHING 1e9

/* One side: a snapshot, and the device that is compared now. */
struct side {
    struct tn_query query;
    struct tn_analysis analysis;
    struct tn_time_point moment;
    bool has_device;
};

struct diff {
    struct side sides[2];
    const struct tarn_report_options *options;
    const struct tarn_diff_options *how;
    struct tn_text_out out_text;
    struct tn_json_text out_json;
    struct tn_text_out *out;
    struct tn_json_text *json; /* NULL: text */
    uint64_t limit;
    struct tarn_diff_counts counts;
};

static bool has_device(const struct tn_model *model, size_t device)
{
    return device < model->trace_count && model->traces[device].count > 0;
}

static const struct tarn_instant *instant_of(const struct diff *diff, int number)
{
    const struct tarn_instant *to = &diff->how->to;

    return number == 1 && to->kind != TARN_AT_UNSAID ? to : &diff->sides[number].query.selection.at;
}

/* Opens the device on one side and adds what is in use. Of a device that a file does not have
 * nothing is. */
static enum tarn_status side_open(struct diff *diff, int number, size_t device,
                                  struct tn_name_table *names, struct tn_delta *delta,
                                  struct tarn_error *error)
{
    struct side *side = &diff->sides[number];
    struct tn_groups groups;

    side->moment = (struct tn_time_point){.entry = TN_NEVER};
    side->has_device = has_device(side->query.model, device);
    if (!side->has_device) {
        return TARN_OK;
    }
    enum tarn_status status = tn_analysis_init(&side->analysis, &side->query, device, error);

    if (status) {
        side->has_device = false;
        return status;
    }
    status = tn_analysis_time_point(&side->analysis, instant_of(diff, number), TARN_AT_PEAK,
                                    &side->moment, error);
    if (status) {
        return status;
    }
    if (!tn_groups_collect(&groups, &side->analysis, side->moment.entry)) {
        return TARN_ERR_HOST_MEMORY;
    }
    const bool good = tn_delta_add_groups(delta, names, (enum tn_delta_side)number,
                                          &side->analysis.keys, &groups);

    tn_groups_fini(&groups);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

static void sides_close(struct diff *diff)
{
    for (int i = 0; i < 2; i++) {
        if (diff->sides[i].has_device) {
            tn_analysis_fini(&diff->sides[i].analysis);
            diff->sides[i].has_device = false;
        }
    }
}

static double percent(double change, uint64_t of)
{
    return of > 0 ? change / (double)of * 100 : 0.0;
}

static void counts_add(struct tarn_diff_counts *counts, const struct tn_delta_row *total)
{
    const double growth =
        total->bytes[1] > total->bytes[0] ? (double)total->bytes[1] - (double)total->bytes[0] : 0.0;
    const double share = total->bytes[0] > 0 ? percent(growth, total->bytes[0])
                                             : (growth > 0 ? SHARE_OF_NOTHING : 0.0);

    counts->before_bytes += total->bytes[0];
    counts->after_bytes += total->bytes[1];
    if (growth > counts->growth_bytes) {
        counts->growth_bytes = growth;
    }
    if (share > counts->growth_percent) {
        counts->growth_percent = share;
    }
}

/* ---- writing ---- */

static void folded_put(struct tn_text_out *out, const struct tn_delta *delta)
{
    const struct tn_delta_row *rows = delta->rows.items;

    for (size_t i = 0; i < delta->rows.count; i++) {
        const struct tn_name *name = tn_name_at(delta->names, rows[i].name);

        tn_text_put(out, name->path, name->path_length);
        tn_text_printf(out, " %" PRIu64 " %" PRIu64 "\n", rows[i].bytes[0], rows[i].bytes[1]);
    }
}

static void text_put(const struct diff *diff, size_t device, const struct tn_delta *delta)
{
    static const char *const words[] = {"before", "after"};
    const enum tarn_grouping by = diff->sides[0].query.by;
    const double change = (double)delta->total.bytes[1] - (double)delta->total.bytes[0];

    tn_text_printf(diff->out, "device %zu\n", device);
    for (int i = 0; i < 2; i++) {
        if (diff->sides[i].has_device) {
            tn_analysis_put_selection(diff->out, &diff->sides[i].analysis);
            tn_time_point_put(diff->out, &diff->sides[i].analysis, words[i],
                              &diff->sides[i].moment);
        } else {
            tn_text_printf(diff->out, "%s: has no trace of this device\n", words[i]);
        }
    }
    tn_text_puts(diff->out, "in all ");
    tn_change_put(diff->out, change);
    if (delta->total.bytes[0] > 0) {
        tn_text_printf(diff->out, " (%+.2f%%)", percent(change, delta->total.bytes[0]));
    }
    tn_text_puts(diff->out, "\n\n");
    tn_delta_put(diff->out, delta, by, diff->limit);
    tn_text_putc(diff->out, '\n');
    tn_delta_put_kinds(diff->out, delta, by);
}

static void json_put(const struct diff *diff, size_t device, const struct tn_delta *delta)
{
    static const char *const words[] = {"before", "after"};

    tn_json_open_object(diff->json, NULL);
    tn_json_number(diff->json, "device", device);
    for (int i = 0; i < 2; i++) {
        tn_json_open_object(diff->json, words[i]);
        if (diff->sides[i].has_device) {
            tn_analysis_put_selection_json(diff->json, &diff->sides[i].analysis);
            tn_time_point_put_json(diff->json, &diff->sides[i].analysis, &diff->sides[i].moment);
        }
        tn_json_close(diff->json);
    }
    tn_delta_put_json(diff->json, delta, diff->sides[0].query.by, diff->limit);
    tn_json_close(diff->json);
}

static enum tarn_status device_put(struct diff *diff, size_t device, struct tarn_error *error)
{
    const struct tn_path_format format = {.ignore_lines = diff->how->ignore_lines,
                                          .strip_prefix = diff->how->strip_prefix};
    struct tn_name_table names;
    struct tn_delta delta;

    tn_name_table_init(&names, &format);
    tn_delta_init(&delta, &names);
    enum tarn_status status = side_open(diff, 0, device, &names, &delta, error);

    if (status == TARN_OK) {
        status = side_open(diff, 1, device, &names, &delta, error);
    }
    if (status == TARN_OK) {
        tn_delta_sort(&delta);
        counts_add(&diff->counts, &delta.total);
        if (diff->how->folded) {
            folded_put(diff->out, &delta);
        } else if (diff->json) {
            json_put(diff, device, &delta);
        } else {
            text_put(diff, device, &delta);
        }
    }
    sides_close(diff);
    tn_delta_fini(&delta);
    tn_name_table_fini(&names);
    return status;
}

static enum tarn_status devices_put(struct diff *diff, struct tarn_error *error)
{
    const struct tn_model *before = diff->sides[0].query.model;
    const struct tn_model *after = diff->sides[1].query.model;
    const size_t count =
        before->trace_count > after->trace_count ? before->trace_count : after->trace_count;
    enum tarn_status status = TARN_OK;
    bool is_first = true;

    for (size_t i = 0; status == TARN_OK && i < count; i++) {
        const bool wanted = !diff->options->one_device || (size_t)diff->options->device == i;

        if (!wanted || !(has_device(before, i) || has_device(after, i))) {
            continue;
        }
        if (!is_first && !diff->json && !diff->how->folded) {
            tn_text_putc(diff->out, '\n');
        }
        is_first = false;
        status = device_put(diff, i, error);
    }
    return status == TARN_ERR_HOST_MEMORY
               ? tn_fail(error, status, "no host memory to compare the traces")
               : status;
}

/* Both sides must have a trace; of the one device that is wanted, one of them. */
static enum tarn_status traces_check(const struct tn_model *before, const struct tn_model *after,
                                     const struct tarn_report_options *options,
                                     struct tarn_error *error)
{
    enum tarn_status status = tn_report_check_traces(before, false, 0, error);

    if (status == TARN_OK) {
        status = tn_report_check_traces(after, false, 0, error);
    }
    if (status == TARN_OK && options->one_device &&
        (options->device < 0 || !has_device(before, (size_t)options->device))) {
        status = tn_report_check_traces(after, true, options->device, error);
    }
    return status;
}

static enum tarn_status diff_write(struct diff *diff, const struct tarn_writer *writer,
                                   struct tarn_error *error)
{
    tn_text_init(&diff->out_text, writer);
    diff->out_text.units = diff->sides[0].query.units;
    diff->out = &diff->out_text;
    diff->json = diff->options->json && !diff->how->folded ? &diff->out_json : NULL;
    if (diff->json) {
        tn_json_begin(diff->json, diff->out, "tarn.diff/1");
        tn_json_open_array(diff->json, "devices");
    }
    enum tarn_status status = devices_put(diff, error);

    if (status) {
        return status;
    }
    if (diff->json) {
        tn_json_end(diff->json);
    }
    status = tn_text_finish(diff->out);
    return status ? tn_fail(error, status, "cannot write the report") : TARN_OK;
}

enum tarn_status tarn_report_diff(const struct tarn_snapshot *before,
                                  const struct tarn_snapshot *after,
                                  const struct tarn_report_options *given,
                                  const struct tarn_diff_options *given_how,
                                  const struct tarn_writer *writer,
                                  struct tarn_diff_counts *counts_out, struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    static const struct tarn_diff_options how_defaults = {.struct_size = sizeof how_defaults};
    const struct tn_model *models[2] = {tn_snapshot_model(before), tn_snapshot_model(after)};
    struct diff diff = {.options = given ? given : &defaults,
                        .how = given_how ? given_how : &how_defaults};
    enum tarn_status status = traces_check(models[0], models[1], diff.options, error);

    diff.limit = diff.options->rows > 0 ? diff.options->rows : ROWS_DEFAULT;
    if (status == TARN_OK) {
        status = tn_query_init(&diff.sides[0].query, models[0], diff.options, error);
    }
    if (status) {
        return status;
    }
    status = tn_query_init(&diff.sides[1].query, models[1], diff.options, error);
    if (status == TARN_OK) {
        status = diff_write(&diff, writer, error);
        tn_query_fini(&diff.sides[1].query);
    }
    tn_query_fini(&diff.sides[0].query);
    if (status == TARN_OK && counts_out) {
        *counts_out = diff.counts;
    }
    return status;
}
