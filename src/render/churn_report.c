/* SPDX-License-Identifier: MIT */
/* `tarn churn`: a sentence with the totals, and the groups. */
#include "render/document.h"

#include <inttypes.h>

#define AT(member) .at = offsetof(struct tarn_churn_row, member)
#define OF(member) .of = offsetof(struct tarn_churn_row, member)

static const struct tn_row_column columns[] = {
    {"blocks", "blocks", TN_ROW_COUNT, 8, AT(allocations)},
    {NULL, "share", TN_ROW_SHARE, 6, AT(allocations)},
    {"bytes", "bytes", TN_ROW_SIZE, 0, AT(allocated)},
    {"events_from_allocation_to_free", "lifetime", TN_ROW_MEAN, 8, AT(lifetime_events),
     OF(allocations), .decimals = 1},
    {"most_frequent_size_bytes", "main size", TN_ROW_SIZE, 0, AT(usual_size), .in = TN_IN_ROWS},
    {"blocks_of_that_size", "main %", TN_ROW_PERCENT, 7, AT(of_usual_size), OF(allocations),
     .in = TN_IN_ROWS},
    {NULL, "", TN_ROW_GROUP, 0, AT(group)},
    {0}};

static const struct tn_row_table table = {.columns = columns,
                                          .row_size = sizeof(struct tarn_churn_row),
                                          .context = tn_device_context,
                                          .has_others = true};

static void sentence_put(struct tn_text_out *out, const struct tarn_churn_result *churn)
{
    tn_text_printf(out,
                   "%" PRIu64 " of %" PRIu64 " allocations (%.1f%%) were freed within %" PRIu64
                   " events, ",
                   churn->total.allocations, churn->allocations,
                   tn_percent(churn->total.allocations, churn->allocations), churn->lifetime_max);
    tn_text_printf(out, "%s of ", tn_text_size(out, (double)churn->total.allocated).text);
    tn_text_printf(out, "%s requested\n\n", tn_text_size(out, (double)churn->allocated).text);
}

static void churn_put(struct tn_document *document, const struct tarn_report_options *options,
                      const void *result)
{
    const struct tarn_churn_result *churn = result;
    const struct tn_rows rows = {.rows = churn->rows,
                                 .count = churn->row_count,
                                 .others = &churn->others,
                                 .other_count = churn->other_count,
                                 .total = &churn->total};

    (void)options;
    if (document->text) {
        sentence_put(document->text, churn);
    } else if (document->json) {
        tn_json_number(document->json, "lifetime_max_events", churn->lifetime_max);
        tn_json_number(document->json, "allocations", churn->allocations);
        tn_json_number(document->json, "allocated_bytes", churn->allocated);
    }
    tn_table_put(document, &table, "groups", &rows);
}

static const struct tn_row_table *const tables[] = {&table, NULL};

enum tarn_status tarn_report_churn(const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *options,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_device_report report = {.schema = "tarn.churn/1",
                                                   .compute = tn_churn_compute,
                                                   .result_size = sizeof(struct tarn_churn_result),
                                                   .tables = tables,
                                                   .put = churn_put};

    return tn_devices_report(&report, snapshot, options, writer, error);
}
