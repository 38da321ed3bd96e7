/* SPDX-License-Identifier: MIT */
/* `tarn diff`: both sides, and the groups that changed; or folded lines. */
#include "render/changes_table.h"

#include <inttypes.h>
#include <string.h>

static void folded_put(struct tn_text_out *out, const struct tarn_changes *changes)
{
    for (size_t i = 0; i < changes->row_count; i++) {
        const struct tarn_change *row = &changes->rows[i];

        tn_text_put(out, row->group.name, strlen(row->group.name));
        tn_text_printf(out, " %" PRIu64 " %" PRIu64 "\n", row->before, row->after);
    }
}

static void side_put(struct tn_document *document, const struct tarn_report_options *options,
                     const struct tarn_diff_side *side, const char *word)
{
    if (document->json) {
        tn_json_open_object(document->json, word);
        if (side->has_trace) {
            tn_selection_put_json(document->json, options, &side->head);
            tn_time_point_put_json(document->json, &side->at);
        }
        tn_json_close(document->json);
    } else if (document->text && side->has_trace) {
        tn_selection_put(document->text, options, &side->head);
        tn_time_point_put(document->text, &side->head, word, &side->at);
    } else if (document->text) {
        tn_text_printf(document->text, "%s: no trace of this device\n", word);
    }
}

static void total_put(struct tn_text_out *out, const struct tarn_change *total)
{
    const double change = (double)total->after - (double)total->before;

    tn_text_puts(out, "total change: ");
    tn_change_put(out, 0, change);
    if (total->before > 0) {
        tn_text_printf(out, " (%+.2f%%)", change / (double)total->before * 100);
    }
    tn_text_puts(out, "\n\n");
}

static void device_put(struct tn_document *document, const struct tarn_report_options *options,
                       const struct tarn_diff_result *diff)
{
    const struct tarn_report_head head = {.device = diff->device};

    document->context = &head;
    if (document->json) {
        tn_json_open_object(document->json, NULL);
        tn_json_signed(document->json, "device", diff->device);
    } else if (document->text) {
        tn_text_printf(document->text, "device %d\n", diff->device);
    }
    side_put(document, options, &diff->before, "before");
    side_put(document, options, &diff->after, "after");
    if (document->text) {
        total_put(document->text, &diff->changes.total);
    }
    tn_changes_put(document, &tn_changes_table, "changes", &diff->changes);
    if (document->text) {
        tn_text_putc(document->text, '\n');
        tn_change_kinds_put(document->text, &diff->changes);
    } else if (document->json) {
        tn_json_close(document->json);
    }
    document->context = NULL;
}

static enum tarn_status diff_put(const struct tarn_diff_result *results, size_t count,
                                 const struct tarn_report_options *options, bool is_folded,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_row_table *const tables[] = {&tn_changes_table, NULL};
    struct tn_document document;

    tn_document_begin(&document, options, "tarn.diff/1", tables, writer);
    if (document.json) {
        tn_json_open_array(document.json, "devices");
    }
    for (size_t i = 0; i < count; i++) {
        if (is_folded) {
            folded_put(document.text, &results[i].changes);
            continue;
        }
        if (i > 0 && document.text) {
            tn_text_putc(document.text, '\n');
        }
        device_put(&document, options, &results[i]);
    }
    return tn_document_end(&document, error);
}

enum tarn_status tarn_report_diff(const struct tarn_snapshot *before,
                                  const struct tarn_snapshot *after,
                                  const struct tarn_report_options *given,
                                  const struct tarn_diff_options *how,
                                  const struct tarn_writer *writer,
                                  struct tarn_diff_counts *counts_out, struct tarn_error *error)
{
    const bool is_folded = how && how->folded;
    struct tarn_report_options options = {.struct_size = sizeof options};
    struct tarn_diff_result *results;
    size_t count;

    if (given) {
        options = *given;
    }
    if (is_folded) { /* lines of all groups */
        options.format = TARN_REPORT_TEXT;
        options.rows = UINT64_MAX;
        options.columns = 0;
    }
    enum tarn_status status =
        tarn_diff_compute(before, after, &options, how, &results, &count, error);

    if (status == TARN_OK) {
        status = diff_put(results, count, &options, is_folded, writer, error);
        if (status == TARN_OK && counts_out) {
            tarn_diff_count(results, count, counts_out);
        }
        tarn_report_destroy(results);
    }
    return status;
}
