/* SPDX-License-Identifier: MIT */
/*
 * The context of a report. A query holds the options for one snapshot: selection, grouping, rules.
 * An analysis applies a query to one device: the timeline of the selected blocks, with their group
 * keys. Every report on a trace starts here, so that all of them select and group alike.
 *
 * Owns everything but the model and the caller's options. Guarded by its owner. Cost: O(n log n) in
 * the events of the device, and one match per frame and pattern.
 */
#ifndef TN_ANALYSIS_ANALYSIS_H
#define TN_ANALYSIS_ANALYSIS_H

#include "analysis/annotation.h"
#include "analysis/group_key.h"
#include "analysis/live.h"
#include "analysis/where_view.h"
#include "tarn/report.h"

struct tn_query {
    const struct tn_model *model;
    struct tarn_selection selection;
    enum tarn_grouping by;
    enum tarn_units units; /* of sizes in text; JSON has those of the default in names of groups */
    struct tn_frame_view view;
    struct tn_categories categories;
    bool has_categories;
    bool full_stacks;           /* in labels */
    struct tn_where_view where; /* for an expression */
    bool tree;                  /* stacks as a tree of calls */
};

/* `options` may be NULL. TARN_ERR_INVALID_ARGUMENT for a pattern that is none,
 * TARN_ERR_HOST_MEMORY; then there is nothing to release. */
enum tarn_status tn_query_init(struct tn_query *query, const struct tn_model *model,
                               const struct tarn_report_options *options,
                               struct tarn_error *error) TN_MUST_CHECK;

/* Before the first analysis: blocks can get their categories whatever the grouping. */
enum tarn_status tn_query_want_categories(struct tn_query *query, const struct tarn_rules *rules,
                                          struct tarn_error *error) TN_MUST_CHECK;
void tn_query_fini(struct tn_query *query);

struct tn_repeats;

struct tn_analysis {
    struct tn_query *query;
    struct tn_timeline whole;
    struct tn_timeline part;            /* when something is selected */
    const struct tn_timeline *timeline; /* one of both */
    struct tn_phases phases;
    struct tn_vec steps; /* uint64_t: see tn_phases_steps */
    struct tn_pool_streams pool_streams;
    bool has_pool_streams;
    bool all_categorized;        /* each lifetime has its category */
    struct tn_where_scope where; /* its context */
    struct tn_group_keys keys;
    /* What somebody who needs them several times has made with tn_repeats_init_all; borrowed. NULL:
     * whoever needs them makes them. */
    const struct tn_repeats *repeats;
};

/* Of a device without a trace it has the state in the file. TARN_ERR_NOT_FOUND and
 * TARN_ERR_NOT_SUPPORTED when what is selected is not there, TARN_ERR_HOST_MEMORY; then there is
 * nothing to release. It must not move until tn_analysis_fini. */
enum tarn_status tn_analysis_init(struct tn_analysis *analysis, struct tn_query *query,
                                  size_t device, struct tarn_error *error) TN_MUST_CHECK;
void tn_analysis_fini(struct tn_analysis *analysis);

/* The same analysis for rows of another grouping: the query's own, by size, or by category if it
 * has categories. Groups by stack have no labels. A borrowed copy, which is not released. */
void tn_analysis_regroup(const struct tn_analysis *analysis, enum tarn_grouping by,
                         struct tn_analysis *copy_out);

/* Sets the categories of blocks of an analysis that has them, unless all got theirs already: the
 * query groups or selects by them, or selects a part, whose blocks are not as in the whole trace.
 * False when host memory is missing. */
bool tn_analysis_categorize(const struct tn_analysis *analysis,
                            const struct tn_live *blocks) TN_MUST_CHECK;

/* Whether the timeline is not the whole one. */
static inline bool tn_analysis_is_part(const struct tn_analysis *analysis)
{
    return analysis->timeline == &analysis->part;
}

/* Whether the selection leaves out blocks. */
bool tn_analysis_limits_blocks(const struct tn_analysis *analysis);

/* Whether by more than stream and pool, which are those of whole segments. */
bool tn_analysis_picks_blocks(const struct tn_analysis *analysis);

/* The time point of an instant, `usual` if unspecified. TARN_ERR_NOT_FOUND when the selected part
 * has no such time point. */
enum tarn_status tn_analysis_time_point(const struct tn_analysis *analysis,
                                        const struct tarn_instant *instant,
                                        enum tarn_instant_kind usual,
                                        struct tn_time_point *point_out,
                                        struct tarn_error *error) TN_MUST_CHECK;

#endif
