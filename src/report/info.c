/* SPDX-License-Identifier: MIT */
/* What is in a file, and what is not: the first thing to ask of one. */
#include "analysis/allocated_peak.h"
#include "analysis/no_match.h"
#include "analysis/totals.h"
#include "base/errinfo.h"
#include "report/result.h"
#include "report/settings.h"
#include "snapshot/page_list.h"
#include "snapshot/snapshot.h"

static const char *format_of(const struct tn_model *model)
{
    if (model->is_list_only) {
        return "a list of segments";
    }
    return model->is_legacy ? "a snapshot of the old format (blocks with a history)" : "a snapshot";
}

static bool warnings_make(const struct tn_model *model, struct tarn_info_result *info)
{
    struct tarn_snapshot_warning *warnings = tn_arena_alloc_array(
        tn_result_arena(tn_result_of(info)), model->warning_count, sizeof *warnings);

    for (size_t i = 0; warnings && i < model->warning_count; i++) {
        const struct tn_model_warning *from = &model->warnings[i];

        warnings[i] = (struct tarn_snapshot_warning){from->text, from->count, from->offset};
    }
    info->warning_count = model->warning_count;
    info->warnings = warnings;
    return warnings != NULL;
}

/* ---- traces ---- */

static bool actions_count(struct tn_result *result, const struct tn_timeline *timeline,
                          struct tarn_info_device *device)
{
    uint64_t counts[TN_TRACE_ACTION_COUNT] = {0};
    struct tarn_info_action *actions = tn_arena_alloc_array(
        tn_result_arena(result), TN_TRACE_ACTION_COUNT, sizeof(struct tarn_info_action));

    for (uint64_t i = timeline->first; i < timeline->limit; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(timeline->model, timeline->trace, i);

        counts[entry->action]++;
        if (entry->action != TN_TRACE_SNAPSHOT && entry->action != TN_TRACE_ANNOTATE) {
            device->may_have_stack++;
            device->with_stack += entry->stack != TN_STACK_NONE && entry->stack != TN_STACK_EMPTY;
        }
    }
    for (unsigned i = 0; actions && i < TN_TRACE_ACTION_COUNT; i++) {
        if (counts[i] > 0) {
            actions[device->action_count++] =
                (struct tarn_info_action){tn_trace_action_name((enum tn_trace_action)i), counts[i]};
        }
    }
    device->actions = actions;
    return actions != NULL;
}

/* What of the trace is selected: blocks that were allocated in it. */
static void selected_count(const struct tn_analysis *analysis, struct tarn_info_device *device)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);

    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        device->selected_bytes += lifetimes[i].start != TN_NEVER ? lifetimes[i].size : 0;
    }
    device->selected_allocations = timeline->lifetimes.count - timeline->before_count;
    device->selected_peak = timeline->requested_peak.requested;
    device->steps = analysis->steps.count;
}

/* Devices without a selected block, while none has any. */
struct finding {
    bool is_found;
    struct tarn_error missing; /* of the first that has none */
};

static bool peaks_find(const struct tn_timeline *timeline, struct tarn_info_device *device)
{
    struct tn_allocated_peak peak;

    if (!tn_allocated_peak_find(&peak, timeline)) {
        return false;
    }
    device->allocated_peak = peak.bytes;
    device->allocated_peak_event = peak.entry;
    device->reserved_peak = timeline->reserved_peak.reserved;
    device->reserved_peak_event = timeline->reserved_peak.entry;
    return true;
}

static enum tarn_status trace_make(struct tn_result *result, struct tn_query *query,
                                   struct finding *finding, struct tarn_info_device *device,
                                   struct tarn_error *error)
{
    struct tn_analysis analysis;
    const enum tarn_status status =
        tn_analysis_init(&analysis, query, (size_t)device->head.device, error);

    if (status) {
        return status;
    }
    if (!tn_no_match(&analysis)) {
        finding->is_found = true;
    } else if (finding->missing.status == TARN_OK) {
        (void)tn_no_match_fail(&analysis, &finding->missing);
    }
    device->head = tn_report_head_of(&analysis);
    if (!peaks_find(&analysis.whole, device)) {
        tn_analysis_fini(&analysis);
        return TARN_ERR_HOST_MEMORY;
    }
    device->reserved_before = analysis.whole.start.reserved;
    device->requested_before = analysis.whole.start.requested;
    device->blocks_before = analysis.whole.before_count;
    selected_count(&analysis, device);
    const bool good = actions_count(result, analysis.timeline, device);

