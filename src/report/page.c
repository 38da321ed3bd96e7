/* SPDX-License-Identifier: MIT */
/*
 * The page of `trace_plot` and `segment_plot`: the totals of each device, and that this version has
 * no viewer. No script, nothing from elsewhere, no text of the file but numbers.
 */
#include "tarn/report.h"

#include "base/errinfo.h"
#include "base/size_text.h"
#include "base/text_out.h"
#include "report/totals.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>

static void size_cell_put(struct tn_text_out *out, uint64_t bytes)
{
    tn_text_printf(out, "<td title=\"%" PRIu64 " bytes\">%s</td>", bytes,
                   tn_size_text((double)bytes).text);
}

static void row_put(struct tn_text_out *out, const struct tn_totals *totals)
{
    tn_text_printf(out, "<tr><td>%" PRId64 "</td><td>%" PRIu64 "</td>", totals->device,
                   totals->segments);
    size_cell_put(out, totals->reserved);
    size_cell_put(out, totals->allocated);
    size_cell_put(out, totals->active);
    size_cell_put(out, totals->requested);
    tn_text_printf(out, "<td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr>\n", totals->entries,
                   totals->ooms);
}

static const char *view_name(enum tarn_page_view view)
{
    switch (view) {
    case TARN_PAGE_MEMORY_TIMELINE:
        return "Active Memory Timeline";
    case TARN_PAGE_SEGMENT_TIMELINE:
        return "Active Cached Segment Timeline";
    case TARN_PAGE_STATE:
        break;
    }
    return "Allocator State History";
}

static void head_put(struct tn_text_out *out, const char *name)
{
    tn_text_printf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        "<title>%s</title>\n<style>\n"
        "body{font-family:sans-serif;margin:2em;max-width:60em;color:#1c1c1c}\n"
        "table{border-collapse:collapse}\n"
        "td,th{padding:.3em .8em;text-align:right;border-bottom:1px solid #ccc}\n"
        "</style>\n</head>\n<body>\n<h1>%s</h1>\n"
        "<p>This version of tarn cannot draw this view yet. These are the totals of the "
        "snapshot; <code>tarn memory</code> and <code>tarn segments</code> draw what holds the "
        "memory, <code>tarn trace</code> lists what happened.</p>\n"
        "<table>\n<tr><th>device</th><th>segments</th><th>reserved</th><th>allocated</th>"
        "<th>active</th><th>requested</th><th>trace entries</th><th>out of memory</th></tr>\n",
        name, name);
}

enum tarn_status tarn_report_page(const struct tarn_snapshot *snapshot, enum tarn_page_view view,
                                  const struct tarn_page_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    struct tn_vec totals;
    struct tn_text_out out;

    if (!tn_totals_collect(tn_snapshot_model(snapshot), &totals)) {
        tn_vec_fini(&totals);
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the totals");
    }
    tn_text_init(&out, writer);
    head_put(&out, view_name(view));
    for (size_t i = 0; i < totals.count; i++) {
        const struct tn_totals *row = (const struct tn_totals *)totals.items + i;

        if (!options || !options->one_device || row->device == options->device) {
            row_put(&out, row);
        }
    }
    tn_vec_fini(&totals);
    tn_text_puts(&out, "</table>\n</body>\n</html>\n");
    const enum tarn_status status = tn_text_finish(&out);

    return status ? tn_fail(error, status, "cannot write the page") : TARN_OK;
}
