/* SPDX-License-Identifier: MIT */
/*
 * Where reserved memory that nobody uses is lost: inside of blocks (rounding, and what is too
 * little to split off), and between them, in pieces that are too small. With it what it was like
 * over the trace, and the blocks that keep segments from being given back that are otherwise empty:
 * a segment counts as pinned when its blocks take an eighth of it at most.
 *
 *     reserved = asked for + rounding + slack + free
 * holds for each moment, where blocks lie in segments; what lies in none is said apart.
 */
#include "tarn/report.h"

#include "analysis/group.h"
#include "analysis/layout.h"
#include "base/size_text.h"
#include "report/report_out.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PARTS = 10,     /* of the trace, for the table over time */
    PINNED_PART = 8 /* blocks take at most one in so many bytes */
};

/* One moment in numbers. */
struct state {
    uint64_t entry;
    uint64_t reserved;
    uint64_t asked;    /* of blocks in segments */
    uint64_t rounding; /* blocks are multiples of 512 */
    uint64_t slack;
    uint64_t free;
    uint64_t largest;
    uint64_t runs;
};

/* A segment that is nearly empty. */
struct pin {
    uint64_t address;
    uint64_t free; /* and slack: what could be used otherwise */
    uint64_t used;
    uint64_t blocks;
    uint64_t key; /* of the largest of its blocks */
};

struct pins {
    struct tn_vec rows; /* struct pin, most free first */
    struct pin total;
};

/* Bytes asked for of the blocks of a layout that lie in its segments. */
static uint64_t asked_sum(const struct tn_layout *layout)
{
    const struct tn_lifetime *const *lifetimes = layout->lifetimes.items;
    uint64_t asked = 0;

    for (size_t i = 0; i < layout->lifetimes.count; i++) {
        asked += lifetimes[i]->size;
    }
    return asked - layout->outside;
}

static struct state state_of(const struct tn_layout *layout, uint64_t entry)
{
    const struct tn_layout_row *total = &layout->total;
    struct state state = {.entry = entry,
                          .reserved = total->reserved,
                          .asked = asked_sum(layout),
                          .slack = total->slack,
                          .free = total->free,
                          .largest = total->largest_free,
                          .runs = total->free_runs};

    /* In a damaged file blocks overlap, or stick out of their segments. */
    state.asked = state.asked < total->used ? state.asked : total->used;
    state.rounding = total->used - state.asked;
    return state;
}

/* How much of what is free is not in the largest piece. */
static double external_percent(const struct state *state)
{
    return state->free > 0 ? (1 - (double)state->largest / (double)state->free) * 100 : 0.0;
}

static double percent(uint64_t part, uint64_t all)
{
    return all > 0 ? (double)part / (double)all * 100 : 0.0;
}

/* ---- pins ---- */

static bool pin_add(struct pins *pins, const struct tn_analysis *analysis,
                    const struct tn_layout *layout, const struct tn_layout_piece *piece)
{
    const struct tn_lifetime *const *lifetimes =
        (const struct tn_lifetime *const *)layout->lifetimes.items + piece->first;
    const struct tn_lifetime *largest = lifetimes[0];
    struct pin *pin = tn_vec_push(&pins->rows);

    if (!pin) {
        return false;
    }
    for (size_t i = 1; i < piece->count; i++) {
        largest = lifetimes[i]->size > largest->size ? lifetimes[i] : largest;
    }
    *pin = (struct pin){.address = piece->address,
                        .free = piece->row.reserved - piece->row.used,
                        .used = piece->row.used,
                        .blocks = piece->count};
    pins->total.free += pin->free;
    pins->total.used += pin->used;
    pins->total.blocks += pin->blocks;
    return tn_group_key_find(&analysis->keys, largest, &pin->key);
}

static int pin_compare(const void *left, const void *right)
{
    const struct pin *a = left;
    const struct pin *b = right;

    if (a->free != b->free) {
        return a->free > b->free ? -1 : 1;
    }
    return (a->address > b->address) - (a->address < b->address);
}

