/* SPDX-License-Identifier: MIT */
#include "render/changes_table.h"

#include "analysis/group_key.h"
#include "base/plural.h"

#include <inttypes.h>

#define AT(member) .at = offsetof(struct tarn_change, member)

const struct tn_row_column tn_changes_columns[] = {
    {"kind", NULL, TN_ROW_WORD, 0, AT(kind), .in = TN_IN_ROWS},
    {NULL, "change", TN_ROW_CHANGE, 0, AT(change)},
    {"before_bytes", "before", TN_ROW_SIZE, 0, AT(before)},
    {"after_bytes", "after", TN_ROW_SIZE, 0, AT(after)},
    {"change_bytes", NULL, TN_ROW_CHANGE, 0, AT(change)},
    {"before_blocks", NULL, TN_ROW_COUNT, 0, AT(blocks_before)},
    {"after_blocks", NULL, TN_ROW_COUNT, 0, AT(blocks_after)},
    {NULL, "blocks", TN_ROW_SIGNED, 8, AT(block_change)},
    {NULL, "", TN_ROW_WORD, -6, AT(kind), .in = TN_IN_ROWS},
    {NULL, "", TN_ROW_NAME, 0, AT(group)},
    {"path", NULL, TN_ROW_TEXT, 0, AT(group.name), .in = TN_IN_ROWS},
    {0}};

const struct tn_row_table tn_changes_table = {.columns = tn_changes_columns,
                                              .row_size = sizeof(struct tarn_change),
                                              .context = tn_device_context,
                                              .has_others = true};

static void kinds_put_json(struct tn_json_text *json, const struct tarn_changes *changes)
{
    tn_json_open_object(json, "kinds");
    for (int i = 0; i < TARN_CHANGE_KINDS; i++) {
        tn_json_open_object(json, changes->kinds[i].kind);
        tn_json_number(json, tn_grouping_plural(changes->by), changes->kinds[i].groups);
        tn_json_signed(json, "change_bytes", changes->kinds[i].change);
        tn_json_close(json);
    }
    tn_json_close(json);
}

void tn_changes_put(struct tn_document *document, const struct tn_row_table *table,
                    const char *path, const struct tarn_changes *changes)
{
    const struct tn_rows rows = {.rows = changes->rows,
                                 .count = changes->row_count,
                                 .others = &changes->others,
                                 .other_count = changes->other_count,
                                 .total = &changes->total};

    tn_table_put(document, table, path, &rows);
    if (document->json) {
        kinds_put_json(document->json, changes);
    }
}

void tn_change_kinds_put(struct tn_text_out *out, const struct tarn_changes *changes)
{
    for (int i = 0; i < TARN_CHANGE_KINDS; i++) {
        const struct tarn_change_sum *sum = &changes->kinds[i];

        if (sum->groups > 0) {
            tn_change_put(out, tn_text_size_width(out) + 1, (double)sum->change);
            tn_text_printf(out, "  %-6s  %" PRIu64 " %s\n", sum->kind, sum->groups,
                           tn_plural(sum->groups, tn_grouping_plural(changes->by)).text);
        }
    }
}
