/* SPDX-License-Identifier: MIT */
/*
 * Stacks, or other groups, by what they did over the whole trace: bytes they held when most was in
 * use (or at another instant), bytes they hold at the end, bytes and blocks they asked for. Blocks
 * from before the trace count as asked for by nobody known, unless the snapshot still has their
 * stack.
 */
#include "analysis/address_map.h"
#include "analysis/call_tree.h"
#include "base/size_text.h"
#include "report/report_out.h"

#include <inttypes.h>
#include <stdlib.h>

/* One stack, or a sum of several. */
struct row {
    uint64_t key;
    uint64_t rank; /* what is sorted by */
    uint64_t peak;
    uint64_t end;
    uint64_t allocated; /* bytes asked for in the trace */
    uint64_t count;     /* allocations in the trace */
    uint64_t entries;   /* from allocation to free, summed over those that have both */
    uint64_t freed;     /* how many those are */
};

struct rows {
    struct tn_vec vec; /* struct row */
    struct tn_map numbers;
    struct row total;
};

static struct row *row_get(struct rows *rows, uint64_t key)
{
    const uint64_t *number = tn_address_find(&rows->numbers, key);

    if (number) {
        return (struct row *)rows->vec.items + *number;
    }
    if (!tn_address_put(&rows->numbers, key, rows->vec.count)) {
        return NULL;
    }
    struct row *row = tn_vec_push(&rows->vec);

    if (row) {
        row->key = key;
    }
    return row;
}

static void row_add(struct row *into, const struct row *from)
{
    into->peak += from->peak;
    into->end += from->end;
    into->allocated += from->allocated;
    into->count += from->count;
    into->entries += from->entries;
    into->freed += from->freed;
}

static struct row row_of(const struct tn_time_point *at, const struct tn_lifetime *lifetime)
{
    struct row row = {.peak = tn_lifetime_is_at(lifetime, at->entry) ? lifetime->size : 0,
                      .end = lifetime->end == TN_NEVER ? lifetime->size : 0};

    if (lifetime->start != TN_NEVER) {
        row.allocated = lifetime->size;
        row.count = 1;
        row.freed = lifetime->end != TN_NEVER;
        row.entries = row.freed ? lifetime->end - lifetime->start : 0;
    }
    return row;
}

static uint64_t rank_of(const struct row *row, enum tarn_top_order order)
{
    switch (order) {
    case TARN_TOP_BY_PEAK:
        return row->peak;
    case TARN_TOP_BY_END:
        return row->end;
    case TARN_TOP_BY_ALLOCATED:
        return row->allocated;
    case TARN_TOP_BY_COUNT:
        break;
    }
    return row->count;
}

static int row_compare(const void *left, const void *right)
{
    const struct row *a = left;
    const struct row *b = right;

    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    return a->key < b->key ? -1 : a->key > b->key;
}

static bool rows_fill(struct rows *rows, const struct tn_analysis *analysis,
                      const struct tn_time_point *at, enum tarn_top_order order)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(analysis->timeline);

    for (size_t i = 0; i < analysis->timeline->lifetimes.count; i++) {
        const struct row more = row_of(at, &lifetimes[i]);
        uint64_t key;
        struct row *row =
            tn_group_key_find(&analysis->keys, &lifetimes[i], &key) ? row_get(rows, key) : NULL;

        if (!row) {
            return false;
        }
        row_add(row, &more);
        row_add(&rows->total, &more);
    }
    struct row *items = rows->vec.items;

    for (size_t i = 0; i < rows->vec.count; i++) {
        items[i].rank = rank_of(&items[i], order);
    }
    if (rows->vec.count > 0) {
        qsort(items, rows->vec.count, sizeof *items, row_compare);
    }
    return true;
}

static struct row others_sum(const struct rows *rows, size_t limit)
{
    const struct row *items = rows->vec.items;
    struct row others = {.peak = 0};

    for (size_t i = limit; i < rows->vec.count; i++) {
        row_add(&others, &items[i]);
    }
    return others;
}

/* What no rule knows is said even where its row is among the others. */
static struct row unclassified(const struct rows *rows)
{
    const struct row *items = rows->vec.items;

    for (size_t i = 0; i < rows->vec.count; i++) {
        if (items[i].key == TN_CATEGORY_UNCLASSIFIED) {
            return items[i];
        }
    }
    return (struct row){.peak = 0};
}

/* ---- text ---- */

