/* SPDX-License-Identifier: MIT */
#include "analysis/layout.h"

#include "analysis/live.h"
#include "analysis/page_policy.h"
#include "base/assertion.h"
#include "base/keyed_sort.h"

#include <stdlib.h>

/* Walks the blocks of one piece. */
struct filling {
    struct tn_layout_piece *piece;
    struct tn_layout_row *row; /* of the piece */
    const struct tn_split_rule *rule;
    uint64_t page; /* bytes of those of the piece, if it is expandable */
    uint64_t entry;
    uint64_t at; /* end of the last block */
};

static void stuck_add(struct tn_layout_row *row, uint64_t bytes)
{
    if (bytes > 0) {
        row->stuck_runs++;
        row->largest_stuck = bytes > row->largest_stuck ? bytes : row->largest_stuck;
    }
}

/* The free bytes [start, end) of a piece that has blocks. A piece begins with a page. */
static void stuck_find(struct filling *filling, uint64_t start, uint64_t end)
{
    const uint64_t page = filling->page;
    const uint64_t from = start - filling->piece->address;
    const uint64_t to = end - filling->piece->address;
    const uint64_t first = (from + page - 1) / page * page;
    const uint64_t limit = to / page * page;

    if (!filling->piece->is_expandable || first >= limit) {
        stuck_add(filling->row, to - from);
        return;
    }
    filling->row->releasable += limit - first;
    stuck_add(filling->row, first - from);
    stuck_add(filling->row, to - limit);
}

/* The bytes up to `end`, which no block has. */
static void gap_add(struct filling *filling, uint64_t end)
{
    const uint64_t gap = end - filling->at;

    if (gap == 0) {
        return;
    }
    filling->row->free += gap;
    filling->row->free_runs++;
    if (gap > filling->row->largest_free) {
        filling->row->largest_free = gap;
    }
    if (filling->piece->count > 0) {
        stuck_find(filling, filling->at, end);
    } else {
        filling->row->releasable += gap;
    }
}

static bool is_waiting(const struct tn_lifetime *lifetime, uint64_t entry)
{
    return lifetime->requested != TN_NEVER && entry != TN_NEVER && lifetime->requested <= entry;
}

/* Bytes of [start, end) in [from, to). */
static uint64_t overlap(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
    const uint64_t first = start > from ? start : from;
    const uint64_t limit = end < to ? end : to;

    return limit > first ? limit - first : 0;
}

/* Bytes that another block has already, which a damaged file may say, count once. */
static void block_add(struct filling *filling, const struct tn_layout_block *block)
{
    const struct tn_lifetime *lifetime = block->lifetime;
    const uint64_t address = lifetime->address;
    const uint64_t rounded = tn_range_end(address, tn_split_rounded(filling->rule, lifetime->size));
    const uint64_t by_unit = tn_range_end(address, tn_block_round_to_unit(lifetime->size));
    struct tn_layout_row *row = filling->row;

    if (address > filling->at) {
        gap_add(filling, address);
        filling->at = address;
    }
    if (block->end <= filling->at) {
        return;
    }
    const uint64_t used = overlap(address, rounded, filling->at, block->end);

    row->used += used;
    row->slack += block->end - filling->at - used;
    row->by_settings += overlap(by_unit, rounded, filling->at, block->end);
    row->waiting += is_waiting(lifetime, filling->entry) ? used : 0;
    filling->at = block->end;
}

/* Whether the ranges are parts of one mapped range. */
static bool continues(const struct tn_segment_range *a, const struct tn_segment_range *b)
{
    return a->is_expandable && b->is_expandable && a->end == b->start && a->stream == b->stream;
}

/* The last of the ranges that are one piece. */
static const struct tn_segment_range *piece_last(const struct tn_segment_range *range,
                                                 struct tn_layout_row *row)
{
    const struct tn_segment_range *next = tn_segment_walk_next(range);

    row->segments = 1;
    for (; next && continues(range, next); next = tn_segment_walk_next(range)) {
        range = next;
        row->segments++;
    }
    return range;
}

