/* SPDX-License-Identifier: MIT */
/*
 * Trace entries as lines that look like Python: the text of `_memory_viz trace`, line for line. An
 * allocation and a segment get the next free name; a place is an offset in the first segment of the
 * trace that held it, given back or not, else in the first final segment whose allocated bytes
 * reach to it, else an address. Names are never used twice: the code there that would do so looks
 * names up in a table of addresses.
 *
 * The last line of a device is its total. PyTorch's has no meaning (the number of the last entry,
 * plus or minus that entry's size), so it is written only in the compatible format. Otherwise it
 * is what is allocated at the end: what the trace allocated and did not free, and the allocated
 * blocks that it does not mention.
 */
#include "tarn/report.h"

#include "analysis/address_map.h"
#include "analysis/interval_map.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/escaped.h"
#include "base/size_text.h"
#include "render/python_repr.h"
#include "report/result.h"
#include "snapshot/snapshot.h"

#include <inttypes.h>

/* Text of one device. */
struct trace_text {
    struct tn_text_out *out;
    const struct tn_model *model;
    const struct tn_interval_map *finals; /* label: index of the segment in the file */
    struct tn_interval_map segments;      /* of this trace; label: its name */
    struct tn_map segment_names;          /* by address; the latest */
    struct tn_map block_names;
    struct tn_map live; /* bytes, by address */
    uint64_t next_name;
    uint64_t live_bytes;
};

static void size_put(struct tn_text_out *out, uint64_t size)
{
    tn_text_puts(out, tn_text_size_viz(out, (double)size).text);
}

static void name_put(struct tn_text_out *out, uint64_t name)
{
    tn_text_putc(out, (char)('a' + name % 26));
    if (name >= 26) {
        tn_text_printf(out, "%" PRIu64, name / 26);
    }
}

/* The name that the address has, or the address. */
static void name_or_address_put(struct tn_text_out *out, const struct tn_map *names,
                                uint64_t address)
{
    const uint64_t *name = tn_address_find(names, address);

    if (name) {
        name_put(out, *name);
    } else {
        tn_text_printf(out, "%" PRIu64, address);
    }
}

static void place_put(const struct trace_text *text, uint64_t address)
{
    const struct tn_range *range = tn_interval_map_find(&text->segments, address);
    struct tn_text_out *out = text->out;

    if (range) {
        name_put(out, range->label);
    } else if ((range = tn_interval_map_find(text->finals, address)) != NULL) {
        tn_text_printf(out, "seg_%" PRIu64, range->label);
    } else {
        tn_text_puts(out, "MEM");
    }
    tn_text_printf(out, "[%" PRIu64 ":", range ? address - range->start : address);
}

static bool alloc_put(struct trace_text *text, const struct tn_trace_entry *entry)
{
    const uint64_t name = text->next_name++;
    const uint64_t *old = tn_address_find(&text->live, entry->address);

    name_put(text->out, name);
    tn_text_puts(text->out, " = ");
    place_put(text, entry->address);
    size_put(text->out, entry->size);
    tn_text_puts(text->out, "]\n");
    text->live_bytes += entry->size - (old ? *old : 0);
    return tn_address_put(&text->block_names, entry->address, name) &&
           tn_address_put(&text->live, entry->address, entry->size);
}

static void free_requested_put(struct trace_text *text, const struct tn_trace_entry *entry)
{
    tn_text_puts(text->out, "del ");
    name_or_address_put(text->out, &text->block_names, entry->address);
    tn_text_puts(text->out, " # ");
    size_put(text->out, entry->size);
    tn_text_putc(text->out, '\n');
}

static void free_completed_put(struct trace_text *text, const struct tn_trace_entry *entry)
{
    uint64_t size;

    tn_text_puts(text->out, "# free completed for ");
    name_or_address_put(text->out, &text->block_names, entry->address);
    tn_text_putc(text->out, ' ');
    size_put(text->out, entry->size);
    tn_text_putc(text->out, '\n');
    if (tn_map_take(&text->live, tn_address_key(entry->address), &size)) {
        text->live_bytes -= size;
    }
}