static bool is_at_peak(const struct tn_analysis *analysis)
{
    const enum tarn_instant_kind kind = analysis->query->selection.at.kind;

    return kind == TARN_AT_UNSAID || kind == TARN_AT_PEAK;
}

static void row_put(struct tn_text_out *out, const struct row *row)
{
    tn_text_put_size(out, (double)row->peak);
    tn_text_put_size(out, (double)row->end);
    tn_text_put_size(out, (double)row->allocated);
    tn_text_printf(out, "  %8" PRIu64 "  ", row->count);
    if (row->freed > 0) {
        tn_text_printf(out, "%8" PRIu64 "  ", row->entries / row->freed);
    } else {
        tn_text_puts(out, "       -  ");
    }
}

static void rows_put(const struct tn_report_out *report, const struct tn_analysis *analysis,
                     const struct rows *rows, size_t limit)
{
    const struct row *items = rows->vec.items;
    struct tn_text_out *out = report->out;

    tn_text_put_head(out, is_at_peak(analysis) ? "#at peak" : "#at instant");
    tn_text_put_head(out, "#at end#allocated    blocks      life  ");
    tn_text_printf(out, "%s\n", tn_grouping_heading(analysis->keys.by));
    for (size_t i = 0; i < limit; i++) {
        row_put(out, &items[i]);
        tn_group_key_put(out, &analysis->keys, items[i].key);
        tn_text_putc(out, '\n');
    }
    if (limit < rows->vec.count) {
        const struct row others = others_sum(rows, limit);

        row_put(out, &others);
        tn_text_printf(out, "others (%zu %s)\n", rows->vec.count - limit,
                       tn_grouping_plural(analysis->keys.by));
    }
    row_put(out, &rows->total);
    tn_text_puts(out, "total\n");
    if (analysis->keys.by == TARN_BY_CATEGORY) {
        const struct row row = unclassified(rows);

        row_put(out, &row);
        tn_text_puts(out, "of it is unclassified\n");
    }
}

/* ---- JSON ---- */

static void row_members(struct tn_json_text *json, const struct row *row)
{
    tn_json_number(json, "peak_bytes", row->peak);
    tn_json_number(json, "end_bytes", row->end);
    tn_json_number(json, "allocated_bytes", row->allocated);
    tn_json_number(json, "allocations", row->count);
    tn_json_number(json, "freed", row->freed);
    tn_json_number(json, "entries_from_allocation_to_free", row->entries);
}

static void rows_put_json(const struct tn_report_out *report, const struct tn_analysis *analysis,
                          const struct rows *rows, size_t limit)
{
    const struct row *items = rows->vec.items;
    const struct row others = others_sum(rows, limit);
    struct tn_json_text *json = report->json;

    tn_json_open_array(json, "stacks");
    for (size_t i = 0; i < limit; i++) {
        tn_json_open_object(json, NULL);
        row_members(json, &items[i]);
        tn_group_key_put_json(json, &analysis->keys, items[i].key);
        tn_json_close(json);
    }
    tn_json_close(json);
    tn_json_open_object(json, "others");
    tn_json_number(json, tn_grouping_plural(analysis->keys.by), rows->vec.count - limit);
    row_members(json, &others);
    tn_json_close(json);
    tn_json_open_object(json, "total");
    row_members(json, &rows->total);
    tn_json_close(json);
}

/* ---- trees ---- */

enum {
    PEAK, /* of the numbers of a row */
    END,
    ALLOCATED,
    COUNT,
    ENTRIES,
    FREED
};

static struct row row_from(const struct tn_call_sums *sums)
{
    return (struct row){.rank = sums->rank,
                        .peak = sums->numbers[PEAK],
                        .end = sums->numbers[END],
                        .allocated = sums->numbers[ALLOCATED],
                        .count = sums->numbers[COUNT],
                        .entries = sums->numbers[ENTRIES],
                        .freed = sums->numbers[FREED]};
}

static void calls_put(struct tn_text_out *out, const struct tn_call_sums *sums,
                      const struct tn_call_sums *all)
{
    const struct row row = row_from(sums);

    row_put(out, &row);
    tn_text_printf(out, "%5.1f%%  ",
                   all->rank > 0 ? (double)sums->rank / (double)all->rank * 100 : 0.0);
}

static void calls_put_json(struct tn_json_text *json, const struct tn_call_sums *sums)
{
    const struct row row = row_from(sums);

    row_members(json, &row);
}

