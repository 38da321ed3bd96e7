/* SPDX-License-Identifier: MIT */
#include "analysis/analysis.h"

#include "analysis/gradient.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- queries ---- */

static bool where_uses(const struct tn_query *query, enum tn_where_field field)
{
    return query->selection.where && tn_where_uses(query->selection.where, field);
}

enum tarn_status tn_query_init(struct tn_query *query, const struct tn_model *model,
                               const struct tarn_report_options *options, struct tarn_error *error)
{
    const struct tarn_rules *rules = NULL;

    *query = (struct tn_query){.model = model};
    if (options) {
        rules = options->rules;
        query->by = options->by;
        query->tree = options->tree;
        query->full_stacks = options->full_stacks;
        query->units = options->format ? TARN_UNITS_IEC : options->units;
        if (options->selection) {
            query->selection = *options->selection;
        }
    }
    if (query->tree && query->by != TARN_BY_STACK) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "a tree shows stacks: it cannot be grouped by %s",
                       tn_grouping_name(query->by));
    }
    enum tarn_status status = tn_frame_view_init(&query->view, model, &query->selection, error);

    if (status) {
        return status;
    }
    if (query->by == TARN_BY_CATEGORY || where_uses(query, TN_WHERE_CATEGORY)) {
        status = tn_query_want_categories(query, rules, error);
    }
    if (status == TARN_OK && query->selection.where &&
        !tn_where_view_init(&query->where, query->selection.where, model,
                            query->has_categories ? &query->categories : NULL)) {
        status = tn_fail_memory(error);
    }
    if (status) {
        tn_query_fini(query);
    }
    return status;
}

enum tarn_status tn_query_want_categories(struct tn_query *query, const struct tarn_rules *rules,
                                          struct tarn_error *error)
{
    if (query->has_categories) {
        return TARN_OK;
    }
    const enum tarn_status status =
        tn_categories_init(&query->categories, rules, query->model, error);

    query->has_categories = status == TARN_OK;
    return status;
}

void tn_query_fini(struct tn_query *query)
{
    tn_where_view_fini(&query->where);
    if (query->has_categories) {
        tn_categories_fini(&query->categories);
    }
    tn_frame_view_fini(&query->view);
}

/* ---- the part of the trace ---- */

/* What is wanted while a part is made. */
struct wanted {
    const struct tn_analysis *analysis;
    uint8_t *marks; /* an entry: in the wanted annotation; NULL: all */
    struct tn_narrowing narrowing;
};

static bool is_wanted_pool(const struct tn_analysis *analysis, uint32_t pool_stream)
{
    const struct tarn_selection *selection = &analysis->query->selection;

    return tn_pool_stream_is_of(&analysis->pool_streams, pool_stream, selection->pools,
                                selection->pool);
}

static bool is_annotated(const struct wanted *wanted, const struct tn_lifetime *lifetime)
{
    const struct tn_query *query = wanted->analysis->query;

    return !wanted->marks || (lifetime->start != TN_NEVER && wanted->marks[lifetime->start]) ||
           (lifetime->metadata != TN_STRING_NONE &&
            tn_phase_is_named(tn_model_string(query->model, lifetime->metadata),
                              query->selection.annotation));
}

static bool wants_lifetime(void *context, const struct tn_lifetime *lifetime)
{
    const struct wanted *wanted = context;
    const struct tarn_selection *selection = &wanted->analysis->query->selection;

    return (!selection->one_stream || lifetime->stream == selection->stream) &&
           lifetime->size >= selection->size_min &&
           (selection->size_max == 0 || lifetime->size <= selection->size_max) &&
           is_wanted_pool(wanted->analysis, lifetime->pool_stream) &&
           tn_frame_view_matches(&wanted->analysis->query->view, lifetime->stack) &&
           is_annotated(wanted, lifetime) &&
           (!selection->where ||
            tn_where_takes(&wanted->analysis->query->where, &wanted->analysis->where, lifetime));
}

static bool wants_memory(void *context, uint64_t number)
{
    const struct wanted *wanted = context;
    const struct tn_analysis *analysis = wanted->analysis;
    const struct tarn_selection *selection = &analysis->query->selection;
    const struct tn_trace_entry *entry =
        tn_trace_at(analysis->whole.model, analysis->whole.trace, number);

    return (!selection->one_stream || entry->stream == selection->stream) &&
           (!analysis->has_pool_streams ||
            is_wanted_pool(analysis,
                           ((const uint32_t *)analysis->pool_streams.of_entry.items)[number]));
}

