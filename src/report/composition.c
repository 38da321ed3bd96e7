/* SPDX-License-Identifier: MIT */
#include "report/composition.h"

#include <stddef.h>

static struct tarn_holder holder_of(const struct tn_group *group)
{
    return (struct tarn_holder){.group = {.key = group->key},
                                .bytes = group->bytes,
                                .blocks = group->count,
                                .bytes_before = group->before};
}

/* The sums of the rows that are not shown; what no rule knows is said even where it is one. */
static void sums_make(const struct tn_groups *groups, struct tarn_holders *holders)
{
    const struct tn_group *rows = groups->rows.items;

    holders->other_count = groups->rows.count - holders->row_count;
    for (size_t i = 0; i < groups->rows.count; i++) {
        if (i >= holders->row_count) {
            holders->others.bytes += rows[i].bytes;
            holders->others.blocks += rows[i].count;
            holders->others.bytes_before += rows[i].before;
        }
        if (holders->by == TARN_BY_CATEGORY && rows[i].key == TN_CATEGORY_UNCLASSIFIED) {
            holders->unclassified = holder_of(&rows[i]);
        }
    }
    holders->total = (struct tarn_holder){
        .bytes = groups->bytes, .blocks = groups->count, .bytes_before = groups->before};
}

static bool tree_make(const struct tn_report *report, const struct tn_analysis *analysis,
                      const struct tn_groups *groups, struct tarn_holders *holders)
{
    const struct tn_tree_source source = {.rows = groups->rows.items,
                                          .count = groups->rows.count,
                                          .row_size = sizeof(struct tn_group),
                                          .numbers_at = offsetof(struct tn_group, bytes),
                                          .number_count = 3,
                                          .to_size = sizeof(struct tarn_holder),
                                          .to_numbers_at = offsetof(struct tarn_holder, bytes),
                                          .to_call_at = offsetof(struct tarn_holder, call)};

    holders->tree = tn_tree_collect(report, &analysis->keys, &source, &holders->tree_count);
    return holders->tree != NULL;
}

bool tn_holders_make(const struct tn_report *report, const struct tn_analysis *analysis,
                     const struct tn_groups *groups, struct tarn_holders *holders)
{
    const struct tn_group *groups_at = groups->rows.items;
    const size_t count = tn_report_rows(report, groups->rows.count);
    struct tarn_holder *rows =
        tn_arena_alloc_array(tn_result_arena(report->result), count, sizeof *rows);

    *holders = (struct tarn_holders){.by = analysis->keys.by, .rows = rows, .row_count = count};
    for (size_t i = 0; rows && i < count; i++) {
        rows[i] = holder_of(&groups_at[i]);
        if (!tn_result_group(report->result, &analysis->keys, &rows[i].group)) {
            return false;
        }
    }
    sums_make(groups, holders);
    return rows != NULL;
}

/* How much more is reserved than allocated. Of one stream or pool nobody knows what else is in its
 * segments when blocks are picked by something else as well. */
static uint64_t unallocated(const struct tn_analysis *analysis, const struct tn_time_point *at)
{
    const bool is_limited = analysis->timeline->reserved.count > 0;
    const uint64_t used = at->requested + (is_limited ? 0 : at->left_out);

    if (is_limited && tn_analysis_picks_blocks(analysis)) {
        return TARN_NONE;
    }
    return at->reserved > used ? at->reserved - used : 0;
}

bool tn_composition_make(const struct tn_report *report, const struct tn_analysis *analysis,
                         const struct tn_time_point *at, struct tarn_composition *composition)
{
    struct tn_groups groups;

    if (!tn_groups_collect(&groups, analysis, at->entry)) {
        return false;
    }
    const bool good =
        tn_holders_make(report, analysis, &groups, &composition->holders) &&
        (!report->options->tree || tree_make(report, analysis, &groups, &composition->holders));

    composition->at = tn_result_time_point(at);
    composition->unallocated = unallocated(analysis, at);
    tn_groups_fini(&groups);
    return good;
}
