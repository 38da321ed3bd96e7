/* SPDX-License-Identifier: MIT */
/* What is in a file, and what is not: the first thing to ask of one. */
#include "analysis/totals.h"
#include "base/errinfo.h"
#include "base/escaped.h"
#include "base/size_text.h"
#include "report/report_out.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>
#include <string.h>

/* Entries of a device by action, and how many have a stack. */
struct counts {
    uint64_t actions[TN_TRACE_ACTION_COUNT];
    uint64_t with_stack;
    uint64_t may_have_stack; /* all but snapshots and annotations */
};

/* Where a report goes; one of both is NULL. */
struct target {
    const struct tn_model *model;
    struct tn_query *query;
    struct tarn_error *error;
    struct tn_text_out *out;
    struct tn_json_text *json;
};

static struct counts counts_of(const struct tn_timeline *timeline)
{
    struct counts counts = {.with_stack = 0};

    for (uint64_t i = timeline->first; i < timeline->limit; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(timeline->model, timeline->trace, i);

        counts.actions[entry->action]++;
        if (entry->action != TN_TRACE_SNAPSHOT && entry->action != TN_TRACE_ANNOTATE) {
            counts.may_have_stack++;
            counts.with_stack += entry->stack != TN_STACK_NONE && entry->stack != TN_STACK_EMPTY;
        }
    }
    return counts;
}

/* ---- the whole file ---- */

static const char *form_of(const struct tn_model *model)
{
    if (model->is_list_only) {
        return "a list of segments";
    }
    return model->is_legacy ? "a snapshot of the old form (blocks with a history)" : "a snapshot";
}

static void settings_put(const struct target *to)
{
    const struct tn_model_settings *settings = &to->model->settings;
    const struct tn_string conf = tn_model_string(to->model, settings->conf);

    if (to->json) {
        if (settings->present) {
            tn_json_text(to->json, "settings", conf.text, conf.length);
        } else {
            tn_json_null(to->json, "settings");
        }
        return;
    }
    tn_text_puts(to->out, "settings: ");
    tn_text_put_escaped(to->out, conf.text, conf.length, TN_ESCAPED_PLAIN);
    if (conf.length == 0) {
        tn_text_puts(to->out, settings->present ? "(default)" : "(not in the file)");
    }
    tn_text_putc(to->out, '\n');
}

static void file_put(const struct target *to, size_t devices)
{
    const struct tn_model *model = to->model;

    if (to->json) {
        tn_json_word(to->json, "form", form_of(model));
        tn_json_bool(to->json, "is_partial", model->is_partial);
        tn_json_number(to->json, "segments", model->segment_count);
        tn_json_number(to->json, "stacks", model->stacks.count - 2);
        tn_json_number(to->json, "annotations", model->annotation_count);
        tn_json_number(to->json, "host_segments", model->host_segment_count);
        settings_put(to);
        return;
    }
    tn_text_printf(to->out, "%s%s\n", form_of(model),
                   model->is_partial ? ", of which the end is missing" : "");
    tn_text_printf(to->out, "devices: %zu, segments: %zu, stacks: %" PRIu64 "\n", devices,
                   model->segment_count, model->stacks.count - 2);
    settings_put(to);
    if (model->annotation_count > 0) {
        tn_text_printf(to->out, "annotations: %zu\n", model->annotation_count);
    }
    if (model->host_segment_count > 0) {
        tn_text_printf(to->out, "pinned memory: %zu segments\n", model->host_segment_count);
    }
}

static bool warning_put(void *context, const struct tarn_snapshot_warning *warning)
{
    const struct target *to = context;

    if (to->json) {
        tn_json_open_object(to->json, NULL);
        tn_json_text(to->json, "text", warning->text, strlen(warning->text));
        tn_json_number(to->json, "count", warning->count);
        tn_json_number(to->json, "first_offset", warning->offset);
        tn_json_close(to->json);
    } else {
        tn_text_puts(to->out, "odd: ");
        tn_text_put_escaped(to->out, warning->text, strlen(warning->text), TN_ESCAPED_PLAIN);
        tn_text_printf(to->out, " (%" PRIu64 " times, first at byte %" PRIu64 ")\n", warning->count,
                       warning->offset);
    }
    return true;
}

/* ---- a device ---- */

