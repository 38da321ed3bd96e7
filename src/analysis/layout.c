/* SPDX-License-Identifier: MIT */
#include "analysis/layout.h"

#include "analysis/segment_walk.h"
#include "analysis/split_rule.h"
#include "base/assertion.h"

#include <stdlib.h>

/* Walks the blocks of one range. */
struct walk {
    struct tn_layout_row *row;
    uint64_t at;                    /* end of the last block */
    const struct tn_lifetime *last; /* it, NULL at the start of the range */
    uint64_t max_split;             /* UINT64_MAX: none */
};

/* The bytes up to `end` are free, or the last block's own. */
static void walk_gap(struct walk *walk, uint64_t end)
{
    const uint64_t gap = end - walk->at;

    if (gap == 0) {
        return;
    }
    if (walk->last && !tn_splits_off(gap, tn_split_rounded(walk->last->size), walk->row->is_large,
                                     walk->max_split)) {
        walk->row->slack += gap;
        return;
    }
    walk->row->free += gap;
    walk->row->free_runs++;
    if (gap > walk->row->largest_free) {
        walk->row->largest_free = gap;
    }
}

static void walk_lifetime(struct walk *walk, const struct tn_lifetime *lifetime, uint64_t range_end,
                          uint64_t entry)
{
    uint64_t end = tn_range_end(lifetime->address, tn_split_rounded(lifetime->size));

    if (lifetime->address > walk->at) {
        walk_gap(walk, lifetime->address);
        walk->at = lifetime->address;
    }
    end = end < range_end ? end : range_end;
    if (end > walk->at) {
        walk->row->used += end - walk->at;
        if (lifetime->requested != TN_NEVER && entry != TN_NEVER && lifetime->requested <= entry) {
            walk->row->waiting += end - walk->at;
        }
        walk->at = end;
    }
    walk->last = lifetime;
}

/* The part of the layout that is one range and those that continue it; returns the range behind
 * them. */
static const struct tn_segment_range *range_walk(const struct tn_segment_range *range,
                                                 struct tn_layout_row *row,
                                                 const struct tn_vec *sorted, size_t *next,
                                                 uint64_t entry, uint64_t max_split)
{
    const struct tn_lifetime *const *lifetimes = sorted->items;
    struct walk walk = {.row = row, .at = range->start, .max_split = max_split};
    const struct tn_segment_range *last = range;

    *row = (struct tn_layout_row){
        .pool = range->pool, .stream = range->stream, .is_large = range->is_large};
    for (const struct tn_segment_range *more = range; more; more = tn_segment_walk_next(more)) {
        if (more != range && !(more->is_expandable && last->is_expandable &&
                               more->start == last->end && more->stream == range->stream)) {
            break;
        }
        last = more;
        row->segments++;
    }
    row->reserved = last->end - range->start;
    for (; *next < sorted->count && lifetimes[*next]->address < last->end; (*next)++) {
        walk_lifetime(&walk, lifetimes[*next], last->end, entry);
    }
    walk_gap(&walk, last->end);
    row->whole = row->free == row->reserved ? row->reserved : 0;
    return tn_segment_walk_next(last);
}

/* ---- rows ---- */

static int row_compare(const void *left, const void *right)
{
    const struct tn_layout_row *a = left;
    const struct tn_layout_row *b = right;
    const uint64_t keys[2][4] = {{a->pool.id[0], a->pool.id[1], a->stream, a->is_large},
                                 {b->pool.id[0], b->pool.id[1], b->stream, b->is_large}};

    for (int i = 0; i < 4; i++) {
        if (keys[0][i] != keys[1][i]) {
            return keys[0][i] < keys[1][i] ? -1 : 1;
        }
    }
    return 0;
}

static void row_add(struct tn_layout_row *into, const struct tn_layout_row *from)
{
    into->segments += from->segments;
    into->reserved += from->reserved;
    into->used += from->used;
    into->waiting += from->waiting;
    into->slack += from->slack;
    into->free += from->free;
    into->free_runs += from->free_runs;
    into->whole += from->whole;
    if (from->largest_free > into->largest_free) {
        into->largest_free = from->largest_free;
    }
}

static void rows_merge(struct tn_layout *layout)
{
    struct tn_layout_row *rows = layout->rows.items;
    size_t kept = 0;

    if (layout->rows.count == 0) {
        return;
    }
    qsort(rows, layout->rows.count, sizeof *rows, row_compare);
    layout->total = (struct tn_layout_row){.segments = 0};
    row_add(&layout->total, &rows[0]);
    for (size_t i = 1; i < layout->rows.count; i++) {
        row_add(&layout->total, &rows[i]);
        if (row_compare(&rows[kept], &rows[i]) == 0) {
            row_add(&rows[kept], &rows[i]);
        } else {
            rows[++kept] = rows[i];
        }
    }
    layout->rows.count = kept + 1;
}

static bool rows_collect(struct tn_layout *layout, const struct tn_segment_walk *segments,
                         const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_vec *sorted = &layout->lifetimes;
    const struct tn_lifetime *const *lifetimes = sorted->items;
    const int64_t setting =
        timeline->model->settings.present ? timeline->model->settings.max_split_size : -1;
    const uint64_t max_split = setting > 0 ? (uint64_t)setting : UINT64_MAX;
    const struct tn_segment_range *range = tn_segment_walk_first(segments);
    const size_t count = sorted->count;
    size_t next = 0;

    tn_assert(lifetimes || count == 0);
    while (range) {
        struct tn_layout_row *row = tn_vec_push(&layout->rows);
        struct tn_layout_piece *piece = row ? tn_vec_push(&layout->pieces) : NULL;

        if (!piece) {
            return false;
        }
        for (; next < count && lifetimes[next]->address < range->start; next++) {
            layout->outside += lifetimes[next]->size;
        }
        piece->address = range->start;
        piece->first = next;
        range = range_walk(range, row, sorted, &next, entry, max_split);
        piece->count = next - piece->first;
        piece->row = *row;
    }
    for (; next < count; next++) {
        layout->outside += lifetimes[next]->size;
    }
    rows_merge(layout);
    return true;
}

bool tn_layout_collect(struct tn_layout *layout, const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_trace_source source = tn_timeline_source(timeline);
    struct tn_segment_walk segments;

    *layout = (struct tn_layout){.outside = 0};
    tn_vec_init(&layout->rows, sizeof(struct tn_layout_row));
    tn_vec_init(&layout->pieces, sizeof(struct tn_layout_piece));
    if (!tn_segment_walk_init(&segments, &source)) {
        return false;
    }
    const bool good = tn_segment_walk_to(&segments, entry) &&
                      tn_timeline_lifetimes_at(timeline, entry, &layout->lifetimes) &&
                      rows_collect(layout, &segments, timeline, entry);

    tn_segment_walk_fini(&segments);
    if (!good) {
        tn_layout_fini(layout);
    }
    return good;
}

void tn_layout_fini(struct tn_layout *layout)
{
    tn_vec_fini(&layout->lifetimes);
    tn_vec_fini(&layout->pieces);
    tn_vec_fini(&layout->rows);
}
