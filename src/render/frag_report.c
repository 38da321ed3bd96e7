/* SPDX-License-Identifier: MIT */
/* `tarn frag`: the parts of reserved memory, then and over the trace, pools and pinned segments. */
#include "base/plural.h"
#include "render/document.h"
#include "render/pools_table.h"

#include <inttypes.h>

/* ---- time points ---- */

#define AT(member) .at = offsetof(struct tarn_frag_state, member)
#define OF(member) .of = offsetof(struct tarn_frag_state, member)

static const struct tn_row_column state_columns[] = {
    {"event", "event", TN_ROW_EVENT, 10, AT(event)},
    {"reserved_bytes", "reserved", TN_ROW_SIZE, 0, AT(reserved)},
    {"requested_bytes", "requested", TN_ROW_SIZE, 0, AT(requested)},
    {"rounding_bytes", "rounding", TN_ROW_SIZE, 0, AT(rounding), .is_spare = true},
    {"rounded_by_settings_bytes", NULL, TN_ROW_SIZE, 0, AT(by_settings)},
    {"slack_bytes", "slack", TN_ROW_SIZE, 0, AT(slack), .is_spare = true},
    {"free_bytes", "free", TN_ROW_SIZE, 0, AT(free)},
    {"largest_free_bytes", NULL, TN_ROW_SIZE, 0, AT(largest_free)},
    {"free_pieces", NULL, TN_ROW_COUNT, 6, AT(free_pieces)},
    {"releasable_bytes", NULL, TN_ROW_SIZE, 0, AT(releasable)},
    {"stuck_bytes", "stuck", TN_ROW_SIZE, 0, AT(stuck)},
    {"held_elsewhere_bytes", NULL, TN_ROW_SIZE, 0, AT(elsewhere)},
    {"largest_stuck_bytes", NULL, TN_ROW_SIZE, 0, AT(largest_stuck)},
    {"stuck_pieces", "pieces", TN_ROW_COUNT, 6, AT(stuck_pieces)},
    {NULL, "external", TN_ROW_PERCENT, 8, AT(scattered), OF(stuck)},
    {0}};

static const struct tn_row_table states_table = {.columns = state_columns,
                                                 .row_size = sizeof(struct tarn_frag_state),
                                                 .context = tn_device_context};

#undef AT
#undef OF

static void state_line(struct tn_text_out *out, const struct tarn_frag_state *state, uint64_t bytes,
                       const char *what)
{
    tn_text_put_size(out, (double)bytes);
    tn_text_printf(out, "  %5.1f%%  %s\n", tn_percent(bytes, state->reserved), what);
}

static void state_put(struct tn_text_out *out, const struct tarn_frag_state *state,
                      uint64_t outside)
{
    state_line(out, state, state->requested, "requested by allocated blocks");
    state_line(out, state, state->rounding, "internal: rounded up to 512 bytes");
    if (state->by_settings > 0) {
        state_line(out, state, state->by_settings,
                   "internal: rounded by settings (roundup_power2_divisions)");
    }
    state_line(out, state, state->slack, "internal: remainders that were not split off");
    state_line(out, state, state->releasable, "free: can be returned to the device at once");
    state_line(out, state, state->stuck, "free: stuck beside live blocks");
    if (state->elsewhere > 0) {
        state_line(out, state, state->elsewhere, "free: held by other streams or private pools");
    }
    state_line(out, state, state->reserved, "reserved");
    if (state->stuck_pieces > 1) {
        tn_text_printf(out,
                       "  stuck in %" PRIu64 " pieces, the largest of %s: %.1f%% of it is in "
                       "smaller ones\n",
                       state->stuck_pieces, tn_text_size(out, (double)state->largest_stuck).text,
                       tn_percent(state->scattered, state->stuck));
    }
    if (outside > 0) {
        tn_text_printf(out, "  %s more is requested outside the recorded segments\n",
                       tn_text_size(out, (double)outside).text);
    }
}

/* ---- pinned segments ---- */

