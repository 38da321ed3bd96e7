/* SPDX-License-Identifier: MIT */
/*
 * Why requests failed. When PyTorch gives up it has already waited for frees and returned what was
 * free as a whole, so what counts is what is left then: how much is free for a request of that pool
 * and stream, in which pieces, and how much elsewhere. Whether the device or a limit of the
 * allocator refused shows in the device's free bytes.
 *
 * A trace has the rounded request only; the one before rounding is at most 511 bytes less, unless
 * roundup_power2_divisions is set. Where what that setting adds to the blocks makes up for what is
 * missing, it is the cause.
 */
#include "analysis/page_policy.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "report/changes.h"
#include "report/composition.h"
#include "report/label_apart.h"
#include "report/oom_causes.h"
#include "report/pools.h"
#include "report/reports.h"

#include <string.h>

#define MIB          ((uint64_t)1 << 20)
#define SMALL_MAX    (1 * MIB)    /* requests of the small pool */
#define MIDDLE_MAX   (10 * MIB)   /* requests that get a segment of 20 MiB */
#define CONTEXT_ROOM (1024 * MIB) /* what CUDA itself takes of a device, at most */

/* A run that tries again and again leaves thousands, which each cost a walk through the trace. */
enum {
    OOMS_MIN = 20, /* that are examined, however long the trace is */
    OOMS_MAX = 100,
    WALKED_MAX = 20000000, /* events of all walks beyond that */
    ANSWERS_MAX = 8        /* requests that would_fit is called for: it may run a replay */
};

/* What is examined for one failed request. */
struct failure {
    const struct tn_report *report;
    const struct tn_analysis *analysis;
    const struct tn_trace_entry *entry;
    struct tn_layout layout; /* right after the failure, as the holders */
    struct tn_row_set holders;
    struct tarn_oom_failure *oom;
};

static uint64_t segment_size(uint64_t request)
{
    if (request <= SMALL_MAX) {
        return 2 * MIB;
    }
    if (request < MIDDLE_MAX) {
        return 20 * MIB;
    }
    const uint64_t rest = request % (2 * MIB);

    return rest == 0 ? request : request - rest + 2 * MIB; /* sizes are below TN_SIZES_MAX */
}

static struct tarn_pool_row own_find(const struct failure *failure)
{
    const struct tn_model *model = failure->analysis->whole.model;
    const struct tn_pool_id pool = tn_model_extra(model, failure->entry->extra)->pool;
    const struct tn_layout_row *rows = failure->layout.rows.items;

    for (size_t i = 0; i < failure->layout.rows.count; i++) {
        if (memcmp(&rows[i].pool, &pool, sizeof pool) == 0 &&
            rows[i].stream == failure->entry->stream &&
            rows[i].is_large == (failure->entry->size > SMALL_MAX)) {
            return tn_pool_row_of(&rows[i]);
        }
    }
    return (struct tarn_pool_row){.reserved = 0};
}

static enum tarn_oom_verdict judge(const struct tarn_oom_failure *oom)
{
    const uint64_t free = oom->all_pools.free;

    if (oom->own.free >= oom->request) {
        return TARN_OOM_FRAGMENTED;
    }
    if (free >= oom->request) {
        return TARN_OOM_ELSEWHERE;
    }
    if (free + oom->room >= oom->request) {
        return TARN_OOM_FRAGMENTED; /* together with what the device had left */
    }
    const uint64_t missing = oom->request - free - oom->room;

    if (oom->all_pools.by_settings >= missing) {
        return TARN_OOM_ROUNDED;
    }
    return oom->outside > CONTEXT_ROOM && oom->outside - CONTEXT_ROOM >= missing ? TARN_OOM_OUTSIDE
                                                                                 : TARN_OOM_FULL;
}

static uint64_t outside_of(const struct tarn_oom_failure *oom, uint64_t device_total)
{
    const uint64_t known = oom->device_free + oom->reserved;

    return device_total > known ? device_total - known : 0;
}

/* ---- what changed before it ---- */

/* The event from which changes are counted: the end of the last step before the failure, if there
 * are steps, else a tenth of the trace before it. Neither is before the selected part. */
static void since_set(struct tarn_oom_failure *oom, const struct tn_analysis *analysis)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const uint64_t *ends = analysis->steps.items;
    const uint64_t tenth = (oom->event - timeline->first) / 10;

    oom->since =
        oom->event > timeline->first ? oom->event - 1 - tenth : tn_timeline_before(timeline);
    for (size_t i = 0; i < analysis->steps.count && ends[i] < oom->event; i++) {
        if (ends[i] >= timeline->first) {
            oom->since = ends[i];
            oom->is_since_step = true;
        }
    }
}

