/* SPDX-License-Identifier: MIT */
#include "fleet/summary_parts.h"

#include "analysis/block_extent.h"
#include "analysis/repeat.h"
#include "report/composition.h"

/* ---- sketch ---- */

static void point_raise(struct tn_sketch *sketch, size_t point, const struct tn_time_point *now)
{
    if (now->requested > sketch->requested[point]) {
        sketch->requested[point] = now->requested;
    }
    if (now->reserved > sketch->reserved[point]) {
        sketch->reserved[point] = now->reserved;
    }
}

/* A part begins with what the one before left. Cost: O(events). */
static void sketch_make(struct tn_sketch *sketch, const struct tn_timeline *timeline)
{
    const uint64_t count = timeline->limit - timeline->first;
    struct tn_time_point now = timeline->start;
    uint64_t entry = timeline->first;

    for (size_t point = 0; point < TN_SUMMARY_POINTS; point++) {
        const uint64_t share = count / TN_SUMMARY_POINTS;
        const uint64_t rest = count % TN_SUMMARY_POINTS;
        const uint64_t end =
            timeline->first + share * (point + 1) + rest * (point + 1) / TN_SUMMARY_POINTS;

        point_raise(sketch, point, &now);
        for (; entry < end; entry++) {
            tn_timeline_step(timeline, &now, entry);
            point_raise(sketch, point, &now);
        }
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
    struct tn_analysis by_category;

    tn_analysis_regroup(analysis, TARN_BY_CATEGORY, &by_category);
    return tn_composition_make(&all, &by_category, &by_category.timeline->requested_peak,
                               composition)
               ? TARN_OK
               : TARN_ERR_HOST_MEMORY;
}

/* What several of the reports need. */
struct made {
    struct tn_block_extents extents;
    struct tn_repeats repeats;
};

/* The selection's instant is that of what is held; the other reports have their own. */
static enum tarn_status parts_compute(const struct tn_report *report,
                                      const struct tn_analysis *analysis, const struct made *made,
                                      struct tn_summary_parts *parts, struct tarn_error *error)
{
    const struct tarn_instant none = {TARN_AT_UNSPECIFIED, 0};
    const struct tarn_instant peak = {TARN_AT_PEAK, 0};
    struct tarn_instant *at = &analysis->query->selection.at;
    const struct tarn_instant given = *at;
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
    struct tn_analysis as_given;

    tn_analysis_regroup(analysis, analysis->query->by, &as_given);
    as_given.whole.extents = &made->extents;
    as_given.repeats = &made->repeats;
    for (size_t i = 0; status == TARN_OK && i < sizeof all / sizeof all[0]; i++) {
        *at = all[i].result != &parts->live ? none : given.kind ? given : peak;
        status = part_compute(report, all[i].rows, &as_given, all[i].compute, all[i].result, error);
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
    const struct tn_trace_source source = tn_timeline_source(&analysis->whole);
    struct made made;

    if (!tn_block_extents_init(&made.extents, &source)) {
        return TARN_ERR_HOST_MEMORY;
    }
    if (!tn_repeats_init_all(&made.repeats, analysis, 0)) {
        tn_block_extents_fini(&made.extents);
        return TARN_ERR_HOST_MEMORY;
    }
    const enum tarn_status status = parts_compute(report, analysis, &made, result_out, error);

    tn_repeats_fini(&made.repeats);
    tn_block_extents_fini(&made.extents);
    return status;
}
