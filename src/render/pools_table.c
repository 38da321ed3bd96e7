/* SPDX-License-Identifier: MIT */
#include "render/pools_table.h"

#include <inttypes.h>

#define AT(member) .at = offsetof(struct tarn_pool_row, member)
#define OF(member) .of = offsetof(struct tarn_pool_row, member)

/* "large of private (1, 0), stream 7" */
static void label_put(struct tn_text_out *out, const void *row)
{
    const struct tarn_pool_row *pool = row;

    tn_text_puts(out, pool->size_class);
    if (pool->pool[0] != 0 || pool->pool[1] != 0) {
        tn_text_printf(out, " of private (%" PRIu64 ", %" PRIu64 ")", pool->pool[0], pool->pool[1]);
    }
    tn_text_printf(out, ", stream %" PRIu64, pool->stream);
}

static const struct tn_row_column free_columns[] = {
    {NULL, "reserved", TN_ROW_SIZE, 0, AT(reserved)},
    {NULL, "free", TN_ROW_SIZE, 0, AT(free)},
    {NULL, "stuck", TN_ROW_SIZE, 0, AT(stuck)},
    {NULL, "largest", TN_ROW_SIZE, 0, AT(largest_stuck)},
    {NULL, "pieces", TN_ROW_COUNT, 6, AT(stuck_pieces)},
    {NULL, "external", TN_ROW_PERCENT, 8, AT(scattered), OF(stuck)},
    {NULL, "pool and stream", TN_ROW_LABEL, .put = label_put},
    {0}};

const struct tn_row_table tn_free_pools_table = {.columns = free_columns,
                                                 .row_size = sizeof(struct tarn_pool_row)};

const struct tn_row_column tn_pool_columns[] = {
    {"pool", NULL, TN_ROW_NUMBERS, 0, AT(pool), .in = TN_IN_ROWS},
    {"stream", NULL, TN_ROW_COUNT, 0, AT(stream), .in = TN_IN_ROWS},
    {"size_class", NULL, TN_ROW_WORD, 0, AT(size_class), .in = TN_IN_ROWS},
    {"reserved_bytes", "reserved", TN_ROW_SIZE, 0, AT(reserved)},
    {"used_bytes", "used", TN_ROW_SIZE, 0, AT(used)},
    {"rounded_by_settings_bytes", NULL, TN_ROW_SIZE, 0, AT(by_settings)},
    {"waiting_bytes", NULL, TN_ROW_SIZE, 0, AT(waiting)},
    {"slack_bytes", "slack", TN_ROW_SIZE, 0, AT(slack)},
    {"free_bytes", "free", TN_ROW_SIZE, 0, AT(free)},
    {"largest_free_bytes", "largest", TN_ROW_SIZE, 0, AT(largest_free)},
    {"free_pieces", "pieces", TN_ROW_COUNT, 6, AT(free_pieces)},
    {"whole_free_segment_bytes", NULL, TN_ROW_SIZE, 0, AT(free_segments)},
    {"releasable_bytes", NULL, TN_ROW_SIZE, 0, AT(releasable)},
    {"stuck_bytes", NULL, TN_ROW_SIZE, 0, AT(stuck)},
    {NULL, "pool and stream", TN_ROW_LABEL, .put = label_put},
    {0}};