/* Ends of the blocks from number `first` on that begin before `end`; returns their number. */
static size_t blocks_end(const struct tn_layout_walk *walk, struct tn_vec *all, size_t first,
                         uint64_t end)
{
    struct tn_layout_block *blocks = all->items;
    size_t i = first;

    for (; i < all->count && blocks[i].lifetime->address < end; i++) {
        const struct tn_lifetime *lifetime = blocks[i].lifetime;
        const uint64_t size =
            tn_block_extent_of(walk->extents, lifetime->start, lifetime->address, lifetime->size);
        const uint64_t next = i + 1 < all->count ? blocks[i + 1].lifetime->address : UINT64_MAX;
        const uint64_t limit = next < end && next > lifetime->address ? next : end;

        blocks[i].end = tn_range_end(lifetime->address, size);
        blocks[i].end = blocks[i].end < limit ? blocks[i].end : limit;
    }
    return i - first;
}

/* Fills a piece that begins with the range; returns the range behind it. */
static const struct tn_segment_range *piece_fill(struct tn_layout *layout,
                                                 struct tn_layout_walk *walk, uint64_t entry,
                                                 const struct tn_segment_range *range,
                                                 struct tn_layout_piece *piece)
{
    struct tn_layout_row *row = &piece->row;
    struct filling filling = {.piece = piece,
                              .row = row,
                              .rule = &walk->extents->rule,
                              .page = tn_model_page(walk->segments.source.model, range->is_large),
                              .entry = entry,
                              .at = range->start};

    *row = (struct tn_layout_row){
        .pool = range->pool, .stream = range->stream, .is_large = range->is_large};
    piece->address = range->start;
    piece->is_expandable = range->is_expandable;
    const bool is_guess = range->given_back != TN_NEVER; /* by its size; its blocks say it */