/* Bytes of wanted segments before the first entry: those at the end, less what the trace added. */
static uint64_t reserved_before(struct wanted *wanted)
{
    const struct tn_analysis *analysis = wanted->analysis;
    const struct tarn_selection *selection = &analysis->query->selection;
    const struct tn_model *model = analysis->whole.model;
    uint64_t reserved = 0;

    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        if (segment->device == analysis->whole.device &&
            tn_pool_is_of(segment->pool, selection->pools, selection->pool) &&
            (!selection->one_stream || segment->stream == selection->stream)) {
            reserved += segment->total_size;
        }
    }
    for (uint64_t i = analysis->whole.trace->count; i > 0; i--) {
        const int64_t delta = tn_reserved_delta(tn_trace_at(model, analysis->whole.trace, i - 1));

        if (delta != 0 && wants_memory(wanted, i - 1)) {
            reserved -= (uint64_t)delta;
            if ((int64_t)reserved < 0) {
                reserved = 0;
            }
        }
    }
    return reserved;
}

static bool limits_memory(const struct tarn_selection *selection)
{
    return selection->one_stream || selection->pools != TARN_POOLS_ALL;
}

/* Whether blocks of one segment may be selected separately. */
static bool picks_blocks(const struct tarn_selection *selection)
{
    return selection->size_min > 0 || selection->size_max > 0 || selection->match ||
           selection->annotation || selection->where;
}

static bool limits_blocks(const struct tarn_selection *selection)
{
    return limits_memory(selection) || picks_blocks(selection);
}

bool tn_analysis_picks_blocks(const struct tn_analysis *analysis)
{
    return picks_blocks(&analysis->query->selection);
}

bool tn_analysis_limits_blocks(const struct tn_analysis *analysis)
{
    return limits_blocks(&analysis->query->selection);
}

static bool limits_entries(const struct tarn_selection *selection)
{
    return selection->events.is_given || selection->time_us.is_given || selection->steps.is_given;
}

/* [first, limit) cut to a range. */
static void window_cut(struct tn_narrowing *narrowing, uint64_t first, uint64_t limit)
{
    narrowing->first = first > narrowing->first ? first : narrowing->first;
    narrowing->limit = limit < narrowing->limit ? limit : narrowing->limit;
}

static enum tarn_status time_cut(const struct tn_analysis *analysis, struct tn_narrowing *narrowing,
                                 struct tarn_error *error)
{
    const struct tarn_span *time_us = &analysis->query->selection.time_us;
    const int64_t zero = tn_timeline_first_time(&analysis->whole);
    const uint64_t most = INT64_MAX;

    if (zero == TN_TIME_NONE) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the trace of device %" PRId64 " has no times; pick a part with --events",
                       analysis->whole.device);
    }
    /* Times of a damaged file may lie anywhere: sums stop at the largest. */
    const uint64_t room = zero > 0 ? most - (uint64_t)zero : most;
    const uint64_t from = time_us->first < room ? time_us->first : room;
    const uint64_t to = time_us->last < room ? time_us->last : room;

    window_cut(narrowing, tn_timeline_find_time(&analysis->whole, zero + (int64_t)from),
               to == room ? analysis->whole.trace->count
                          : tn_timeline_find_time(&analysis->whole, zero + (int64_t)to + 1));
    return TARN_OK;
}

static enum tarn_status no_steps(const struct tn_analysis *analysis, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_FOUND,
                   "the file has no steps of device %" PRId64
                   ": nothing in it is annotated as ProfilerStep or Optimizer.step; pick a part "
                   "with --events or --time",
                   analysis->whole.device);
}

static enum tarn_status steps_cut(const struct tn_analysis *analysis,
                                  struct tn_narrowing *narrowing, struct tarn_error *error)
{
    const struct tarn_span *steps = &analysis->query->selection.steps;
    const uint64_t *ends = analysis->steps.items;
    const uint64_t count = analysis->steps.count;

    if (count == 0) {
        return no_steps(analysis, error);
    }
    if (steps->first == 0 || steps->first > count || steps->last < steps->first) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "there is no such step: the trace of device %" PRId64 " has steps 1 to "
                       "%" PRIu64,
                       analysis->whole.device, count);
    }
    window_cut(narrowing, steps->first == 1 ? 0 : ends[steps->first - 2] + 1,
               steps->last > count ? analysis->whole.trace->count : ends[steps->last - 1] + 1);
    return TARN_OK;
}

static enum tarn_status no_trace(const struct tn_analysis *analysis, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "the file has no trace of device %" PRId64 ", so it has no events, times and "
                   "steps: only its state at the end can be shown",
                   analysis->whole.device);
}

