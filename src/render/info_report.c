/* SPDX-License-Identifier: MIT */
/* `tarn info`: the file, its warnings and its devices, as text or JSON. */
#include "base/escaped.h"
#include "base/plural.h"
#include "render/document.h"
#include "render/row.h"

#include <inttypes.h>
#include <string.h>

/* ---- the whole file ---- */

#define AT(member) .at = offsetof(struct tarn_info_result, member)

static const struct tn_row_column file_columns[] = {
    {"format", NULL, TN_ROW_WORD, 0, AT(format)},
    {"is_partial", NULL, TN_ROW_BOOL, 0, AT(is_partial)},
    {"segments", NULL, TN_ROW_COUNT, 0, AT(segments)},
    {"stacks", NULL, TN_ROW_COUNT, 0, AT(stacks)},
    {"annotations", NULL, TN_ROW_COUNT, 0, AT(annotations)},
    {"host_segments", NULL, TN_ROW_COUNT, 0, AT(host_segments)},
    {0}};

static const struct tn_row_table file_table = {.columns = file_columns};

#undef AT
#define AT(member) .at = offsetof(struct tarn_snapshot_warning, member)

static const struct tn_row_column warning_columns[] = {
    {"text", NULL, TN_ROW_TEXT, 0, AT(text)},
    {"count", NULL, TN_ROW_COUNT, 0, AT(count)},
    {"first_offset", NULL, TN_ROW_COUNT, 0, AT(offset)},
    {0}};

static const struct tn_row_table warning_table = {.columns = warning_columns,
                                                  .row_size = sizeof(struct tarn_snapshot_warning)};

#undef AT

#define AT(member) .at = offsetof(struct tarn_info_setting, member)

static const struct tn_row_column setting_columns[] = {
    {"name", NULL, TN_ROW_TEXT, 0, AT(name)}, {"value", NULL, TN_ROW_TEXT, 0, AT(value)}, {0}};

static const struct tn_row_table setting_table = {.columns = setting_columns,
                                                  .row_size = sizeof(struct tarn_info_setting)};

#undef AT

/* What of the settings is on, beside what was requested: a setting that is ignored, or comes from
 * elsewhere, shows. */
static void in_effect_text(struct tn_text_out *out, const struct tarn_info_result *info)
{
    bool any = false;

    for (size_t i = 0; i < info->in_effect_count; i++) {
        const struct tarn_info_setting *setting = &info->in_effect[i];

        if (setting->is_on) {
            tn_text_puts(out, any ? ", " : "in effect: ");
            tn_text_put_escaped(out, setting->name, strlen(setting->name), TN_ESCAPED_PLAIN);
            tn_text_putc(out, ' ');
            tn_text_put_escaped(out, setting->value, strlen(setting->value), TN_ESCAPED_PLAIN);
            any = true;
        }
    }
    if (any || (info->in_effect_count > 0 && info->settings_length > 0)) {
        tn_text_puts(out, any ? "\n" : "in effect: (default)\n");
    }
}

static void file_json(struct tn_json_text *json, const struct tarn_info_result *info)
{
    tn_members_put(json, &file_table, info, TN_IN_ROWS);
    if (info->has_settings) {
        tn_json_text(json, "settings", info->settings, info->settings_length);
    } else {
        tn_json_null(json, "settings");
    }
}