static bool pins_collect(struct pins *pins, const struct tn_analysis *analysis,
                         const struct tn_layout *layout)
{
    const struct tn_layout_piece *pieces = layout->pieces.items;

    for (size_t i = 0; i < layout->pieces.count; i++) {
        const struct tn_layout_piece *piece = &pieces[i];

        if (piece->count > 0 && piece->row.used <= piece->row.reserved / PINNED_PART &&
            !pin_add(pins, analysis, layout, piece)) {
            return false;
        }
    }
    if (pins->rows.count > 0) {
        qsort(pins->rows.items, pins->rows.count, sizeof(struct pin), pin_compare);
    }
    return true;
}

static struct pin others_sum(const struct pins *pins, size_t limit)
{
    const struct pin *rows = pins->rows.items;
    struct pin others = {.free = 0};

    for (size_t i = limit; i < pins->rows.count; i++) {
        others.free += rows[i].free;
        others.used += rows[i].used;
        others.blocks += rows[i].blocks;
    }
    return others;
}

/* ---- over time ---- */

/* Right after the last entry of each part of what is looked at; of a short trace after each
 * entry. */
static bool states_collect(const struct tn_analysis *analysis, struct state *states,
                           size_t *count_out)
{
    const struct tn_timeline *timeline = analysis->timeline;
    const uint64_t length = timeline->limit - timeline->first;
    const size_t count = length < PARTS ? (size_t)length : PARTS;

    for (size_t i = 0; i < count; i++) {
        const uint64_t entry =
            timeline->first + (uint64_t)((double)length * (double)(i + 1) / (double)count) - 1;
        struct tn_layout layout;

        if (!tn_layout_collect(&layout, &analysis->whole, entry)) {
            return false;
        }
        states[i] = state_of(&layout, entry);
        tn_layout_fini(&layout);
    }
    *count_out = count;
    return true;
}

/* ---- text ---- */

static void states_put(struct tn_text_out *out, const struct state *states, size_t count)
{
    tn_text_puts(out, "\nover time\n");
    tn_text_put_head(out, "       entry#reserved#asked for#rounding#slack#free#largest"
                          "  pieces  external\n");
    for (size_t i = 0; i < count; i++) {
        const struct state *state = &states[i];

        tn_text_printf(out, "  %10" PRIu64, state->entry);
        tn_text_put_size(out, (double)state->reserved);
        tn_text_put_size(out, (double)state->asked);
        tn_text_put_size(out, (double)state->rounding);
        tn_text_put_size(out, (double)state->slack);
        tn_text_put_size(out, (double)state->free);
        tn_text_put_size(out, (double)state->largest);
        tn_text_printf(out, "  %6" PRIu64 "  %7.1f%%\n", state->runs, external_percent(state));
    }
}

static void state_line(struct tn_text_out *out, const struct state *state, uint64_t bytes,
                       const char *what)
{
    tn_text_put_size(out, (double)bytes);
    tn_text_printf(out, "  %5.1f%%  %s\n", percent(bytes, state->reserved), what);
}

static void state_put(struct tn_text_out *out, const struct state *state, uint64_t outside)
{
    state_line(out, state, state->asked, "asked for by blocks in use");
    state_line(out, state, state->rounding, "internal: rounded up to 512 bytes");
    state_line(out, state, state->slack, "internal: behind blocks, too little to split off");
    state_line(out, state, state->free, "free in segments");
    state_line(out, state, state->reserved, "reserved");
    tn_text_printf(out,
                   "  largest free piece: %s of %" PRIu64 ", so %.1f%% of what is free is "
                   "fragmented\n",
                   tn_text_size(out, (double)state->largest).text, state->runs,
                   external_percent(state));
    if (outside > 0) {
        tn_text_printf(out, "  %s more in use in no segment that the file knows\n",
                       tn_text_size(out, (double)outside).text);
    }
}

