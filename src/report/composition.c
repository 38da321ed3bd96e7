/* SPDX-License-Identifier: MIT */
#include "report/composition.h"

#include "analysis/live.h"
#include "base/order.h"
#include "report/label_apart.h"

#include <stddef.h>

enum {
    SUM_COUNT = 3 /* of a holder: bytes, blocks, bytes_before */
};

static int holder_compare(const void *left, const void *right)
{
    const struct tarn_holder *a = left;
    const struct tarn_holder *b = right;
    const int order = tn_order(b->bytes, a->bytes);

    return order ? order : tn_order(a->group.key, b->group.key);
}

static bool holders_count(struct tn_row_set *set, const struct tn_group_keys *keys,
                          const struct tn_live *live)
{
    for (size_t i = 0; i < live->count; i++) {
        const struct tn_lifetime *block = live->blocks[i];
        uint64_t key;
        struct tarn_holder *row =
            tn_group_key_find(keys, block, &key) ? tn_row_get(set, key) : NULL;

        if (!row) {
            return false;
        }
        row->bytes += block->size;
        row->blocks++;
        row->bytes_before += block->start == TN_NEVER ? block->size : 0;
    }
    return true;
}

bool tn_holders_collect(struct tn_row_set *set, const struct tn_analysis *analysis, uint64_t event)
{
    struct tn_live live;

    if (!tn_live_init(&live, analysis->timeline, event)) {
        return false;
    }
    tn_row_set_init(set, sizeof(struct tarn_holder), offsetof(struct tarn_holder, bytes),
                    SUM_COUNT);
    const bool good = holders_count(set, &analysis->keys, &live);

    tn_live_fini(&live);
    if (good) {
        tn_row_set_sort(set, holder_compare);
    } else {
        tn_row_set_fini(set);
    }
    return good;
}

bool tn_holders_make(const struct tn_report *report, const struct tn_analysis *analysis,
                     const struct tn_row_set *set, struct tarn_holders *holders)
{
    const size_t count = tn_report_rows(report, set->rows.count);
    const struct tarn_holder *unclassified =
        analysis->keys.by == TARN_BY_CATEGORY ? tn_row_find(set, TN_CATEGORY_UNCLASSIFIED) : NULL;

    *holders = (struct tarn_holders){
        .by = analysis->keys.by, .row_count = count, .other_count = set->rows.count - count};
    tn_rows_sum(set, 0, &holders->total);
    tn_rows_sum(set, count, &holders->others);
    if (unclassified) {
        holders->unclassified = *unclassified;
    }
    holders->rows = tn_rows_name(report->result, set, count, &analysis->keys);
    return holders->rows != NULL;
}

uint64_t tn_bytes_without_frames(const struct tn_analysis *analysis, uint64_t event)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);
    const size_t count = analysis->timeline->lifetimes.count;
    uint64_t bytes = 0;

    /* Most files have none, and are not searched. */
    for (size_t i = 0; i < count && analysis->timeline->empty_stacks > 0; i++) {
        if (lifetimes[i].stack == TN_STACK_EMPTY && lifetimes[i].start != TN_NEVER &&
            tn_lifetime_is_at(&lifetimes[i], event)) {
            bytes += lifetimes[i].size;
        }
    }
    return bytes;
}

static bool tree_make(const struct tn_report *report, const struct tn_analysis *analysis,
                      const struct tn_row_set *set, struct tarn_holders *holders)
{
    holders->tree = tn_tree_collect(report, &analysis->keys, set,
                                    offsetof(struct tarn_holder, call), &holders->tree_count);
    return holders->tree != NULL;
}

/* How many more bytes are reserved than allocated. Unknown when blocks are selected by more than
 * their stream or pool: what else is in those segments is not known. */
static uint64_t unallocated(const struct tn_analysis *analysis, const struct tn_time_point *at)
{
    const bool is_limited = analysis->timeline->limits_memory;
    const uint64_t used = at->requested + (is_limited ? 0 : at->left_out);

    if (is_limited && tn_analysis_picks_blocks(analysis)) {
        return TARN_NONE;
    }
    return at->reserved > used ? at->reserved - used : 0;
}

bool tn_composition_make(const struct tn_report *report, const struct tn_analysis *analysis,
                         const struct tn_time_point *at, struct tarn_composition *composition)
{
    struct tn_row_set set;

    if (!tn_holders_collect(&set, analysis, at->entry)) {
        return false;
    }
    const bool good =
        tn_holders_make(report, analysis, &set, &composition->holders) &&
        (!report->options->tree || tree_make(report, analysis, &set, &composition->holders));

    composition->holders.bytes_without_frames = tn_bytes_without_frames(analysis, at->entry);
    composition->at = tn_result_time_point(at);
    composition->unallocated = unallocated(analysis, at);
    tn_row_set_fini(&set);
    return good;
}