static void file_text(struct tn_text_out *out, const struct tarn_info_result *info)
{
    tn_text_printf(out, "%s%s\n", info->format, info->is_partial ? ", truncated" : "");
    tn_text_printf(out, "devices: %zu, segments: %" PRIu64 ", stacks: %" PRIu64 "\nsettings: ",
                   info->devices_in_file, info->segments, info->stacks);
    tn_text_put_escaped(out, info->settings, info->settings_length, TN_ESCAPED_PLAIN);
    if (info->settings_length == 0) {
        tn_text_puts(out, info->has_settings ? "(default)" : "(not in the file)");
    }
    tn_text_putc(out, '\n');
    in_effect_text(out, info);
    if (info->annotations > 0) {
        tn_text_printf(out, "annotations: %" PRIu64 "\n", info->annotations);
    }
    if (info->host_segments > 0) {
        tn_text_printf(out, "pinned memory: %" PRIu64 " %s\n", info->host_segments,
                       tn_plural(info->host_segments, "segments").text);
    }
    for (size_t i = 0; i < info->warning_count; i++) {
        const struct tarn_snapshot_warning *warning = &info->warnings[i];

        tn_text_puts(out, "warning: ");
        tn_text_put_escaped(out, warning->text, strlen(warning->text), TN_ESCAPED_PLAIN);
        tn_text_printf(out, " (%" PRIu64 " %s, first at byte %" PRIu64 ")\n", warning->count,
                       tn_plural(warning->count, "times").text, warning->offset);
    }
}

/* ---- a device as text ---- */

static void span_put(struct tn_text_out *out, const struct tarn_info_device *device)
{
    if (!device->has_times || device->last_us < device->first_us) {
        return;
    }
    const double seconds =
        ((double)device->last_us - (double)device->first_us) / 1e6; /* may exceed 64 bits */

    tn_text_printf(out, " in %.3f s", seconds);
    if (seconds > 0) {
        tn_text_printf(out, ", %.0f per second", (double)device->events / seconds);
    }
}

static void overflow_text(struct tn_text_out *out, const struct tarn_info_result *info)
{
    tn_text_puts(out, "  warning: the trace overflowed, its oldest events were dropped");
    if (info->trace_entries_max > 0) {
        tn_text_printf(out, " (it holds %" PRIu64 " at most)", info->trace_entries_max);
    }
    tn_text_puts(out, "; record with a larger max_entries\n");
}

static void peak_put(struct tn_text_out *out, uint64_t bytes, uint64_t event, const char *what)
{
    tn_text_printf(out, "%s %s", tn_text_size(out, (double)bytes).text, what);
    if (event == TARN_NONE) {
        tn_text_puts(out, " before the first event");
    } else {
        tn_text_printf(out, " at event %" PRIu64, event);
    }
}

static void trace_text(struct tn_text_out *out, const struct tarn_info_result *info,
                       const struct tarn_info_device *device)
{
    tn_text_puts(out, "  peak: ");
    peak_put(out, device->allocated_peak, device->allocated_peak_event, "allocated");
    tn_text_puts(out, ", ");
    peak_put(out, device->reserved_peak, device->reserved_peak_event, "reserved");
    tn_text_putc(out, '\n');
    tn_text_printf(out, "  trace: %" PRIu64 " %s", device->events,
                   tn_plural(device->events, "events").text);
    span_put(out, device);
    tn_text_putc(out, '\n');
    if (device->trace_overflowed) {
        overflow_text(out, info);
    }
    for (size_t i = 0; i < device->action_count; i++) {
        tn_text_printf(out, "    %8" PRIu64 "  %s\n", device->actions[i].count,
                       device->actions[i].name);
    }
    tn_text_printf(out, "  stacks: %" PRIu64 " of %" PRIu64 " events have one\n",
                   device->with_stack, device->may_have_stack);
    if (device->reserved_before == 0 && device->blocks_before == 0) {
        tn_text_puts(out, "  the trace begins with an empty allocator\n");
        return;
    }
    tn_text_printf(out,
                   "  the trace begins mid-run: %s was reserved and %" PRIu64
                   " %s of %s allocated before it\n",
                   tn_text_size(out, (double)device->reserved_before).text, device->blocks_before,
                   tn_plural(device->blocks_before, "blocks").text,
                   tn_text_size(out, (double)device->requested_before).text);
}