static bool segment_alloc_put(struct trace_text *text, const struct tn_trace_entry *entry)
{
    const uint64_t name = text->next_name++;

    name_put(text->out, name);
    tn_text_printf(text->out, " = cudaMalloc(%" PRIu64 ", ", entry->address);
    size_put(text->out, entry->size);
    tn_text_puts(text->out, ")\n");
    return tn_interval_map_add(&text->segments, entry->address, entry->size, name) &&
           tn_address_put(&text->segment_names, entry->address, name);
}

static void segment_free_put(struct trace_text *text, const struct tn_trace_entry *entry)
{
    tn_text_puts(text->out, "cudaFree(");
    name_or_address_put(text->out, &text->segment_names, entry->address);
    tn_text_puts(text->out, ") # ");
    size_put(text->out, entry->size);
    tn_text_putc(text->out, '\n');
}

static void oom_put(struct tn_text_out *out, const struct tn_trace_entry *entry)
{
    tn_text_puts(out, "raise OutOfMemoryError # ");
    size_put(out, entry->size);
    tn_text_puts(out, " requested, ");
    size_put(out, entry->address);
    tn_text_puts(out, " free in CUDA\n");
}

/* As newer PyTorch does (#190575); older ones print the dict. False without a note. */
static bool annotate_put(struct trace_text *text, const struct tn_trace_entry *entry)
{
    const uint32_t note = tn_model_extra(text->model, entry->extra)->user_metadata;

    if (note == TN_STRING_NONE) {
        return false;
    }
    const struct tn_string given = tn_model_string(text->model, note);

    tn_text_puts(text->out, "# annotate ");
    name_or_address_put(text->out, &text->block_names, entry->address);
    tn_text_puts(text->out, ": ");
    tn_text_put_escaped(text->out, given.text, given.length, TN_ESCAPED_PLAIN);
    tn_text_putc(text->out, '\n');
    return true;
}

static bool entry_put(struct trace_text *text, const struct tn_trace_entry *entry)
{
    switch ((enum tn_trace_action)entry->action) {
    case TN_TRACE_ALLOC:
        return alloc_put(text, entry);
    case TN_TRACE_FREE_REQUESTED:
        free_requested_put(text, entry);
        return true;
    case TN_TRACE_FREE_COMPLETED:
        free_completed_put(text, entry);
        return true;
    case TN_TRACE_SEGMENT_ALLOC:
        return segment_alloc_put(text, entry);
    case TN_TRACE_SEGMENT_FREE:
        segment_free_put(text, entry);
        return true;
    case TN_TRACE_OOM:
        oom_put(text->out, entry);
        return true;
    case TN_TRACE_ANNOTATE:
        if (annotate_put(text, entry)) {
            return true;
        }
        break;
    case TN_TRACE_SEGMENT_MAP:
    case TN_TRACE_SEGMENT_UNMAP:
    case TN_TRACE_SNAPSHOT:
    case TN_TRACE_USER_DEFINED:
    case TN_TRACE_OTHER:
        break;
    case TN_TRACE_ACTION_COUNT:
        tn_no_case();
        break;
    }
    tn_python_repr_entry(text->out, text->model, entry);
    tn_text_putc(text->out, '\n');
    return true;
}

/* What PyTorch prints: its sum is overwritten by the number of each entry. */
static double total_compat(const struct tn_model *model, const struct tn_trace *trace)
{
    const struct tn_trace_entry *last = tn_trace_at(model, trace, trace->count - 1);
    const double number = (double)(trace->count - 1);

    if (last->action == TN_TRACE_ALLOC) {
        return number + (double)last->size;
    }
    return last->action == TN_TRACE_FREE_COMPLETED ? number - (double)last->size : number;
}

