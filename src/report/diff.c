/* SPDX-License-Identifier: MIT */
/*
 * What changed between two snapshots, or two instants: by names that mean the same in both, so also
 * between different runs, where addresses do not.
 */
#include "base/errinfo.h"
#include "report/changes.h"
#include "report/composition.h"
#include "snapshot/snapshot.h"

/* Growth in percent where there was nothing before. */
#define SHARE_OF_NOTHING 1e9

/* One side: a snapshot, and the device that is compared now. */
struct side {
    struct tn_query query;
    struct tn_analysis analysis;
    bool is_open; /* the analysis */
};

struct diff {
    struct side sides[2];
    const struct tarn_report_options *options;
    const struct tarn_diff_options *how;
    struct tn_result *result;
    struct tn_name_table names; /* of the device that is compared now */
    struct tn_row_set changes;
};

static bool has_device(const struct tn_model *model, size_t device)
{
    return device < model->trace_count && model->traces[device].count > 0;
}

static const struct tarn_instant *instant_of(const struct diff *diff, int number)
{
    const struct tarn_instant *to = &diff->how->to;

    return number == 1 && to->kind != TARN_AT_UNSPECIFIED ? to
                                                          : &diff->sides[number].query.selection.at;
}

static enum tarn_status holders_add(struct diff *diff, int number, uint64_t event)
{
    const struct tn_analysis *analysis = &diff->sides[number].analysis;
    struct tn_row_set holders;

    if (!tn_holders_collect(&holders, analysis, event)) {
        return TARN_ERR_HOST_MEMORY;
    }
    const bool good = tn_changes_add_holders(
        &diff->changes, &diff->names, (enum tn_change_side)number, &analysis->keys, &holders);

    tn_row_set_fini(&holders);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

/* Opens the device on one side and adds what is allocated. Of a device that a file does not have
 * nothing is. */
static enum tarn_status side_open(struct diff *diff, int number, size_t device,
                                  struct tarn_diff_side *out, struct tarn_error *error)
{
    struct side *side = &diff->sides[number];
    struct tn_time_point at;

    out->at.event = TARN_NONE;
    out->has_trace = has_device(side->query.model, device);
    if (!out->has_trace) {
        return TARN_OK;
    }
    enum tarn_status status = tn_analysis_init(&side->analysis, &side->query, device, error);

    if (status) {
        return status;
    }
    side->is_open = true;
    status =
        tn_analysis_time_point(&side->analysis, instant_of(diff, number), TARN_AT_PEAK, &at, error);
    if (status) {
        return status;
    }
    out->head = tn_report_head_of(&side->analysis);
    out->at = tn_result_time_point(&at);
    return holders_add(diff, number, at.entry);
}

static void sides_close(struct diff *diff)
{
    for (int i = 0; i < 2; i++) {
        if (diff->sides[i].is_open) {
            tn_analysis_fini(&diff->sides[i].analysis);
            diff->sides[i].is_open = false;
        }
    }
}

static enum tarn_status device_compute(struct diff *diff, size_t device,
                                       struct tarn_diff_result *out, struct tarn_error *error)
{
    const struct tn_path_format format = {.ignore_lines = diff->how->ignore_lines,
                                          .strip_prefix = diff->how->strip_prefix};

    out->device = (int)device;
    tn_name_table_init(&diff->names, &format);
    tn_changes_init(&diff->changes);
    enum tarn_status status = side_open(diff, 0, device, &out->before, error);