static void selected_text(struct tn_text_out *out, const struct tarn_report_options *options,
                          const struct tarn_info_device *device)
{
    if (device->steps > 0) {
        tn_text_printf(out, "  steps: %" PRIu64 ", from annotations\n", device->steps);
    }
    if (device->head.is_part) {
        tn_text_puts(out, "  ");
        tn_selection_put(out, options, &device->head);
        tn_text_printf(out, "    %" PRIu64 " %s of %s", device->selected_allocations,
                       tn_plural(device->selected_allocations, "allocations").text,
                       tn_text_size(out, (double)device->selected_bytes).text);
        tn_text_printf(out, ", at most %s requested at once\n",
                       tn_text_size(out, (double)device->selected_peak).text);
    }
}

static void pages_text(struct tn_text_out *out, const struct tarn_info_device *device)
{
    tn_text_printf(out,
                   "  pages: %" PRIu64 " of %s, %" PRIu64 " at %s that had another page before",
                   device->pages, tn_text_size(out, (double)device->page_size).text,
                   device->moved_pages, device->moved_pages == 1 ? "an address" : "addresses");
    tn_text_printf(out, "; mapped %" PRIu64 " %s\n", device->mappings,
                   tn_plural(device->mappings, "times").text);
}

static void device_text(struct tn_text_out *out, const struct tarn_report_options *options,
                        const struct tarn_info_result *info, const struct tarn_info_device *device)
{
    tn_text_printf(out, "\ndevice %d\n  now: %s reserved in %" PRIu64 " %s", device->head.device,
                   tn_text_size(out, (double)device->reserved).text, device->segments,
                   tn_plural(device->segments, "segments").text);
    tn_text_printf(out, ", %s in %" PRIu64 " %s allocated",
                   tn_text_size(out, (double)device->active).text, device->active_blocks,
                   tn_plural(device->active_blocks, "blocks").text);
    tn_text_printf(out, ", %s of it requested\n",
                   tn_text_size(out, (double)device->requested).text);
    if (device->pages > 0) {
        pages_text(out, device);
    }
    if (device->events == 0) {
        tn_text_puts(out, info->is_partial ? "  no trace: the file ends before it\n"
                                           : "  no trace: history was not recorded\n");
        return;
    }
    trace_text(out, info, device);
    selected_text(out, options, device);
}

/* ---- a device as JSON ---- */

#define AT(member) .at = offsetof(struct tarn_info_device, member)

static const struct tn_row_column device_columns[] = {
    {"device", NULL, TN_ROW_INT, 0, AT(head.device)},
    {"segments", NULL, TN_ROW_COUNT, 0, AT(segments)},
    {"reserved_bytes", NULL, TN_ROW_SIZE, 0, AT(reserved)},
    {"allocated_bytes", NULL, TN_ROW_SIZE, 0, AT(allocated)},
    {"active_bytes", NULL, TN_ROW_SIZE, 0, AT(active)},
    {"active_blocks", NULL, TN_ROW_COUNT, 0, AT(active_blocks)},
    {"requested_bytes", NULL, TN_ROW_SIZE, 0, AT(requested)},
    {"events", NULL, TN_ROW_COUNT, 0, AT(events)},
    {0}};

static const struct tn_row_column page_columns[] = {
    {"pages", NULL, TN_ROW_COUNT, 0, AT(pages)},
    {"page_size_bytes", NULL, TN_ROW_SIZE, 0, AT(page_size)},
    {"moved_pages", NULL, TN_ROW_COUNT, 0, AT(moved_pages)},
    {"page_mappings", NULL, TN_ROW_COUNT, 0, AT(mappings)},
    {0}};

static const struct tn_row_column times_columns[] = {
    {"first_event_us", NULL, TN_ROW_SIGNED, 0, AT(first_us)},
    {"last_event_us", NULL, TN_ROW_SIGNED, 0, AT(last_us)},
    {0}};