static void span_put(struct tn_text_out *out, const struct tn_totals *totals)
{
    if (totals->first_us == TN_TIME_NONE || totals->last_us < totals->first_us) {
        return;
    }
    const double seconds =
        ((double)totals->last_us - (double)totals->first_us) / 1e6; /* may exceed 64 bits */

    tn_text_printf(out, " in %.3f s", seconds);
    if (seconds > 0) {
        tn_text_printf(out, ", %.0f a second", (double)totals->entries / seconds);
    }
}

static void trace_put(struct tn_text_out *out, const struct tn_totals *totals,
                      const struct counts *counts, const struct tn_timeline *timeline)
{
    tn_text_printf(out, "  trace: %" PRIu64 " entries", totals->entries);
    span_put(out, totals);
    tn_text_putc(out, '\n');
    for (unsigned i = 0; i < TN_TRACE_ACTION_COUNT; i++) {
        if (counts->actions[i] > 0) {
            tn_text_printf(out, "    %8" PRIu64 "  %s\n", counts->actions[i],
                           tn_trace_action_name((enum tn_trace_action)i));
        }
    }
    tn_text_printf(out, "  stacks: %" PRIu64 " of %" PRIu64 " entries have one\n",
                   counts->with_stack, counts->may_have_stack);
    if (timeline->start.reserved == 0 && timeline->before_count == 0) {
        tn_text_puts(out, "  the trace begins with an empty allocator\n");
    } else {
        tn_text_printf(out,
                       "  the trace begins in mid-run: %s was reserved and %" PRIu64
                       " blocks of %s in use before it\n",
                       tn_text_size(out, (double)timeline->start.reserved).text,
                       timeline->before_count,
                       tn_text_size(out, (double)timeline->start.requested).text);
    }
}

static void device_text(struct tn_text_out *out, const struct tn_totals *totals)
{
    tn_text_printf(out, "\ndevice %" PRId64 "\n  now: %s reserved in %" PRIu64 " segments",
                   totals->device, tn_text_size(out, (double)totals->reserved).text,
                   totals->segments);
    tn_text_printf(out, ", %s in %" PRIu64 " blocks in use",
                   tn_text_size(out, (double)totals->active).text, totals->blocks);
    tn_text_printf(out, ", %s of it asked for\n",
                   tn_text_size(out, (double)totals->requested).text);
    if (totals->entries == 0) {
        tn_text_puts(out, "  no trace: history was not recorded\n");
    }
}

static void device_json(struct tn_json_text *json, const struct tn_totals *totals)
{
    tn_json_signed(json, "device", totals->device);
    tn_json_number(json, "segments", totals->segments);
    tn_json_number(json, "reserved_bytes", totals->reserved);
    tn_json_number(json, "allocated_bytes", totals->allocated);
    tn_json_number(json, "active_bytes", totals->active);
    tn_json_number(json, "active_blocks", totals->blocks);
    tn_json_number(json, "requested_bytes", totals->requested);
    tn_json_number(json, "entries", totals->entries);
}

static void trace_json(struct tn_json_text *json, const struct tn_totals *totals,
                       const struct counts *counts, const struct tn_timeline *timeline)
{
    if (totals->first_us != TN_TIME_NONE) {
        tn_json_signed(json, "first_entry_us", totals->first_us);
        tn_json_signed(json, "last_entry_us", totals->last_us);
    }
    tn_json_number(json, "entries_with_stack", counts->with_stack);
    tn_json_number(json, "reserved_bytes_before", timeline->start.reserved);
    tn_json_number(json, "requested_bytes_before", timeline->start.requested);
    tn_json_number(json, "blocks_before", timeline->before_count);
    tn_json_open_object(json, "actions");
    for (unsigned i = 0; i < TN_TRACE_ACTION_COUNT; i++) {
        if (counts->actions[i] > 0) {
            tn_json_number(json, tn_trace_action_name((enum tn_trace_action)i), counts->actions[i]);
        }
    }
    tn_json_close(json);
}