static void layout_put(struct tn_text_out *out, const struct tn_layout *layout)
{
    const struct tn_layout_row *rows = layout->rows.items;

    tn_text_put_head(out, "\n#reserved#free#largest  pieces  external  pool and stream\n");
    for (size_t i = 0; i < layout->rows.count; i++) {
        const struct state state = {.free = rows[i].free, .largest = rows[i].largest_free};

        tn_text_put_size(out, (double)rows[i].reserved);
        tn_text_put_size(out, (double)rows[i].free);
        tn_text_put_size(out, (double)rows[i].largest_free);
        tn_text_printf(out, "  %6" PRIu64 "  %7.1f%%  %s", rows[i].free_runs,
                       external_percent(&state), rows[i].is_large ? "large" : "small");
        if (rows[i].pool.id[0] != 0 || rows[i].pool.id[1] != 0) {
            tn_text_printf(out, " of private (%" PRIu64 ", %" PRIu64 ")", rows[i].pool.id[0],
                           rows[i].pool.id[1]);
        }
        tn_text_printf(out, ", stream %" PRIu64 "\n", rows[i].stream);
    }
}

static void pin_put(struct tn_text_out *out, const struct pin *pin)
{
    tn_text_put_size(out, (double)pin->free);
    tn_text_put_size(out, (double)pin->used);
    tn_text_printf(out, "  %8" PRIu64 "  ", pin->blocks);
}

static void pins_put(struct tn_text_out *out, const struct tn_analysis *analysis,
                     const struct pins *pins, size_t limit)
{
    const struct pin *rows = pins->rows.items;

    if (pins->rows.count == 0) {
        tn_text_puts(out, "\nno segment is pinned by few small blocks\n");
        return;
    }
    tn_text_printf(out, "\npinned: %zu segments whose blocks take an eighth of them at most\n",
                   pins->rows.count);
    tn_text_put_head(out, "#unused#used    blocks  segment             largest block ");
    tn_text_printf(out, "%s\n", tn_grouping_heading(analysis->keys.by));
    for (size_t i = 0; i < limit; i++) {
        pin_put(out, &rows[i]);
        tn_text_printf(out, "0x%-16" PRIx64 "  ", rows[i].address);
        tn_group_key_put(out, &analysis->keys, rows[i].key);
        tn_text_putc(out, '\n');
    }
    if (limit < pins->rows.count) {
        const struct pin others = others_sum(pins, limit);

        pin_put(out, &others);
        tn_text_printf(out, "others (%zu segments)\n", pins->rows.count - limit);
    }
    pin_put(out, &pins->total);
    tn_text_puts(out, "total\n");
}

/* ---- JSON ---- */

static void state_members(struct tn_json_text *json, const struct state *state)
{
    tn_json_number(json, "reserved_bytes", state->reserved);
    tn_json_number(json, "requested_bytes", state->asked);
    tn_json_number(json, "rounding_bytes", state->rounding);
    tn_json_number(json, "slack_bytes", state->slack);
    tn_json_number(json, "free_bytes", state->free);
    tn_json_number(json, "largest_free_bytes", state->largest);
    tn_json_number(json, "free_pieces", state->runs);
}

static void pin_members(struct tn_json_text *json, const struct pin *pin)
{
    tn_json_number(json, "unused_bytes", pin->free);
    tn_json_number(json, "used_bytes", pin->used);
    tn_json_number(json, "blocks", pin->blocks);
}

static void pins_put_json(struct tn_json_text *json, const struct tn_analysis *analysis,
                          const struct pins *pins, size_t limit)
{
    const struct pin *rows = pins->rows.items;
    const struct pin others = others_sum(pins, limit);

    tn_json_open_object(json, "pinned");
    tn_json_open_array(json, "segments");
    for (size_t i = 0; i < limit; i++) {
        tn_json_open_object(json, NULL);
        tn_json_address(json, "address", rows[i].address);
        pin_members(json, &rows[i]);
        tn_json_open_object(json, "largest_block");
        tn_group_key_put_json(json, &analysis->keys, rows[i].key);
        tn_json_close(json);
        tn_json_close(json);
    }
    tn_json_close(json);
    tn_json_open_object(json, "others");
    tn_json_number(json, "segments", pins->rows.count - limit);
    pin_members(json, &others);
    tn_json_close(json);
    tn_json_open_object(json, "total");
    pin_members(json, &pins->total);
    tn_json_close(json);
    tn_json_close(json);
}

