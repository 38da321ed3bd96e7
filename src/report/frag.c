/* SPDX-License-Identifier: MIT */
/*
 * Where reserved memory is lost: inside blocks (rounding, and remainders too small to split off),
 * and between them, in free pieces that are too small; the same over the trace; and the blocks that
 * keep nearly empty segments from being released: a segment counts as pinned when its blocks take
 * at most an eighth of it.
 *
 *     reserved = requested + rounding + slack + free
 * at every time point, for blocks in segments; blocks in none are counted separately.
 */
#include "base/order.h"
#include "report/pools.h"
#include "report/reports.h"

enum {
    PARTS = 10,     /* of the trace, for the table over time */
    PINNED_PART = 8 /* blocks take at most one in so many bytes */
};

/* Bytes requested of the blocks of a layout that lie in its segments. */
static uint64_t requested_sum(const struct tn_layout *layout)
{
    const struct tn_lifetime *const *lifetimes = layout->lifetimes.items;
    uint64_t requested = 0;

    for (size_t i = 0; i < layout->lifetimes.count; i++) {
        requested += lifetimes[i]->size;
    }
    return requested - layout->outside;
}

static struct tarn_frag_state state_of(const struct tn_layout *layout, uint64_t event)
{
    const struct tn_layout_row *total = &layout->total;
    const uint64_t requested = requested_sum(layout);
    struct tarn_frag_state state = {.event = event,
                                    .reserved = total->reserved,
                                    .slack = total->slack,
                                    .free = total->free,
                                    .largest_free = total->largest_free,
                                    .scattered = total->free - total->largest_free,
                                    .free_pieces = total->free_runs};

    /* In a damaged file blocks overlap, or stick out of their segments. */
    state.requested = requested < total->used ? requested : total->used;
    state.rounding = total->used - state.requested;
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
    const struct tn_lifetime *const *lifetimes =
        (const struct tn_lifetime *const *)layout->lifetimes.items + piece->first;
    const struct tn_lifetime *largest = lifetimes[0];
    struct tarn_pinned_segment *pin = tn_vec_push(pins);

    if (!pin) {
        return false;
    }
    for (size_t i = 1; i < piece->count; i++) {
        largest = lifetimes[i]->size > largest->size ? lifetimes[i] : largest;
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

/* Right after the last event of each part of the selected events; of a short trace after each
 * event. */
static bool states_make(const struct tn_report *report, const struct tn_analysis *analysis,
                        struct tarn_frag_result *frag)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const uint64_t length = timeline->limit - timeline->first;
    const size_t count = length < PARTS ? (size_t)length : PARTS;
    struct tarn_frag_state *states =
        tn_arena_alloc_array(tn_result_arena(report->result), count, sizeof *states);

    for (size_t i = 0; states && i < count; i++) {
        const uint64_t event =
            timeline->first + (uint64_t)((double)length * (double)(i + 1) / (double)count) - 1;
        struct tn_layout layout;

        if (!tn_layout_collect(&layout, &analysis->whole, event)) {
            return false;
        }
        states[i] = state_of(&layout, event);
        tn_layout_fini(&layout);
    }
    frag->states = states;
    frag->state_count = count;
    return states != NULL;
}

/* ---- devices ---- */

enum tarn_status tn_frag_compute(const struct tn_report *report, const struct tn_analysis *analysis,
                                 void *result_out, struct tarn_error *error)
{
    struct tarn_frag_result *frag = result_out;
    struct tn_time_point at;
    struct tn_layout layout;
    const enum tarn_status status = tn_analysis_time_point(analysis, &analysis->query->selection.at,
                                                           TARN_AT_RESERVED_PEAK, &at, error);

    if (status) {
        return status;
    }
    at = tn_timeline_at(&analysis->whole, at.entry);
    if (!tn_layout_collect(&layout, &analysis->whole, at.entry)) {
        return TARN_ERR_HOST_MEMORY;
    }
    frag->at = tn_result_time_point(&at);
    frag->state = state_of(&layout, at.entry);
    frag->outside = layout.outside;
    frag->is_of_all_blocks = tn_analysis_limits_blocks(analysis);
    frag->pool_count = layout.rows.count;
    frag->pools = tn_pool_rows_make(report->result, &layout);
    const bool good = frag->pools && pins_make(report, analysis, &layout, frag) &&
                      states_make(report, analysis, frag);

    tn_layout_fini(&layout);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}
