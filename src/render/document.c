/* SPDX-License-Identifier: MIT */
#include "render/document.h"

#include "analysis/group_key.h"
#include "analysis/where.h"
#include "base/assertion.h"
#include "base/escaped.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

const struct tn_row_column tn_device_context[] = {
    {.key = "device", .kind = TN_ROW_INT, .at = offsetof(struct tarn_report_head, device)}, {0}};

/* ---- what is selected ---- */

static void part_put(struct tn_text_out *out, const char **joint, const char *text)
{
    tn_text_puts(out, *joint);
    tn_text_puts(out, text);
    *joint = ", ";
}

static void pool_put(struct tn_text_out *out, const struct tarn_selection *selection)
{
    switch (selection->pools) {
    case TARN_POOLS_ALL: /* has no words */
        tn_no_case();
        break;
    case TARN_POOLS_DEFAULT:
        tn_text_puts(out, "the default pool");
        break;
    case TARN_POOLS_PRIVATE:
        tn_text_puts(out, "private pools");
        break;
    case TARN_POOLS_ONE:
        tn_text_printf(out, "pool (%" PRIu64 ", %" PRIu64 ")", selection->pool[0],
                       selection->pool[1]);
        break;
    }
}

static void quoted_put(struct tn_text_out *out, const char *text)
{
    tn_text_putc(out, '"');
    tn_text_put_escaped(out, text, strlen(text), TN_ESCAPED_PLAIN);
    tn_text_putc(out, '"');
}

static void blocks_put(struct tn_text_out *out, const struct tarn_selection *selection,
                       const char **joint)
{
    if (selection->one_stream) {
        part_put(out, joint, "stream ");
        tn_text_printf(out, "%" PRIu64, selection->stream);
    }
    if (selection->pools != TARN_POOLS_ALL) {
        part_put(out, joint, "");
        pool_put(out, selection);
    }
    if (selection->size_min > 0) {
        part_put(out, joint, "blocks of at least ");
        tn_text_puts(out, tn_text_size(out, (double)selection->size_min).text);
    }
    if (selection->size_max > 0) {
        part_put(out, joint, "blocks of at most ");
        tn_text_puts(out, tn_text_size(out, (double)selection->size_max).text);
    }
    if (selection->match) {
        part_put(out, joint, "stacks with ");
        quoted_put(out, selection->match);
    }
    if (selection->annotation) {
        part_put(out, joint, "annotation ");
        quoted_put(out, selection->annotation);
    }
    if (selection->where) {
        part_put(out, joint, "blocks where ");
        tn_text_put_escaped(out, selection->where->text, strlen(selection->where->text),
                            TN_ESCAPED_PLAIN);
    }
}

static bool limits_events(const struct tarn_selection *selection)
{
    return selection->events.is_given || selection->time_us.is_given || selection->steps.is_given;
}

void tn_selection_put(struct tn_text_out *out, const struct tarn_report_options *options,
                      const struct tarn_report_head *head)
{
    const char *joint = "selected: ";

    if (!head->is_part || tn_never(!options->selection)) { /* no part without a selection */
        return;
    }
    blocks_put(out, options->selection, &joint);
    if (limits_events(options->selection)) {
        part_put(out, &joint, "events ");
        tn_text_printf(out, "%" PRIu64 " to %" PRIu64 " of %" PRIu64, head->first_event,
                       head->last_event, head->events);
    }
    tn_text_puts(out, head->blocks > 0 ? "\n" : "; no block of this device matches\n");
}

void tn_own_peak_put(struct tn_text_out *out, const struct tarn_report_head *head,
                     const struct tarn_time_point *at, const struct tarn_time_point *whole)
{
    if (!head->is_part || at->event == whole->event || whole->event == TARN_NONE) {
        return;
    }
    tn_text_printf(out,
                   "  this is the peak of what is selected; that of all blocks is %s at event "
                   "%" PRIu64 "\n",
                   tn_text_size(out, (double)whole->requested).text, whole->event);
}

static void pool_put_json(struct tn_json_text *json, const struct tarn_selection *selection)
{
    if (selection->pools == TARN_POOLS_ONE) {
        tn_json_open_array(json, "pool");
        tn_json_number(json, NULL, selection->pool[0]);
        tn_json_number(json, NULL, selection->pool[1]);
        tn_json_close(json);
    } else if (selection->pools != TARN_POOLS_ALL) {
        tn_json_word(json, "pool", selection->pools == TARN_POOLS_DEFAULT ? "default" : "private");
    }
}

