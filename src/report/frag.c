/* SPDX-License-Identifier: MIT */
/*
 * Where reserved memory is lost: inside blocks (rounding, and remainders that were not split off),
 * and between them, in free pieces beside blocks; the same over the trace; and the blocks that
 * keep nearly empty segments from being released: a segment counts as pinned when its blocks take
 * at most an eighth of it.
 *
 *     reserved = requested + rounding + by_settings + slack + free
 *     free = releasable + stuck + elsewhere
 * at every time point, for blocks in segments; blocks in none are counted separately.
 */
#include "base/order.h"
#include "report/label_apart.h"
#include "report/pools.h"
#include "report/reports.h"

enum {
    PARTS = 10,     /* of the trace, for the table over time */
    PINNED_PART = 8 /* blocks take at most one in so many bytes */
};

/* Bytes requested of the blocks of a layout that lie in its segments. */
static uint64_t requested_sum(const struct tn_layout *layout)
{
    const struct tn_layout_block *blocks = layout->blocks.items;
    uint64_t requested = 0;

    for (size_t i = 0; i < layout->blocks.count; i++) {
        requested += blocks[i].lifetime->size;
    }
    return requested - layout->outside;
}

static bool row_is_private(const struct tn_layout_row *row)
{
    return row->pool.id[0] != 0 || row->pool.id[1] != 0;
}

/* The stream with the most memory reserved in the default pool. Rows of a stream are adjacent. */
static uint64_t main_stream(const struct tn_layout *layout)
{
    const struct tn_layout_row *rows = layout->rows.items;
    uint64_t stream = 0;
    uint64_t most = 0;
    uint64_t reserved = 0;

    for (size_t i = 0; i < layout->rows.count && !row_is_private(&rows[i]); i++) {
        reserved = i > 0 && rows[i - 1].stream == rows[i].stream ? reserved : 0;
        reserved += rows[i].reserved;
        if (reserved > most) {
            most = reserved;
            stream = rows[i].stream;
        }
    }
    return stream;
}

/* Divides what is free into what can go back at once, what is stuck beside blocks, and what other
 * requests than those of the main stream have. A private pool keeps its segments while it lives. */
static void free_divide(const struct tn_layout *layout, struct tarn_frag_state *state)
{
    const struct tn_layout_row *rows = layout->rows.items;
    const uint64_t stream = main_stream(layout);

    for (size_t i = 0; i < layout->rows.count; i++) {
        const struct tn_layout_row *row = &rows[i];
        const uint64_t stuck = row->free - row->releasable;

        if (row_is_private(row)) {
            state->elsewhere += row->free;
            continue;
        }
        state->releasable += row->releasable;
        if (row->stream != stream) {
            state->elsewhere += stuck;
            continue;
        }
        state->stuck += stuck;
        state->stuck_pieces += row->stuck_runs;
        state->largest_stuck =
            row->largest_stuck > state->largest_stuck ? row->largest_stuck : state->largest_stuck;
    }
    state->scattered = state->stuck - state->largest_stuck;
}

static struct tarn_frag_state state_of(const struct tn_layout *layout, uint64_t event)
{
    const struct tn_layout_row *total = &layout->total;
    const uint64_t requested = requested_sum(layout);
    const uint64_t unrounded = total->used - total->by_settings;
    struct tarn_frag_state state = {.event = event,
                                    .reserved = total->reserved,
                                    .by_settings = total->by_settings,
                                    .slack = total->slack,
                                    .free = total->free,
                                    .largest_free = total->largest_free,
                                    .free_pieces = total->free_runs};

    /* In a damaged file blocks overlap, or stick out of their segments. */
    state.requested = requested < unrounded ? requested : unrounded;
    state.rounding = unrounded - state.requested;
    free_divide(layout, &state);
    return state;
}

/* ---- pinned segments ---- */

static void pin_sum(struct tarn_pinned_segment *into, const struct tarn_pinned_segment *from)
{
    into->unused += from->unused;
    into->used += from->used;
    into->blocks += from->blocks;
}

static bool pin_add(struct tn_vec *pins, const struct tn_analysis *analysis,
                    const struct tn_layout *layout, const struct tn_layout_piece *piece)
{
    const struct tn_layout_block *blocks =
        (const struct tn_layout_block *)layout->blocks.items + piece->first;
    const struct tn_lifetime *largest = blocks[0].lifetime;
    struct tarn_pinned_segment *pin = tn_vec_push(pins);

    if (!pin) {
        return false;
    }
    for (size_t i = 1; i < piece->count; i++) {
        largest = blocks[i].lifetime->size > largest->size ? blocks[i].lifetime : largest;
    }
    *pin = (struct tarn_pinned_segment){.address = piece->address,
                                        .unused = piece->row.reserved - piece->row.used,
                                        .used = piece->row.used,
                                        .blocks = piece->count};
    return tn_group_key_find(&analysis->keys, largest, &pin->largest_block.key);
}