static bool changes_fill(struct failure *failure, struct tn_row_set *changes,
                         struct tn_name_table *names)
{
    const struct tn_group_keys *keys = &failure->analysis->keys;
    struct tn_row_set before;

    if (!tn_holders_collect(&before, failure->analysis, failure->oom->since)) {
        return false;
    }
    const bool good =
        tn_changes_add_holders(changes, names, TN_CHANGE_BEFORE, keys, &before) &&
        tn_changes_add_holders(changes, names, TN_CHANGE_AFTER, keys, &failure->holders);

    tn_row_set_fini(&before);
    return good;
}

/* What each group held then, and holds. */
static bool changes_make(struct failure *failure)
{
    const struct tn_report *report = failure->report;
    const struct tn_path_format format = {.ignore_lines = false};
    struct tn_name_table names;
    struct tn_row_set changes;

    since_set(failure->oom, failure->analysis);
    tn_name_table_init(&names, &format);
    tn_changes_init(&changes);
    const bool good = changes_fill(failure, &changes, &names) &&
                      tn_changes_make(report->result, &changes, &names, failure->analysis->keys.by,
                                      report->limit, &failure->oom->changes);

    tn_row_set_fini(&changes);
    tn_name_table_fini(&names);
    return good;
}

/* Who held memory then, and what of it is new. */
static bool holders_make(struct failure *failure)
{
    if (!tn_holders_collect(&failure->holders, failure->analysis, failure->oom->event)) {
        return false;
    }
    const bool good = tn_holders_make(failure->report, failure->analysis, &failure->holders,
                                      &failure->oom->holders) &&
                      changes_make(failure);

    tn_row_set_fini(&failure->holders);
    return good;
}

/* ---- one failure ---- */

/* Memory is not selected, so its numbers are those of the whole trace. */
static void numbers_set(struct failure *failure, uint64_t event)
{
    const struct tn_timeline *timeline = &failure->analysis->whole;
    const struct tn_trace_entry *entry = failure->entry;
    const struct tn_time_point at = tn_timeline_at(timeline, event);
    struct tarn_oom_failure *oom = failure->oom;

    *oom = (struct tarn_oom_failure){.event = event,
                                     .request = entry->size,
                                     .segment = segment_size(entry->size),
                                     .stream = entry->stream,
                                     .device_free = entry->address,
                                     .reserved = at.reserved,
                                     .requested = at.requested};
    oom->is_limited = oom->device_free >= oom->segment;
    oom->room = oom->is_limited ? tn_timeline_reserved_max(timeline, event) - at.reserved
                                : oom->device_free;
    oom->outside = outside_of(oom, failure->report->options->device_total);
    oom->own = own_find(failure);
    oom->all_pools = tn_pool_row_of(&failure->layout.total);
    oom->verdict = judge(oom);
    oom->is_compact = tn_model_is_compact(failure->analysis->whole.model);
    oom->emptying_helps = oom->all_pools.free_segments + oom->room >= oom->segment;
}

static bool tables_make(struct failure *failure)
{
    const struct tn_report *report = failure->report;
    struct tarn_oom_failure *oom = failure->oom;

    oom->pool_count = failure->layout.rows.count;
    oom->pools = tn_pool_rows_make(report->result, &failure->layout);
    return oom->pools &&
           tn_result_stack(report->result, failure->analysis->whole.model, failure->entry->stack,
                           &oom->stack) &&
           (report->for_summary || holders_make(failure));
}

static bool oom_make(const struct tn_report *report, const struct tn_analysis *analysis,
                     struct tn_layout_walk *walk, uint64_t event, struct tarn_oom_failure *oom)
{
    const struct tn_timeline *timeline = &analysis->whole;
    struct failure failure = {.report = report,
                              .analysis = analysis,
                              .entry = tn_trace_at(timeline->model, timeline->trace, event),
                              .oom = oom};

    if (!tn_layout_collect(&failure.layout, walk, event)) {
        return false;
    }
    numbers_set(&failure, event);
    const bool good = tables_make(&failure);

    tn_layout_fini(&failure.layout);
    return good;
}

/* ---- who asked ---- */

/* As rows by stack have it: with the frames that the selection shows. */
static struct tn_stack_label requester_label(const void *context, const struct tarn_group *group)
{
    const struct tn_analysis *analysis = context;
    struct tn_frame_view *view = &analysis->query->view;
    uint32_t seen = TN_STACK_NONE;
    const bool found = tn_frame_view_find(view, (uint32_t)group->key, &seen);

    tn_assert(found); /* requester_name has asked for it before */
    (void)found;
    return (struct tn_stack_label){.model = analysis->query->model,
                                   .stack = tn_frame_view_stack(view, seen),
                                   .is_known = group->key != TN_STACK_NONE,
                                   .is_full = analysis->query->full_stacks};
}