static void text_put_json(struct tn_json_text *json, const char *key, const char *text)
{
    if (text) {
        tn_json_word(json, key, text);
    }
}

void tn_selection_put_json(struct tn_json_text *json, const struct tarn_report_options *options,
                           const struct tarn_report_head *head)
{
    const struct tarn_selection *selection = options->selection;

    tn_json_word(json, "by", tn_grouping_name(head->by));
    if (!head->is_part || tn_never(!selection)) { /* no part without a selection */
        tn_json_null(json, "selection");
        return;
    }
    tn_json_open_object(json, "selection");
    tn_json_number(json, "first_event", head->first_event);
    tn_json_number(json, "last_event", head->last_event);
    tn_json_number(json, "blocks", head->blocks);
    if (selection->one_stream) {
        tn_json_number(json, "stream", selection->stream);
    }
    pool_put_json(json, selection);
    tn_json_number(json, "min_size", selection->size_min);
    if (selection->size_max > 0) {
        tn_json_number(json, "max_size", selection->size_max);
    }
    text_put_json(json, "match", selection->match);
    text_put_json(json, "annotation", selection->annotation);
    text_put_json(json, "where", selection->where ? selection->where->text : NULL);
    tn_json_close(json);
}

/* ---- time points ---- */

void tn_time_point_put(struct tn_text_out *out, const struct tarn_report_head *head,
                       const char *what, const struct tarn_time_point *at)
{
    tn_text_printf(out, "%s: %s reserved, ", what, tn_text_size(out, (double)at->reserved).text);
    tn_text_printf(out, "%s requested, ", tn_text_size(out, (double)at->requested).text);
    if (at->event == TARN_NONE) {
        tn_text_puts(out, head->events > 0 ? "before the first event\n"
                                           : "at the end; the file has no trace\n");
    } else if (at->event + 1 == head->first_event) {
        tn_text_printf(out, "before event %" PRIu64 " of %" PRIu64 "\n", head->first_event,
                       head->events);
    } else {
        tn_text_printf(out, "at event %" PRIu64 " of %" PRIu64 "\n", at->event, head->events);
    }
}

void tn_time_point_put_json(struct tn_json_text *json, const struct tarn_time_point *at)
{
    tn_json_number_or_null(json, "event", at->event, TARN_NONE);
    tn_json_number(json, "requested_bytes", at->requested);
    tn_json_number(json, "reserved_bytes", at->reserved);
    tn_json_number(json, "left_out_bytes", at->left_out);
}

/* ---- devices ---- */

static void device_put(struct tn_document *document, const struct tn_device_report *report,
                       const struct tarn_report_options *options, const void *result)
{
    const struct tarn_report_head *head = result;

    document->context = head;
    if (document->json) {
        tn_json_open_object(document->json, NULL);
        tn_json_signed(document->json, "device", head->device);
        tn_json_number(document->json, "events", head->events);
        tn_selection_put_json(document->json, options, head);
    } else if (document->text && !report->has_own_heading) {
        tn_text_printf(document->text, "device %d\n", head->device);
        tn_selection_put(document->text, options, head);
    }
    report->put(document, options, result);
    if (document->json) {
        tn_json_close(document->json);
    }
}

static enum tarn_status devices_put(const struct tn_device_report *report, const char *results,
                                    size_t count, const struct tarn_report_options *options,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    struct tn_document document;

    tn_document_begin(&document, options, report->schema, report->tables, writer);
    if (document.json) {
        tn_json_open_array(document.json, "devices");
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && document.text) {
            tn_text_putc(document.text, '\n');
        }
        device_put(&document, report, options, results + i * report->result_size);
    }
    return tn_document_end(&document, error);
}

enum tarn_status tn_devices_report(const struct tn_device_report *report,
                                   const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *given,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    const struct tarn_report_options *options = given ? given : &defaults;
    char *results;
    size_t count;
    enum tarn_status status = tn_report_run(snapshot, options, report->scope, report->result_size,
                                            report->compute, &results, &count, error);

    if (status == TARN_OK) {
        status = devices_put(report, results, count, options, writer, error);
        tarn_report_destroy(results);
    }
    return status;
}