static enum tarn_status window_find(const struct tn_analysis *analysis,
                                    struct tn_narrowing *narrowing, struct tarn_error *error)
{
    const struct tarn_selection *selection = &analysis->query->selection;
    enum tarn_status status = TARN_OK;

    if (analysis->whole.trace->count == 0) {
        return limits_entries(selection) ? no_trace(analysis, error) : TARN_OK;
    }

    narrowing->first = 0;
    narrowing->limit = analysis->whole.trace->count;
    if (selection->events.is_given) {
        const uint64_t last = selection->events.last;

        window_cut(narrowing, selection->events.first, last == UINT64_MAX ? last : last + 1);
    }
    if (selection->time_us.is_given) {
        status = time_cut(analysis, narrowing, error);
    }
    if (status == TARN_OK && selection->steps.is_given) {
        status = steps_cut(analysis, narrowing, error);
    }
    if (status == TARN_OK && narrowing->first >= narrowing->limit) {
        status = tn_fail(error, TARN_ERR_NOT_FOUND,
                         "nothing is selected: the trace of device %" PRId64
                         " has events 0 to %" PRIu64 ", none of them in that part",
                         analysis->whole.device, analysis->whole.trace->count - 1);
    }
    return status;
}

/* Whether the program gave some block that name. */
static bool has_metadata(const struct tn_analysis *analysis, const char *name)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(&analysis->whole);

    for (size_t i = 0; i < analysis->whole.lifetimes.count; i++) {
        if (lifetimes[i].metadata != TN_STRING_NONE &&
            tn_phase_is_named(tn_model_string(analysis->whole.model, lifetimes[i].metadata),
                              name)) {
            return true;
        }
    }
    return false;
}

static enum tarn_status marks_make(struct wanted *wanted, struct tarn_error *error)
{
    const struct tn_analysis *analysis = wanted->analysis;
    const char *name = analysis->query->selection.annotation;

    if (!name) {
        return TARN_OK;
    }
    wanted->marks = tn_host_alloc_zero((size_t)analysis->whole.trace->count + 1);
    if (!wanted->marks) {
        return tn_fail_memory(error);
    }
    if (tn_phases_cover(&analysis->phases, name, wanted->marks) > 0 ||
        has_metadata(analysis, name)) {
        return TARN_OK;
    }
    return tn_fail(error, TARN_ERR_NOT_FOUND,
                   analysis->phases.phases.count == 0
                       ? "the file has no annotations of device %" PRId64
                         ", and no block has metadata \"%.*s\""
                       : "device %" PRId64
                         " has no annotation \"%.*s\"; \"tarn top --by annotation\" lists those "
                         "that allocate memory",
                   analysis->whole.device, tn_utf8_cut(name, 200), name);
}

/* The context that an expression is evaluated in. */
static enum tarn_status where_make(struct tn_analysis *analysis, struct tarn_error *error)
{
    const struct tarn_where *where = analysis->query->selection.where;

    analysis->where = (struct tn_where_scope){.whole = &analysis->whole,
                                              .pool_streams = &analysis->pool_streams,
                                              .categories = &analysis->query->categories,
                                              .zero = tn_timeline_first_time(&analysis->whole)};
    if (where && where->uses_time && analysis->where.zero == TN_TIME_NONE) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the trace of device %" PRId64 " has no times; use event numbers in --where",
                       analysis->whole.device);
    }
    return TARN_OK;
}

static enum tarn_status part_make(struct tn_analysis *analysis, struct tarn_error *error)
{
    const struct tarn_selection *selection = &analysis->query->selection;
    struct wanted wanted = {.analysis = analysis};
    enum tarn_status status = window_find(analysis, &wanted.narrowing, error);

    if (status == TARN_OK) {
        status = where_make(analysis, error);
    }
    if (status == TARN_OK) {
        status = marks_make(&wanted, error);
    }
    if (status == TARN_OK) {
        wanted.narrowing.context = &wanted;
        wanted.narrowing.wants = limits_blocks(selection) ? wants_lifetime : NULL;
        if (limits_memory(selection)) {
            wanted.narrowing.wants_memory = wants_memory;
            wanted.narrowing.reserved_before = reserved_before(&wanted);
        }
        status = tn_timeline_narrow(&analysis->part, &analysis->whole, &wanted.narrowing)
                     ? TARN_OK
                     : tn_fail_memory(error);
    }
    tn_host_free(wanted.marks, (size_t)analysis->whole.trace->count + 1);
    return status;
}

/* ---- one device ---- */