    tn_analysis_fini(&analysis);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

/* ---- pages ---- */

static void pages_count(const struct tn_page_list *pages, struct tarn_info_device *device)
{
    device->pages += pages->count;
    device->page_size = pages->size > device->page_size ? pages->size : device->page_size;
    for (uint32_t i = 0; i < pages->count; i++) {
        const uint64_t times = tn_page_list_number(&pages->times[i]);

        device->moved_pages += times > 1;
        device->mappings += times < UINT32_MAX ? times : UINT32_MAX;
    }
}

static void segments_count_pages(const struct tn_model *model, struct tarn_info_device *device)
{
    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];
        struct tn_page_list pages;

        if (segment->device == device->head.device && tn_page_list_find(model, segment, &pages)) {
            pages_count(&pages, device);
        }
    }
}

/* ---- devices ---- */

static struct tarn_info_device device_of(const struct tn_totals *totals)
{
    struct tarn_info_device device = {.head = {.device = (int)totals->device},
                                      .segments = totals->segments,
                                      .reserved = totals->reserved,
                                      .allocated = totals->allocated,
                                      .active = totals->active,
                                      .active_blocks = totals->blocks,
                                      .requested = totals->requested,
                                      .events = totals->entries};

    device.has_times = totals->first_us != TN_TIME_NONE;
    device.first_us = device.has_times ? totals->first_us : 0;
    device.last_us = device.has_times ? totals->last_us : 0;
    return device;
}

static enum tarn_status devices_make(struct tn_query *query, const struct tn_vec *totals,
                                     const struct tarn_report_options *options,
                                     struct tarn_info_result *info, struct tarn_error *error)
{
    const struct tn_totals *rows = totals->items;
    struct tn_result *result = tn_result_of(info);
    struct tarn_info_device *devices =
        tn_arena_alloc_array(tn_result_arena(result), totals->count, sizeof *devices);
    struct finding finding = {.is_found = false};
    enum tarn_status status = devices ? TARN_OK : TARN_ERR_HOST_MEMORY;

    for (size_t i = 0; i < totals->count && status == TARN_OK; i++) {
        if (options->one_device && rows[i].device != options->device) {
            continue;
        }
        struct tarn_info_device *device = &devices[info->device_count++];

        *device = device_of(&rows[i]);
        segments_count_pages(query->model, device);
        device->trace_overflowed =
            tn_settings_trace_overflowed(query->model, (uint32_t)rows[i].device);
        if (device->events > 0) {
            status = trace_make(result, query, &finding, device, error);
        }
    }
    info->devices = devices;
    info->devices_in_file = totals->count;
    return status || finding.is_found || finding.missing.status == TARN_OK
               ? status
               : tn_fail(error, TARN_ERR_NOT_FOUND, "%s", finding.missing.text);
}

static enum tarn_status info_make(struct tn_query *query, const struct tarn_report_options *options,
                                  struct tarn_info_result *info, struct tarn_error *error)
{
    const struct tn_model *model = query->model;
    const struct tn_string conf = tn_model_string(model, model->settings.conf);
    struct tn_vec totals;

    info->format = format_of(model);
    info->is_partial = model->is_partial;
    info->segments = model->segment_count;
    info->stacks = model->stacks.count - (TN_STACK_EMPTY + 1); /* but none and the empty one */
    info->annotations = model->annotation_count;
    info->host_segments = model->host_segment_count;
    info->has_settings = model->settings.present;
    info->settings = conf.text;
    info->settings_length = conf.length;
    info->trace_entries_max = tn_settings_trace_entries(model);
    enum tarn_status status =
        tn_totals_collect(model, &totals) && warnings_make(model, info) &&
                tn_settings_in_effect(model, tn_result_arena(tn_result_of(info)), info)
            ? devices_make(query, &totals, options, info, error)
            : TARN_ERR_HOST_MEMORY;

    tn_vec_fini(&totals);
    return status;
}

enum tarn_status tarn_info_compute(const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *given,
                                   struct tarn_info_result **result_out, struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    const struct tarn_report_options *options = given ? given : &defaults;
    struct tn_query query;
    enum tarn_status status = tn_query_init(&query, tn_snapshot_model(snapshot), options, error);

    *result_out = NULL;
    if (status) {
        return status;
    }
    struct tarn_info_result *info = tn_result_create(sizeof *info);

    status = info ? info_make(&query, options, info, error) : TARN_ERR_HOST_MEMORY;
    tn_query_fini(&query);
    if (status) {
        tarn_report_destroy(info);
        return status == TARN_ERR_HOST_MEMORY ? tn_fail_memory(error) : status;
    }
    *result_out = info;
    return TARN_OK;
}