static const struct tn_row_column trace_columns[] = {
    {"events_with_stack", NULL, TN_ROW_COUNT, 0, AT(with_stack)},
    {"reserved_bytes_before", NULL, TN_ROW_SIZE, 0, AT(reserved_before)},
    {"requested_bytes_before", NULL, TN_ROW_SIZE, 0, AT(requested_before)},
    {"blocks_before", NULL, TN_ROW_COUNT, 0, AT(blocks_before)},
    {"trace_overflowed", NULL, TN_ROW_BOOL, 0, AT(trace_overflowed)},
    {"allocated_peak_bytes", NULL, TN_ROW_SIZE, 0, AT(allocated_peak)},
    {"allocated_peak_event", NULL, TN_ROW_EVENT, 0, AT(allocated_peak_event)},
    {"reserved_peak_bytes", NULL, TN_ROW_SIZE, 0, AT(reserved_peak)},
    {"reserved_peak_event", NULL, TN_ROW_EVENT, 0, AT(reserved_peak_event)},
    {0}};

static const struct tn_row_column selected_columns[] = {
    {"selected_allocations", NULL, TN_ROW_COUNT, 0, AT(selected_allocations)},
    {"selected_allocated_bytes", NULL, TN_ROW_SIZE, 0, AT(selected_bytes)},
    {"selected_peak_bytes", NULL, TN_ROW_SIZE, 0, AT(selected_peak)},
    {"steps", NULL, TN_ROW_COUNT, 0, AT(steps)},
    {0}};

static void trace_json(struct tn_json_text *json, const struct tarn_report_options *options,
                       const struct tarn_info_device *device)
{
    if (device->has_times) {
        tn_row_put_members(json, times_columns, device, TN_IN_ROWS);
    }
    tn_row_put_members(json, trace_columns, device, TN_IN_ROWS);
    tn_json_open_object(json, "actions");
    for (size_t i = 0; i < device->action_count; i++) {
        tn_json_number(json, device->actions[i].name, device->actions[i].count);
    }
    tn_json_close(json);
    tn_selection_put_json(json, options, &device->head);
    tn_row_put_members(json, selected_columns, device, TN_IN_ROWS);
}

static void device_json(struct tn_json_text *json, const struct tarn_report_options *options,
                        const struct tarn_info_device *device)
{
    tn_json_open_object(json, NULL);
    tn_row_put_members(json, device_columns, device, TN_IN_ROWS);
    if (device->pages > 0) {
        tn_row_put_members(json, page_columns, device, TN_IN_ROWS);
    }
    if (device->events > 0) {
        trace_json(json, options, device);
    }
    tn_json_close(json);
}

/* ---- the report ---- */

static void info_put(struct tn_document *document, const struct tarn_report_options *options,
                     const struct tarn_info_result *info)
{
    const struct tn_rows in_effect = {.rows = info->in_effect, .count = info->in_effect_count};
    const struct tn_rows warnings = {.rows = info->warnings, .count = info->warning_count};

    if (document->json) {
        file_json(document->json, info);
        tn_table_put(document, &setting_table, "settings_in_effect", &in_effect);
        tn_table_put(document, &warning_table, "warnings", &warnings);
        tn_json_open_array(document->json, "devices");
    } else if (document->text) {
        file_text(document->text, info);
    }
    for (size_t i = 0; i < info->device_count; i++) {
        if (document->json) {
            device_json(document->json, options, &info->devices[i]);
        } else if (document->text) {
            device_text(document->text, options, info, &info->devices[i]);
        }
    }
}

enum tarn_status tarn_report_info(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *given,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_row_table *const no_tables[] = {NULL};
    static const struct tarn_report_options defaults = {.struct_size = sizeof defaults};
    const struct tarn_report_options *options = given ? given : &defaults;
    struct tn_document document;
    struct tarn_info_result *info;
    const enum tarn_status status = tarn_info_compute(snapshot, options, &info, error);

    if (status) {
        return status;
    }
    tn_document_begin(&document, options, "tarn.info/1", no_tables, writer);
    info_put(&document, options, info);
    tarn_report_destroy(info);
    return tn_document_end(&document, error);
}