/* What the category of a block depends on, besides itself. */
struct categorizing {
    struct tn_categories *categories;
    struct tn_gradients gradients;
    uint64_t first_step;
};

static bool categorizing_init(struct categorizing *c, const struct tn_analysis *analysis)
{
    c->categories = &analysis->query->categories;
    c->first_step = tn_steps_first(&analysis->steps);
    return tn_gradients_init(&c->gradients, &analysis->whole, &analysis->phases, c->categories,
                             c->first_step);
}

static void categorize(struct categorizing *c, struct tn_lifetime *lifetime)
{
    lifetime->category = tn_category_of(c->categories, lifetime, c->first_step,
                                        tn_gradients_has(&c->gradients, lifetime->start));
}

static bool categorize_all(struct tn_analysis *analysis)
{
    struct tn_lifetime *lifetimes = analysis->whole.lifetimes.items;
    struct categorizing c;

    if (!categorizing_init(&c, analysis)) {
        return false;
    }
    for (size_t i = 0; i < analysis->whole.lifetimes.count; i++) {
        categorize(&c, &lifetimes[i]);
    }
    tn_gradients_fini(&c.gradients);
    analysis->all_categorized = true;
    return true;
}

bool tn_analysis_categorize(const struct tn_analysis *analysis, const struct tn_live *blocks)
{
    struct tn_lifetime *lifetimes = analysis->whole.lifetimes.items;
    struct categorizing c;

    tn_assert(analysis->query->has_categories);
    if (analysis->all_categorized) {
        return true;
    }
    if (!categorizing_init(&c, analysis)) {
        return false;
    }
    for (size_t i = 0; i < blocks->count; i++) {
        categorize(&c, &lifetimes[blocks->blocks[i] - lifetimes]);
    }
    tn_gradients_fini(&c.gradients);
    return true;
}

static bool selects(const struct tn_query *query)
{
    return limits_blocks(&query->selection) || limits_entries(&query->selection);
}

/* Sets what keys and expressions need of each lifetime. */
static bool lifetimes_mark(struct tn_analysis *analysis)
{
    const struct tn_query *query = analysis->query;

    if ((query->by == TARN_BY_ANNOTATION || where_uses(query, TN_WHERE_ANNOTATION)) &&
        !tn_phases_mark(&analysis->phases, &analysis->whole)) {
        return false;
    }
    return !query->has_categories || (query->by != TARN_BY_CATEGORY && !selects(query)) ||
           categorize_all(analysis);
}

static bool pool_streams_make(struct tn_analysis *analysis)
{
    const struct tn_query *query = analysis->query;

    if (query->by == TARN_BY_POOL || query->by == TARN_BY_SEGMENT ||
        query->selection.pools != TARN_POOLS_ALL || where_uses(query, TN_WHERE_POOL) ||
        where_uses(query, TN_WHERE_SEGMENT)) {
        analysis->has_pool_streams =
            tn_pool_streams_init(&analysis->pool_streams, &analysis->whole);
        return analysis->has_pool_streams;
    }
    return true;
}

enum tarn_status tn_analysis_init(struct tn_analysis *analysis, struct tn_query *query,
                                  size_t device, struct tarn_error *error)
{
    enum tarn_status status;

    *analysis = (struct tn_analysis){.query = query};
    if (!tn_timeline_init(&analysis->whole, query->model, device)) {
        return tn_fail_memory(error);
    }
    analysis->timeline = &analysis->whole;
    analysis->keys = (struct tn_group_keys){.by = query->by,
                                            .units = query->units,
                                            .full_stacks = query->full_stacks,
                                            .model = query->model,
                                            .view = &query->view,
                                            .categories = &query->categories,
                                            .pool_streams = &analysis->pool_streams};
    status = tn_phases_init(&analysis->phases, &analysis->whole) &&
                     tn_phases_steps(&analysis->phases, &analysis->steps) &&
                     pool_streams_make(analysis) && lifetimes_mark(analysis) &&
                     tn_group_keys_init(&analysis->keys)
                 ? TARN_OK
                 : tn_fail_memory(error);
    if (status == TARN_OK && selects(query)) {
        status = part_make(analysis, error);
        if (status == TARN_OK) {
            analysis->timeline = &analysis->part;
        }
    }
    if (status) {
        tn_analysis_fini(analysis);
    }
    return status;
}

void tn_analysis_fini(struct tn_analysis *analysis)
{
    if (tn_analysis_is_part(analysis)) {
        tn_timeline_fini(&analysis->part);
    }
    tn_group_keys_fini(&analysis->keys);
    if (analysis->has_pool_streams) {
        tn_pool_streams_fini(&analysis->pool_streams);
    }
    tn_vec_fini(&analysis->steps);
    tn_phases_fini(&analysis->phases);
    tn_timeline_fini(&analysis->whole);
}

