/* SPDX-License-Identifier: MIT */
#include "render/holders_table.h"

#define AT(member) .at = offsetof(struct tarn_holder, member)

#define NUMBERS                                                                                    \
    {"bytes", "bytes", TN_ROW_SIZE, 0, AT(bytes)}, {NULL, "share", TN_ROW_SHARE, 6, AT(bytes)},    \
        {"blocks", "blocks", TN_ROW_COUNT, 8, AT(blocks)},                                         \
    {                                                                                              \
        "bytes_from_before_the_trace", NULL, TN_ROW_SIZE, 0, AT(bytes_before)                      \
    }

const struct tn_row_column tn_holders_columns[] = {
    NUMBERS, {NULL, "", TN_ROW_GROUP, 0, AT(group)}, {0}};

static const struct tn_row_column tree_columns[] = {
    TN_TREE_FIRST(struct tarn_holder), NUMBERS, TN_TREE_LAST(struct tarn_holder), {0}};

const struct tn_row_table tn_holders_table = {.columns = tn_holders_columns,
                                              .row_size = sizeof(struct tarn_holder),
                                              .context = tn_device_context,
                                              .has_others = true};

const struct tn_row_table tn_holders_tree_table = {.columns = tree_columns,
                                                   .row_size = sizeof(struct tarn_holder),
                                                   .context = tn_device_context,
                                                   .is_tree = true};

void tn_holders_put(struct tn_document *document, const struct tn_row_table *table,
                    const char *path, const struct tarn_holders *holders)
{
    const struct tn_rows rows = {.rows = holders->rows,
                                 .count = holders->row_count,
                                 .others = &holders->others,
                                 .other_count = holders->other_count,
                                 .total = &holders->total};

    tn_table_put(document, table, path, &rows);
    if (holders->by != TARN_BY_CATEGORY) {
        return;
    }
    tn_table_put_row(document, table, &rows, &holders->unclassified, "of it is unclassified");
    if (document->json) {
        tn_json_number(document->json, "unclassified_bytes", holders->unclassified.bytes);
    }
}