/* What of the trace is selected: blocks that were in use in it. */
static void selected_put(const struct target *to, const struct tn_analysis *analysis)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);
    uint64_t asked = 0;

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        asked += lifetimes[i].start != TN_NEVER ? lifetimes[i].size : 0;
    }
    const uint64_t count = analysis->timeline->lifetimes.count - analysis->timeline->before_count;

    if (to->json) {
        tn_analysis_put_selection_json(to->json, analysis);
        tn_json_number(to->json, "selected_allocations", count);
        tn_json_number(to->json, "selected_allocated_bytes", asked);
        tn_json_number(to->json, "selected_peak_bytes",
                       analysis->timeline->requested_peak.requested);
        tn_json_number(to->json, "steps", analysis->steps.count);
        return;
    }
    if (analysis->steps.count > 0) {
        tn_text_printf(to->out, "  steps: %zu, by their annotations\n", analysis->steps.count);
    }
    if (tn_analysis_is_part(analysis)) {
        tn_text_puts(to->out, "  ");
        tn_analysis_put_selection(to->out, analysis);
        tn_text_printf(to->out, "    %" PRIu64 " allocations of %s", count,
                       tn_text_size(to->out, (double)asked).text);
        tn_text_printf(
            to->out, ", at most %s in use at once\n",
            tn_text_size(to->out, (double)analysis->timeline->requested_peak.requested).text);
    }
}

static enum tarn_status device_trace_put(const struct target *to, const struct tn_totals *totals)
{
    struct tn_analysis analysis;
    const enum tarn_status status =
        tn_analysis_init(&analysis, to->query, (size_t)totals->device, to->error);

    if (status) {
        return status;
    }
    const struct counts counts = counts_of(analysis.timeline);

    if (to->json) {
        trace_json(to->json, totals, &counts, &analysis.whole);
    } else {
        trace_put(to->out, totals, &counts, &analysis.whole);
    }
    selected_put(to, &analysis);
    tn_analysis_fini(&analysis);
    return TARN_OK;
}

static enum tarn_status device_put(const struct target *to, const struct tn_totals *totals)
{
    if (to->json) {
        tn_json_open_object(to->json, NULL);
        device_json(to->json, totals);
    } else {
        device_text(to->out, totals);
    }
    const enum tarn_status status = totals->entries == 0 ? TARN_OK : device_trace_put(to, totals);

    if (to->json) {
        tn_json_close(to->json);
    }
    return status;
}

static enum tarn_status devices_put(const struct target *to, const struct tn_vec *totals,
                                    const struct tarn_report_options *options)
{
    const struct tn_totals *rows = totals->items;

    enum tarn_status status = TARN_OK;

    for (size_t i = 0; i < totals->count && status == TARN_OK; i++) {
        if (!options->one_device || rows[i].device == options->device) {
            status = device_put(to, &rows[i]);
        }
    }
    return status;
}

static enum tarn_status info_put(const struct target *to, const struct tarn_snapshot *snapshot,
                                 const struct tn_vec *totals,
                                 const struct tarn_report_options *options)
{
    struct target warnings = *to;

    if (to->json) {
        tn_json_begin(to->json, to->out, "tarn.info/1");
    }
    file_put(to, totals->count);
    if (to->json) {
        tn_json_open_array(to->json, "oddities");
    }
    (void)tarn_snapshot_walk_warnings(snapshot, warning_put, &warnings);
    if (to->json) {
        tn_json_close(to->json);
        tn_json_open_array(to->json, "devices");
    }
    const enum tarn_status status = devices_put(to, totals, options);

    if (status == TARN_OK && to->json) {
        tn_json_end(to->json);
    }
    return status;
}

enum tarn_status tarn_report_info(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *given,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    const struct tarn_report_options *options = given ? given : &defaults;
    struct tn_text_out out;
    struct tn_json_text json = {.out = NULL};
    struct tn_query query;
    const struct target to = {.model = tn_snapshot_model(snapshot),
                              .query = &query,
                              .error = error,
                              .out = &out,
                              .json = options->json ? &json : NULL};
    struct tn_vec totals;
    enum tarn_status status = tn_query_init(&query, to.model, options, error);

    if (status) {
        return status;
    }
    tn_text_init(&out, writer);
    out.units = query.units;
    status = tn_totals_collect(to.model, &totals) ? info_put(&to, snapshot, &totals, options)
                                                  : TARN_ERR_HOST_MEMORY;
    tn_vec_fini(&totals);
    tn_query_fini(&query);
    if (status == TARN_OK) {
        status = tn_text_finish(&out);
        return status ? tn_fail(error, status, "cannot write the report") : TARN_OK;
    }
    return status == TARN_ERR_HOST_MEMORY ? tn_fail(error, status, "no host memory for the report")
                                          : status;
}