void tn_analysis_regroup(const struct tn_analysis *analysis, enum tarn_grouping by,
                         struct tn_analysis *copy)
{
    tn_assert(by == analysis->query->by || by == TARN_BY_SIZE ||
              (by == TARN_BY_CATEGORY && analysis->query->has_categories));
    *copy = *analysis;
    copy->keys.by = by;
    copy->keys.only_frames = true;
    copy->timeline = tn_analysis_is_part(analysis) ? &copy->part : &copy->whole;
}

/* ---- time points ---- */

static enum tarn_status entry_time_point(const struct tn_analysis *analysis, uint64_t entry,
                                         struct tn_time_point *point_out, struct tarn_error *error)
{
    const struct tn_timeline *timeline = analysis->timeline;

    if (timeline->trace->count == 0) {
        return no_trace(analysis, error);
    }
    if (entry != tn_timeline_before(timeline) &&
        (entry < timeline->first || entry >= timeline->limit)) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "the time point is outside the selection, events "
                       "%" PRIu64 " to %" PRIu64 " of device %" PRId64,
                       timeline->first, timeline->limit - 1, timeline->device);
    }
    *point_out = tn_timeline_at(timeline, entry);
    return TARN_OK;
}

static enum tarn_status oom_time_point(const struct tn_analysis *analysis, uint64_t number,
                                       struct tn_time_point *point_out, struct tarn_error *error)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const uint64_t *ooms = timeline->ooms.items;

    if (number == 0 || number > timeline->ooms.count) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "no such failure: %zu requests failed on device %" PRId64,
                       timeline->ooms.count, timeline->device);
    }
    return entry_time_point(analysis, ooms[number - 1], point_out, error);
}

static enum tarn_status clock_time_point(const struct tn_analysis *analysis, uint64_t time_us,
                                         struct tn_time_point *point_out, struct tarn_error *error)
{
    const int64_t zero = tn_timeline_first_time(&analysis->whole);

    if (zero == TN_TIME_NONE) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the trace of device %" PRId64 " has no times; use --at event:N",
                       analysis->whole.device);
    }
    const uint64_t room = (uint64_t)INT64_MAX - (zero > 0 ? (uint64_t)zero : 0);
    const uint64_t entry =
        time_us >= room ? analysis->whole.trace->count
                        : tn_timeline_find_time(&analysis->whole, zero + (int64_t)time_us + 1);

    /* The first entry is before that: it has the first time, or none. */
    tn_assert(entry > 0);
    return entry_time_point(analysis, entry - 1, point_out, error);
}

static enum tarn_status step_time_point(const struct tn_analysis *analysis, uint64_t number,
                                        struct tn_time_point *point_out, struct tarn_error *error)
{
    const uint64_t *ends = analysis->steps.items;

    if (analysis->steps.count == 0) {
        return no_steps(analysis, error);
    }
    if (number == 0 || number > analysis->steps.count) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "there is no such step: the trace of device %" PRId64 " has steps 1 to %zu",
                       analysis->whole.device, analysis->steps.count);
    }
    return entry_time_point(analysis, ends[number - 1], point_out, error);
}

enum tarn_status tn_analysis_time_point(const struct tn_analysis *analysis,
                                        const struct tarn_instant *instant,
                                        enum tarn_instant_kind usual,
                                        struct tn_time_point *point_out, struct tarn_error *error)
{
    const struct tn_timeline *timeline = analysis->timeline;

    switch (instant->kind == TARN_AT_UNSPECIFIED ? usual : instant->kind) {
    case TARN_AT_PEAK:
        *point_out = timeline->requested_peak;
        break;
    case TARN_AT_UNSPECIFIED: /* the usual one is something */
        tn_no_case();
        *point_out = timeline->requested_peak;
        break;
    case TARN_AT_RESERVED_PEAK:
        *point_out = timeline->reserved_peak;
        break;
    case TARN_AT_START:
        *point_out = timeline->start;
        break;
    case TARN_AT_END:
        *point_out = timeline->end;
        break;
    case TARN_AT_OOM:
        return oom_time_point(analysis, instant->number, point_out, error);
    case TARN_AT_EVENT:
        return entry_time_point(analysis, instant->number, point_out, error);
    case TARN_AT_TIME:
        return clock_time_point(analysis, instant->number, point_out, error);
    case TARN_AT_STEP:
        return step_time_point(analysis, instant->number, point_out, error);
    }
    return TARN_OK;
}