    range = piece_last(range, row);
    row->reserved = range->end - piece->address;
    piece->count = blocks_end(walk, &layout->blocks, piece->first, range->end);
    if (is_guess && piece->count > 0) {
        const struct tn_layout_block *blocks = layout->blocks.items;
        const uint64_t size = blocks[piece->first].lifetime->size;

        row->is_large = tn_split_rounded(filling.rule, size) > TN_BLOCK_SMALL_MAX;
    }
    for (size_t i = 0; i < piece->count; i++) {
        block_add(&filling, (struct tn_layout_block *)layout->blocks.items + piece->first + i);
    }
    gap_add(&filling, range->end);
    row->whole = row->free == row->reserved ? row->reserved : 0;
    return tn_segment_walk_next(range);
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
    into->by_settings += from->by_settings;
    into->waiting += from->waiting;
    into->slack += from->slack;
    into->free += from->free;
    into->free_runs += from->free_runs;
    into->whole += from->whole;
    into->releasable += from->releasable;
    into->stuck_runs += from->stuck_runs;
    if (from->largest_stuck > into->largest_stuck) {
        into->largest_stuck = from->largest_stuck;
    }
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

static bool pieces_collect(struct tn_layout *layout, struct tn_layout_walk *walk, uint64_t entry)
{
    const struct tn_layout_block *blocks = layout->blocks.items;
    const struct tn_segment_range *range = tn_segment_walk_first(&walk->segments);
    const size_t count = layout->blocks.count;
    size_t next = 0;

    tn_assert(blocks || count == 0);
    while (range) {
        struct tn_layout_row *row = tn_vec_push(&layout->rows);
        struct tn_layout_piece *piece = row ? tn_vec_push(&layout->pieces) : NULL;

        if (!piece) {
            return false;
        }
        for (; next < count && blocks[next].lifetime->address < range->start; next++) {
            layout->outside += blocks[next].lifetime->size;
        }
        piece->first = next;
        range = piece_fill(layout, walk, entry, range, piece);
        next += piece->count;
        *row = piece->row;
    }
    for (; next < count; next++) {
        layout->outside += blocks[next].lifetime->size;
    }
    rows_merge(layout);
    return true;
}

/* Blocks allocated at the entry, by address. */
static bool live_sort(struct tn_vec *sorted, const struct tn_timeline *timeline, uint64_t entry)
{
    struct tn_keyed *keyed;
    struct tn_live live;

    if (!tn_live_init(&live, timeline, entry)) {
        return false;
    }
    bool good = tn_vec_reserve(sorted, live.count);

    keyed = sorted->items;
    for (size_t i = 0; good && i < live.count; i++) {
        keyed[i] = (struct tn_keyed){live.blocks[i]->address, live.blocks[i]};
    }
    sorted->count = good ? live.count : 0;
    good = good && tn_keyed_sort(keyed, sorted->count);
    tn_live_fini(&live);
    return good;
}

static bool blocks_collect(struct tn_layout *layout, const struct tn_timeline *timeline,
                           uint64_t entry)
{
    struct tn_vec sorted; /* struct tn_keyed */

    tn_vec_init(&sorted, sizeof(struct tn_keyed));
    const bool good =
        live_sort(&sorted, timeline, entry) && tn_vec_reserve(&layout->blocks, sorted.count);
    const struct tn_keyed *keyed = sorted.items;
    struct tn_layout_block *blocks = layout->blocks.items;

    for (size_t i = 0; good && i < sorted.count; i++) {
        blocks[i] = (struct tn_layout_block){.lifetime = keyed[i].item};
    }
    layout->blocks.count = good ? sorted.count : 0;
    tn_vec_fini(&sorted);
    return good;
}

/* Goes to right after an entry; segments are walked backwards only. */
static bool segments_go(struct tn_layout_walk *walk, uint64_t entry)
{
    const struct tn_trace_source source = walk->segments.source;

    if (entry != TN_NEVER && walk->segments.next <= entry) {
        tn_segment_walk_fini(&walk->segments);
        if (!tn_segment_walk_init(&walk->segments, &source)) {
            return false;
        }
    }
    return tn_segment_walk_to(&walk->segments, entry);
}

/* Of a layout without blocks. */
static const struct tn_block_extents no_extents = {.rule = {.max_split = 0}};

static bool extents_make(struct tn_layout_walk *walk, const struct tn_layout *layout)
{
    if (layout->blocks.count == 0 || walk->extents != &no_extents) {
        return true;
    }
    if (!tn_block_extents_init(&walk->own_extents, &walk->segments.source)) {
        return false;
    }
    walk->extents = &walk->own_extents;
    return true;
}

bool tn_layout_collect(struct tn_layout *layout, struct tn_layout_walk *walk, uint64_t entry)
{
    *layout = (struct tn_layout){.outside = 0};
    tn_vec_init(&layout->rows, sizeof(struct tn_layout_row));
    tn_vec_init(&layout->pieces, sizeof(struct tn_layout_piece));
    tn_vec_init(&layout->blocks, sizeof(struct tn_layout_block));
    if (segments_go(walk, entry) && blocks_collect(layout, walk->timeline, entry) &&
        extents_make(walk, layout) && pieces_collect(layout, walk, entry)) {
        return true;
    }
    tn_layout_fini(layout);
    return false;
}

void tn_layout_fini(struct tn_layout *layout)
{
    tn_vec_fini(&layout->blocks);
    tn_vec_fini(&layout->pieces);
    tn_vec_fini(&layout->rows);
}

/* ---- walks ---- */

bool tn_layout_walk_init(struct tn_layout_walk *walk, const struct tn_timeline *timeline)
{
    const struct tn_trace_source source = tn_timeline_source(timeline);

    walk->timeline = timeline;
    walk->extents = timeline->extents ? timeline->extents : &no_extents;
    return tn_segment_walk_init(&walk->segments, &source);
}

void tn_layout_walk_fini(struct tn_layout_walk *walk)
{
    tn_segment_walk_fini(&walk->segments);
    if (walk->extents == &walk->own_extents) {
        tn_block_extents_fini(&walk->own_extents);
    }
}

bool tn_layout_collect_at(struct tn_layout *layout, const struct tn_timeline *timeline,
                          uint64_t entry)
{
    struct tn_layout_walk walk;

    if (!tn_layout_walk_init(&walk, timeline)) {
        return false;
    }
    const bool good = tn_layout_collect(layout, &walk, entry);

    tn_layout_walk_fini(&walk);
    return good;
}