static void states_put_json(struct tn_json_text *json, const struct state *states, size_t count)
{
    tn_json_open_array(json, "over_time");
    for (size_t i = 0; i < count; i++) {
        tn_json_open_object(json, NULL);
        tn_json_number(json, "entry", states[i].entry);
        state_members(json, &states[i]);
        tn_json_close(json);
    }
    tn_json_close(json);
}

/* ---- devices ---- */

/* All that is said of one device. */
struct frag {
    struct tn_time_point moment;
    struct tn_layout layout;
    struct pins pins;
    struct state states[PARTS];
    size_t state_count;
};

static void frag_put(const struct tn_report_out *report, const struct tn_analysis *analysis,
                     const struct frag *frag)
{
    const struct state state = state_of(&frag->layout, frag->moment.entry);
    const size_t limit =
        report->limit < frag->pins.rows.count ? (size_t)report->limit : frag->pins.rows.count;

    if (report->json) {
        struct tn_json_text *json = report->json;

        tn_json_open_object(json, NULL);
        tn_json_signed(json, "device", analysis->timeline->device);
        tn_analysis_put_selection_json(json, analysis);
        tn_json_open_object(json, "instant");
        if (frag->moment.entry == TN_NEVER) {
            tn_json_null(json, "entry");
        } else {
            tn_json_number(json, "entry", frag->moment.entry);
        }
        state_members(json, &state);
        tn_json_number(json, "outside_bytes", frag->layout.outside);
        tn_json_close(json);
        pins_put_json(json, analysis, &frag->pins, limit);
        states_put_json(json, frag->states, frag->state_count);
        tn_json_close(json);
        return;
    }
    tn_text_printf(report->out, "device %" PRId64 "\n", analysis->timeline->device);
    tn_analysis_put_selection(report->out, analysis);
    if (tn_analysis_limits_blocks(analysis)) {
        tn_text_puts(report->out, "segments are shared by blocks, so these are of all blocks in "
                                  "that part of the trace\n");
    }
    tn_text_putc(report->out, '\n');
    tn_time_point_put(report->out, analysis, "then", &frag->moment);
    state_put(report->out, &state, frag->layout.outside);
    layout_put(report->out, &frag->layout);
    pins_put(report->out, analysis, &frag->pins, limit);
    states_put(report->out, frag->states, frag->state_count);
}

static enum tarn_status device_put(const struct tn_report_out *report,
                                   const struct tn_analysis *analysis, struct tarn_error *error)
{
    struct frag frag = {.state_count = 0};
    const enum tarn_status status = tn_analysis_time_point(
        analysis, &analysis->query->selection.at, TARN_AT_RESERVED_PEAK, &frag.moment, error);

    if (status) {
        return status;
    }
    frag.moment = tn_timeline_at(&analysis->whole, frag.moment.entry);
    if (!tn_layout_collect(&frag.layout, &analysis->whole, frag.moment.entry)) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_vec_init(&frag.pins.rows, sizeof(struct pin));
    const bool good = pins_collect(&frag.pins, analysis, &frag.layout) &&
                      states_collect(analysis, frag.states, &frag.state_count);

    if (good) {
        frag_put(report, analysis, &frag);
    }
    tn_vec_fini(&frag.pins.rows);
    tn_layout_fini(&frag.layout);
    return good ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

enum tarn_status tarn_report_frag(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_report_traces(snapshot, options, "tarn.frag/1", device_put, writer, error);
}
