/* SPDX-License-Identifier: MIT */
#include "fleet/summary_parts.h"

#include "analysis/block_extent.h"
#include "analysis/live.h"
#include "analysis/repeat.h"
#include "base/assertion.h"
#include "report/composition.h"

/* ---- sketch ---- */

/* A part begins with what the one before left. Cost: O(events). */
static void sketch_make(struct tn_sketch *sketch, const struct tn_timeline *timeline)
{
    const uint64_t count = timeline->limit - timeline->first;
    struct tn_time_point now = timeline->start;

    for (size_t point = 0; point < TN_SUMMARY_POINTS; point++) {
        const uint64_t share = count / TN_SUMMARY_POINTS;
        const uint64_t rest = count % TN_SUMMARY_POINTS;
        const uint64_t end =
            timeline->first + share * (point + 1) + rest * (point + 1) / TN_SUMMARY_POINTS;
        const struct tn_time_peak peak = tn_timeline_follow(timeline, &now, end);

        sketch->requested[point] = peak.requested;
        sketch->reserved[point] = peak.reserved;
    }
}

/* ---- reports ---- */

static struct tarn_report_options options_of(const struct tn_report *report, uint64_t rows)
{
    struct tarn_report_options options = *report->options;

    options.rows = rows;
    options.tree = false;
    options.would_fit = NULL;
    options.find_remedies = NULL;
    options.leaks_out = NULL;
    options.parts = 0;
    return options;
}

/* One report on the same analysis, with a limit of its own. `result` begins with a head. */
static enum tarn_status part_compute(const struct tn_report *report, uint64_t rows,
                                     const struct tn_analysis *analysis, tn_report_device *compute,
                                     void *result, struct tarn_error *error)
{
    const struct tarn_report_options options = options_of(report, rows);
    const struct tn_report part = {.options = &options,
                                   .limit = rows ? rows : UINT64_MAX,
                                   .result = report->result,
                                   .for_summary = true};

    *(struct tarn_report_head *)result = tn_report_head_of(analysis);
    return compute(&part, analysis, result, error);
}

static enum tarn_status categories_compute(const struct tn_report *report,
                                           const struct tn_analysis *analysis,
                                           struct tarn_composition *composition)
{
    const struct tarn_report_options options = options_of(report, 0);
    const struct tn_report all = {
        .options = &options, .limit = UINT64_MAX, .result = report->result};
    const struct tn_time_point *at = &analysis->timeline->requested_peak;
    struct tn_analysis by_category;
    struct tn_live live;

    const bool has_live = tn_live_init(&live, analysis->timeline, at->entry);

    if (tn_never(!has_live)) { /* it is one of the instants that are shared (live_share) */
        return TARN_ERR_HOST_MEMORY;
    }
    tn_analysis_regroup(analysis, TARN_BY_CATEGORY, &by_category);
    const bool good = tn_analysis_categorize(analysis, &live) &&
                      tn_composition_make(&all, &by_category, at, composition);

    tn_live_fini(&live);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

/* ---- what several of the reports need ---- */

enum {
    OOMS_SHARED = 8, /* of whose blocks there is a list: more would take memory */
    INSTANTS_SHARED = OOMS_SHARED + 3
};

struct shared {
    struct tn_block_extents extents;
    struct tn_repeats repeats;
    struct tn_live_sets live;
    struct tn_analysis analysis; /* the given one, with all of this */
};

/* The instant of what is held; the other reports have their own. */
static struct tarn_instant instant_of(const struct tn_analysis *analysis)
{
    const struct tarn_instant peak = {TARN_AT_PEAK, 0};
    const struct tarn_instant given = analysis->query->selection.at;

    return given.kind ? given : peak;
}

/* The blocks at the instants that reports look at. One that there is not, a report says. */
static bool live_share(struct tn_live_sets *live, const struct tn_analysis *analysis)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const struct tarn_instant instant = instant_of(analysis);
    uint64_t entries[INSTANTS_SHARED] = {timeline->requested_peak.entry,
                                         timeline->reserved_peak.entry};
    size_t count = 2;
    struct tn_time_point held;