static bool requester_name(struct tn_result *result, const struct tn_analysis *analysis,
                           struct tarn_group *group)
{
    uint32_t seen;

    if (!tn_frame_view_find(&analysis->query->view, (uint32_t)group->key, &seen)) {
        return false;
    }
    const struct tn_stack_label label = requester_label(analysis, group);

    tn_stack_label_put(tn_result_text_begin(result), &label);
    group->text = tn_result_text_end(result);
    return group->text != NULL;
}

/* Different ones differ, as in tables. */
static bool requesters_name(struct tn_result *result, const struct tn_analysis *analysis,
                            struct tarn_oom_failure *ooms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!requester_name(result, analysis, &ooms[i].stack)) {
            return false;
        }
    }
    return analysis->query->full_stacks ||
           tn_labels_tell_apart(result, requester_label, analysis, &ooms[0].stack, count,
                                sizeof *ooms);
}

/* ---- devices ---- */

/* The failures to report: all, or the one that the selection names. */
static enum tarn_status ooms_find(const struct tn_analysis *analysis, const uint64_t **ooms_out,
                                  size_t *count_out, struct tarn_error *error)
{
    const struct tn_vec *ooms = &analysis->timeline->ooms;
    const struct tarn_instant *at = &analysis->query->selection.at;
    struct tn_time_point failure;

    *ooms_out = ooms->items;
    *count_out = ooms->count;
    if (at->kind == TARN_AT_UNSPECIFIED) {
        return TARN_OK;
    }
    if (at->kind != TARN_AT_OOM) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "--at must be oom:N here; \"tarn live\" shows any other instant");
    }
    const enum tarn_status status =
        tn_analysis_time_point(analysis, at, TARN_AT_OOM, &failure, error);

    if (status == TARN_OK) {
        *ooms_out += at->number - 1;
        *count_out = 1;
    }
    return status;
}

/* What other settings would have done. */
static void answers_set(const struct tn_report *report, int device, struct tarn_oom_failure *oom)
{
    const struct tarn_report_options *options = report->options;
    const uint64_t capacity = oom->reserved + oom->room;

    oom->expandable_helps = options->would_fit(options->context, device, oom->event, capacity,
                                               "expandable_segments:True");
    if (oom->all_pools.by_settings > 0) {
        oom->unrounded_helps = options->would_fit(options->context, device, oom->event, capacity,
                                                  "roundup_power2_divisions:1");
    }
}

static bool ooms_make(const struct tn_report *report, const struct tn_analysis *analysis,
                      struct tn_layout_walk *walk, const uint64_t *events,
                      struct tarn_oom_result *result)
{
    struct tarn_oom_failure *ooms =
        tn_arena_alloc_array(tn_result_arena(report->result), result->oom_count, sizeof *ooms);

    for (size_t i = result->oom_count; ooms && i > 0; i--) {
        if (!oom_make(report, analysis, walk, events[i - 1], &ooms[i - 1])) {
            return false;
        }
    }
    for (size_t i = 0; ooms && report->options->would_fit && i < result->oom_count; i++) {
        if (i < ANSWERS_MAX) {
            answers_set(report, result->head.device, &ooms[i]);
        }
    }
    result->ooms = ooms;
    return ooms && requesters_name(report->result, analysis, ooms, result->oom_count);
}

static size_t ooms_limit(const struct tn_analysis *analysis)
{
    const uint64_t limit = WALKED_MAX / (analysis->whole.trace->count + 1);

    return limit < OOMS_MIN ? OOMS_MIN : limit > OOMS_MAX ? OOMS_MAX : (size_t)limit;
}

enum tarn_status tn_oom_compute(const struct tn_report *report, const struct tn_analysis *analysis,
                                void *result_out, struct tarn_error *error)
{
    struct tarn_oom_result *result = result_out;
    struct tn_layout_walk walk;
    const uint64_t *events;
    size_t count;
    const enum tarn_status status = ooms_find(analysis, &events, &count, error);

    if (status) {
        return status;
    }
    const size_t limit = ooms_limit(analysis);

    result->oom_count = count < limit ? count : limit;
    result->later_ooms = count - result->oom_count;
    if (count == 0) {
        return TARN_OK;
    }
    if (!tn_layout_walk_init(&walk, &analysis->whole)) {
        return TARN_ERR_HOST_MEMORY;
    }
    const bool good = ooms_make(report, analysis, &walk, events, result) &&
                      tn_oom_causes_make(report->result, result) &&
                      tn_oom_remedies_make(report->result, report->options, result);

    tn_layout_walk_fini(&walk);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}