/* What is allocated at the end. */
static double total_live(const struct trace_text *text, size_t device)
{
    double total = (double)text->live_bytes;

    /* A truncated trace might have allocated any of those blocks later. */
    for (size_t i = 0; !text->model->is_partial && i < text->model->segment_count; i++) {
        const struct tn_model_segment *segment = &text->model->segments[i];

        for (size_t k = 0; (size_t)segment->device == device && k < segment->block_count; k++) {
            const struct tn_model_block *block = &segment->blocks[k];

            if (block->state != TN_BLOCK_INACTIVE &&
                !tn_address_find(&text->live, block->address)) {
                total += (double)block->requested_size;
            }
        }
    }
    return total;
}

static bool device_put(struct trace_text *text, size_t device, bool compat)
{
    const struct tn_trace *trace = &text->model->traces[device];

    tn_text_printf(text->out, "Device %zu ----------------\n%" PRIu64 " entries\n", device,
                   trace->count);
    for (uint64_t i = 0; i < trace->count && text->out->status == TARN_OK; i++) {
        if (!entry_put(text, tn_trace_at(text->model, trace, i))) {
            return false;
        }
    }
    const double total = compat ? total_compat(text->model, trace) : total_live(text, device);

    tn_text_printf(text->out, "TOTAL MEM: %s%s", tn_text_size_viz(text->out, total).text,
                   compat ? "" : "\n");
    return true;
}

static bool device_write(struct tn_text_out *out, const struct tn_model *model,
                         const struct tn_interval_map *finals, size_t device, bool compat)
{
    struct trace_text text = {.out = out, .model = model, .finals = finals};

    tn_interval_map_init(&text.segments);
    const bool good = device_put(&text, device, compat);

    tn_interval_map_fini(&text.segments);
    tn_map_fini(&text.segment_names);
    tn_map_fini(&text.block_names);
    tn_map_fini(&text.live);
    return good;
}

static bool finals_add(struct tn_interval_map *finals, const struct tn_model *model)
{
    for (size_t i = 0; i < model->segment_count; i++) {
        const struct tn_model_segment *segment = &model->segments[i];

        if (!tn_interval_map_add(finals, segment->address, segment->allocated_size, i)) {
            return false;
        }
    }
    return true;
}

static bool devices_write(struct tn_text_out *out, const struct tn_model *model,
                          const struct tn_interval_map *finals,
                          const struct tarn_trace_text_options *options)
{
    for (size_t i = 0; i < model->trace_count; i++) {
        const bool wanted = !options->one_device || (size_t)options->device == i;

        if (wanted && model->traces[i].count > 0 &&
            !device_write(out, model, finals, i, options->compat)) {
            return false;
        }
    }
    return true;
}

enum tarn_status tarn_report_trace(const struct tarn_snapshot *snapshot,
                                   const struct tarn_trace_text_options *given,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_trace_text_options defaults = {.struct_size = sizeof defaults};
    const struct tarn_trace_text_options *options = given ? given : &defaults;
    const struct tn_model *model = tn_snapshot_model(snapshot);
    struct tn_text_out out;
    struct tn_interval_map finals;
    enum tarn_status status = TARN_OK;

    /* PyTorch silently omits empty traces. */
    if (!options->compat || !model->has_traces || options->one_device) {
        status = tn_report_check_traces(model, options->one_device, options->device, error);
    }
    if (status) {
        return status;
    }
    tn_interval_map_init(&finals);
    tn_text_init(&out, writer);
    out.units = options->units;
    const bool good = finals_add(&finals, model) && devices_write(&out, model, &finals, options);

    tn_interval_map_fini(&finals);
    status = tn_text_finish(&out);
    if (!good) {
        return tn_fail_memory(error);
    }
    return status ? tn_fail(error, status, "cannot write the report") : TARN_OK;
}