#define AT(member) .at = offsetof(struct tarn_pinned_segment, member)

static const struct tn_row_column pin_columns[] = {
    {"address", NULL, TN_ROW_ADDRESS, 0, AT(address), .in = TN_IN_ROWS},
    {"unused_bytes", "unused", TN_ROW_SIZE, 0, AT(unused)},
    {"used_bytes", "used", TN_ROW_SIZE, 0, AT(used)},
    {"blocks", "blocks", TN_ROW_COUNT, 8, AT(blocks)},
    {NULL, "segment", TN_ROW_ADDRESS, -18, AT(address), .in = TN_IN_ROWS},
    {"largest_block", "largest block ", TN_ROW_GROUP, 0, AT(largest_block)},
    {0}};

static const struct tn_row_table pin_table = {.columns = pin_columns,
                                              .row_size = sizeof(struct tarn_pinned_segment),
                                              .context = tn_device_context,
                                              .has_others = true,
                                              .others_key = "segments"};

static void pins_put(struct tn_document *document, const struct tarn_frag_result *frag)
{
    const struct tn_rows rows = {.rows = frag->rows,
                                 .count = frag->row_count,
                                 .others = &frag->others,
                                 .other_count = frag->other_count,
                                 .total = &frag->total};
    const uint64_t count = frag->row_count + frag->other_count;

    if (document->text && count == 0) {
        tn_text_puts(document->text, "\nno segment is pinned by a few small blocks\n");
        return;
    }
    if (document->text) {
        tn_text_printf(document->text,
                       "\npinned: %" PRIu64 " %s of which blocks use at most an eighth\n", count,
                       tn_plural(count, "segments").text);
    } else if (document->json) {
        tn_json_open_object(document->json, "pinned");
    }
    tn_table_put(document, &pin_table, "pinned.segments", &rows);
    if (document->json) {
        tn_json_close(document->json);
    }
}

/* ---- devices ---- */

static void head_put(struct tn_text_out *out, const struct tarn_frag_result *frag)
{
    if (frag->is_of_all_blocks) {
        tn_text_puts(out, "segments are shared, so these figures cover all blocks in that part "
                          "of the trace\n");
    }
    tn_text_putc(out, '\n');
    tn_time_point_put(out, &frag->head, "memory", &frag->at);
    state_put(out, &frag->state, frag->outside);
}

static void head_put_json(struct tn_json_text *json, const struct tarn_frag_result *frag)
{
    tn_json_open_object(json, "instant");
    tn_members_put(json, &states_table, &frag->state, TN_IN_ROWS);
    tn_json_number(json, "outside_bytes", frag->outside);
    tn_json_close(json);
}

static void frag_put(struct tn_document *document, const struct tarn_report_options *options,
                     const void *result)
{
    const struct tarn_frag_result *frag = result;
    const struct tn_rows pools = {.rows = frag->pools, .count = frag->pool_count};
    const struct tn_rows states = {.rows = frag->states, .count = frag->state_count};

    (void)options;
    if (document->text) {
        head_put(document->text, frag);
        tn_text_putc(document->text, '\n');
        tn_table_put(document, &tn_free_pools_table, "pools", &pools);
    } else if (document->json) {
        head_put_json(document->json, frag);
    }
    pins_put(document, frag);
    if (document->text && frag->state_count > 0) {
        tn_text_puts(document->text, "\nover time\n");
    }
    if (!document->text || frag->state_count > 0) {
        tn_table_put(document, &states_table, "over_time", &states);
    }
}

static const struct tn_row_table *const tables[] = {&pin_table, &states_table, NULL};

enum tarn_status tarn_report_frag(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_device_report report = {.schema = "tarn.frag/1",
                                                   .compute = tn_frag_compute,
                                                   .scope = TN_REPORT_STATE,
                                                   .result_size = sizeof(struct tarn_frag_result),
                                                   .tables = tables,
                                                   .put = frag_put};

    return tn_devices_report(&report, snapshot, options, writer, error);
}