static int pin_compare(const void *left, const void *right)
{
    const struct tarn_pinned_segment *a = left;
    const struct tarn_pinned_segment *b = right;
    const int order = tn_order(b->unused, a->unused);

    return order ? order : tn_order(a->address, b->address);
}

static bool pins_collect(struct tn_row_set *pins, const struct tn_analysis *analysis,
                         const struct tn_layout *layout)
{
    const struct tn_layout_piece *pieces = layout->pieces.items;

    for (size_t i = 0; i < layout->pieces.count; i++) {
        const struct tn_layout_piece *piece = &pieces[i];

        if (piece->count > 0 && piece->row.used <= piece->row.reserved / PINNED_PART &&
            !pin_add(&pins->rows, analysis, layout, piece)) {
            return false;
        }
    }
    tn_row_set_sort(pins, pin_compare);
    return true;
}

static bool pins_make(const struct tn_report *report, const struct tn_analysis *analysis,
                      const struct tn_layout *layout, struct tarn_frag_result *frag)
{
    struct tn_row_set pins;

    tn_row_set_init(&pins, sizeof(struct tarn_pinned_segment), 0, 0);
    bool good = pins_collect(&pins, analysis, layout);

    if (good) {
        const struct tarn_pinned_segment *rows = pins.rows.items;

        frag->row_count = tn_report_rows(report, pins.rows.count);
        frag->other_count = pins.rows.count - frag->row_count;
        for (size_t i = 0; i < pins.rows.count; i++) {
            pin_sum(&frag->total, &rows[i]);
            if (i >= frag->row_count) {
                pin_sum(&frag->others, &rows[i]);
            }
        }
        frag->rows = tn_rows_name(report->result, &pins, frag->row_count, &analysis->keys);
        good = frag->rows != NULL;
    }
    tn_row_set_fini(&pins);
    return good;
}

/* ---- over time ---- */

static bool state_make(struct tn_layout_walk *walk, uint64_t event, struct tarn_frag_state *state)
{
    struct tn_layout layout;

    if (!tn_layout_collect(&layout, walk, event)) {
        return false;
    }
    *state = state_of(&layout, event);
    tn_layout_fini(&layout);
    return true;
}

/* Right after the last event of each part of the selected events; of a short trace after each
 * event. */
static bool states_make(const struct tn_report *report, const struct tn_analysis *analysis,
                        struct tn_layout_walk *walk, struct tarn_frag_result *frag)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const uint64_t length = timeline->limit - timeline->first;
    const size_t count = length < PARTS ? (size_t)length : PARTS;
    struct tarn_frag_state *states =
        tn_arena_alloc_array(tn_result_arena(report->result), count, sizeof *states);

    for (size_t i = count; states && i > 0; i--) {
        const uint64_t event =
            timeline->first + (uint64_t)((double)length * (double)i / (double)count) - 1;

        if (!state_make(walk, event, &states[i - 1])) {
            return false;
        }
    }
    frag->states = states;
    frag->state_count = count;
    return states != NULL;
}

/* ---- devices ---- */

static bool frag_make(const struct tn_report *report, const struct tn_analysis *analysis,
                      struct tn_layout_walk *walk, uint64_t event, struct tarn_frag_result *frag)
{
    struct tn_layout layout;

    if (!tn_layout_collect(&layout, walk, event)) {
        return false;
    }
    frag->state = state_of(&layout, event);
    frag->outside = layout.outside;
    frag->pool_count = layout.rows.count;
    frag->pools = tn_pool_rows_make(report->result, &layout);
    const bool good = frag->pools && pins_make(report, analysis, &layout, frag);

    tn_layout_fini(&layout);
    return good && (report->for_summary || states_make(report, analysis, walk, frag));
}

enum tarn_status tn_frag_compute(const struct tn_report *report, const struct tn_analysis *analysis,
                                 void *result_out, struct tarn_error *error)
{
    struct tarn_frag_result *frag = result_out;
    struct tn_layout_walk walk;
    struct tn_time_point at;
    const enum tarn_status status = tn_analysis_time_point(analysis, &analysis->query->selection.at,
                                                           TARN_AT_RESERVED_PEAK, &at, error);

    if (status) {
        return status;
    }
    at = tn_timeline_at(&analysis->whole, at.entry);
    frag->at = tn_result_time_point(&at);
    frag->is_of_all_blocks = tn_analysis_limits_blocks(analysis);
    if (!tn_layout_walk_init(&walk, &analysis->whole)) {
        return TARN_ERR_HOST_MEMORY;
    }
    const bool good = frag_make(report, analysis, &walk, at.entry, frag);

    tn_layout_walk_fini(&walk);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}