    if (tn_analysis_time_point(analysis, &instant, TARN_AT_PEAK, &held, NULL) == TARN_OK) {
        entries[count++] = held.entry;
    }
    for (size_t i = 0; i < timeline->ooms.count && i < OOMS_SHARED; i++) {
        entries[count++] = ((const uint64_t *)timeline->ooms.items)[i];
    }
    return tn_live_sets_init(live, timeline, entries, count);
}

static bool shared_init(struct shared *shared, const struct tn_analysis *analysis)
{
    const struct tn_trace_source source = tn_timeline_source(&analysis->whole);

    if (!tn_block_extents_init(&shared->extents, &source)) {
        return false;
    }
    if (!tn_repeats_init_all(&shared->repeats, analysis, 0)) {
        tn_block_extents_fini(&shared->extents);
        return false;
    }
    if (!live_share(&shared->live, analysis)) {
        tn_repeats_fini(&shared->repeats);
        tn_block_extents_fini(&shared->extents);
        return false;
    }
    tn_analysis_regroup(analysis, analysis->query->by, &shared->analysis);
    shared->analysis.whole.extents = &shared->extents;
    shared->analysis.repeats = &shared->repeats;
    if (tn_analysis_is_part(analysis)) {
        shared->analysis.part.live = &shared->live;
    } else {
        shared->analysis.whole.live = &shared->live;
    }
    return true;
}

static void shared_fini(struct shared *shared)
{
    tn_live_sets_fini(&shared->live);
    tn_repeats_fini(&shared->repeats);
    tn_block_extents_fini(&shared->extents);
}

/* ---- all of them ---- */

static enum tarn_status parts_compute(const struct tn_report *report,
                                      const struct tn_analysis *analysis,
                                      struct tn_summary_parts *parts, struct tarn_error *error)
{
    const struct tarn_instant none = {TARN_AT_UNSPECIFIED, 0};
    struct tarn_instant *at = &analysis->query->selection.at;
    const struct tarn_instant given = *at;
    const struct tarn_instant held = instant_of(analysis);
    const struct {
        uint64_t rows; /* 0: all */
        tn_report_device *compute;
        void *result;
    } all[] = {{TN_SUMMARY_STACKS, tn_live_compute, &parts->live},
               {TN_SUMMARY_RESERVED, tn_peak_compute, &parts->peak},
               {0, tn_steps_compute, &parts->steps},
               {TN_SUMMARY_GROWTH, tn_leaks_compute, &parts->leaks},
               {1, tn_oom_compute, &parts->oom},
               {1, tn_frag_compute, &parts->frag}};
    enum tarn_status status = TARN_OK;

    for (size_t i = 0; status == TARN_OK && i < sizeof all / sizeof all[0]; i++) {
        *at = all[i].result == &parts->live ? held : none;
        status = part_compute(report, all[i].rows, analysis, all[i].compute, all[i].result, error);
    }
    if (status == TARN_OK) {
        struct tn_analysis by_size;

        tn_analysis_regroup(analysis, TARN_BY_SIZE, &by_size);
        status = part_compute(report, 0, &by_size, tn_top_compute, &parts->by_size, error);
    }
    *at = given;
    status = status ? status : categories_compute(report, analysis, &parts->by_category);
    sketch_make(&parts->sketch, analysis->timeline);
    return status;
}

enum tarn_status tn_summary_parts_compute(const struct tn_report *report,
                                          const struct tn_analysis *analysis, void *result_out,
                                          struct tarn_error *error)
{
    struct shared shared;

    if (!shared_init(&shared, analysis)) {
        return TARN_ERR_HOST_MEMORY;
    }
    const enum tarn_status status = parts_compute(report, &shared.analysis, result_out, error);

    shared_fini(&shared);
    return status;
}