static bool tree_fill(struct tn_call_tree *tree, const struct rows *rows)
{
    const struct row *items = rows->vec.items;

    for (size_t i = 0; i < rows->vec.count; i++) {
        const struct tn_call_sums sums = {.rank = items[i].rank,
                                          .numbers = {[PEAK] = items[i].peak,
                                                      [END] = items[i].end,
                                                      [ALLOCATED] = items[i].allocated,
                                                      [COUNT] = items[i].count,
                                                      [ENTRIES] = items[i].entries,
                                                      [FREED] = items[i].freed}};

        if (!tn_call_tree_add(tree, items[i].key, &sums)) {
            return false;
        }
    }
    return tn_call_tree_sort(tree);
}

/* False when host memory is missing. */
static bool tree_put(const struct tn_report_out *report, const struct tn_analysis *analysis,
                     const struct rows *rows)
{
    const struct tn_call_rows how = {.put = calls_put,
                                     .put_json = calls_put_json,
                                     .limit = report->limit,
                                     .min_share = analysis->query->min_share};
    struct tn_call_tree tree;

    if (!tn_call_tree_init(&tree, &analysis->keys)) {
        return false;
    }
    const bool good = tree_fill(&tree, rows);

    if (good && report->json) {
        tn_call_tree_put_json(report->json, &tree, &how);
    } else if (good) {
        tn_text_put_head(report->out, is_at_peak(analysis) ? "#at peak" : "#at instant");
        tn_text_put_head(report->out, "#at end#allocated    blocks      life   share  calls\n");
        tn_call_tree_put(report->out, &tree, &how);
    }
    tn_call_tree_fini(&tree);
    return good;
}

/* ---- devices ---- */

/* What of the totals a selection does not take. */
static void left_out_put(struct tn_text_out *out, const struct tn_analysis *analysis,
                         const struct tn_time_point *at)
{
    if (tn_analysis_is_part(analysis)) {
        tn_text_put_size(out, (double)at->left_out);
        tn_text_put_size(out, (double)analysis->timeline->end.left_out);
        tn_text_puts(out, "  left out of those in use\n");
    }
}

/* False when host memory is missing. */
static bool device_write(const struct tn_report_out *report, const struct tn_analysis *analysis,
                         const struct tn_time_point *at, const struct rows *rows)
{
    bool good = true;
    const struct tn_timeline *timeline = analysis->timeline;
    const size_t limit = report->limit < rows->vec.count ? (size_t)report->limit : rows->vec.count;

    if (report->json) {
        tn_json_open_object(report->json, NULL);
        tn_json_signed(report->json, "device", timeline->device);
        tn_analysis_put_selection_json(report->json, analysis);
        tn_json_open_object(report->json, "instant");
        tn_time_point_put_json(report->json, analysis, at);
        tn_json_close(report->json);
        rows_put_json(report, analysis, rows, limit);
        good = !analysis->query->tree || tree_put(report, analysis, rows);
        tn_json_close(report->json);
    } else {
        tn_text_printf(report->out, "device %" PRId64 ": %" PRIu64 " entries\n", timeline->device,
                       timeline->trace->count);
        tn_analysis_put_selection(report->out, analysis);
        if (analysis->query->tree) {
            good = tree_put(report, analysis, rows);
        } else {
            rows_put(report, analysis, rows, limit);
        }
        left_out_put(report->out, analysis, at);
    }
    return good;
}

static enum tarn_status device_put(const struct tn_report_out *report,
                                   const struct tn_analysis *analysis, struct tarn_error *error)
{
    struct rows rows = {.total = {.peak = 0}};
    struct tn_time_point at;
    enum tarn_status status =
        tn_analysis_time_point(analysis, &analysis->query->selection.at, TARN_AT_PEAK, &at, error);

    if (status) {
        return status;
    }
    tn_vec_init(&rows.vec, sizeof(struct row));
    if (!rows_fill(&rows, analysis, &at, report->options->order) ||
        !device_write(report, analysis, &at, &rows)) {
        status = TARN_ERR_HOST_MEMORY;
    }
    tn_map_fini(&rows.numbers);
    tn_vec_fini(&rows.vec);
    return status;
}

enum tarn_status tarn_report_top(const struct tarn_snapshot *snapshot,
                                 const struct tarn_report_options *options,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_report_traces(snapshot, options, "tarn.top/1", device_put, writer, error);
}