    if (status == TARN_OK) {
        status = side_open(diff, 1, device, &out->after, error);
    }
    if (status == TARN_OK) {
        status = tn_changes_make(diff->result, &diff->changes, &diff->names, diff->options->by,
                                 tn_report_limit(diff->options), &out->changes)
                     ? TARN_OK
                     : TARN_ERR_HOST_MEMORY;
    }
    sides_close(diff);
    tn_row_set_fini(&diff->changes);
    tn_name_table_fini(&diff->names);
    return status;
}

/* ---- all devices ---- */

static bool is_wanted(const struct diff *diff, size_t device)
{
    return (!diff->options->one_device || (size_t)diff->options->device == device) &&
           (has_device(diff->sides[0].query.model, device) ||
            has_device(diff->sides[1].query.model, device));
}

static enum tarn_status devices_compute(struct diff *diff, struct tarn_diff_result **results_out,
                                        size_t *count_out, struct tarn_error *error)
{
    const size_t counts[2] = {diff->sides[0].query.model->trace_count,
                              diff->sides[1].query.model->trace_count};
    const size_t most = counts[0] > counts[1] ? counts[0] : counts[1];
    enum tarn_status status = TARN_OK;

    *count_out = 0;
    for (size_t i = 0; i < most; i++) {
        *count_out += is_wanted(diff, i);
    }
    struct tarn_diff_result *results = tn_result_create(*count_out * sizeof *results);
    struct tarn_diff_result *next = results;

    if (!results) {
        return TARN_ERR_HOST_MEMORY;
    }
    diff->result = tn_result_of(results);
    for (size_t i = 0; status == TARN_OK && i < most; i++) {
        if (is_wanted(diff, i)) {
            status = device_compute(diff, i, next++, error);
        }
    }
    if (status) {
        tarn_report_destroy(results);
        return status;
    }
    *results_out = results;
    return TARN_OK;
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

static enum tarn_status diff_compute(struct diff *diff, const struct tn_model *const models[2],
                                     struct tarn_diff_result **results_out, size_t *count_out,
                                     struct tarn_error *error)
{
    enum tarn_status status = tn_query_init(&diff->sides[0].query, models[0], diff->options, error);

    if (status) {
        return status;
    }
    status = tn_query_init(&diff->sides[1].query, models[1], diff->options, error);
    if (status == TARN_OK) {
        status = devices_compute(diff, results_out, count_out, error);
        if (status == TARN_ERR_HOST_MEMORY) {
            (void)tn_fail_memory(error);
        }
        tn_query_fini(&diff->sides[1].query);
    }
    tn_query_fini(&diff->sides[0].query);
    return status;
}

enum tarn_status tarn_diff_compute(const struct tarn_snapshot *before,
                                   const struct tarn_snapshot *after,
                                   const struct tarn_report_options *given,
                                   const struct tarn_diff_options *given_how,
                                   struct tarn_diff_result **results_out, size_t *count_out,
                                   struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    static const struct tarn_diff_options how_defaults = {.struct_size = sizeof how_defaults};
    const struct tn_model *const models[2] = {tn_snapshot_model(before), tn_snapshot_model(after)};
    struct diff diff = {.options = given ? given : &defaults,
                        .how = given_how ? given_how : &how_defaults};
    const enum tarn_status status = traces_check(models[0], models[1], diff.options, error);

    *results_out = NULL;
    return status ? status : diff_compute(&diff, models, results_out, count_out, error);
}

static void count_add(struct tarn_diff_counts *counts, const struct tarn_change *total)
{
    const double growth =
        total->after > total->before ? (double)total->after - (double)total->before : 0.0;
    const double share = total->before > 0 ? growth / (double)total->before * 100
                                           : (growth > 0 ? SHARE_OF_NOTHING : 0.0);

    counts->before_bytes += total->before;
    counts->after_bytes += total->after;
    counts->growth_bytes = growth > counts->growth_bytes ? growth : counts->growth_bytes;
    counts->growth_percent = share > counts->growth_percent ? share : counts->growth_percent;
}

void tarn_diff_count(const struct tarn_diff_result *results, size_t count,
                     struct tarn_diff_counts *counts_out)
{
    *counts_out = (struct tarn_diff_counts){.before_bytes = 0};
    for (size_t i = 0; i < count; i++) {
        count_add(counts_out, &results[i].changes.total);
    }
}
