/* SPDX-License-Identifier: MIT */
/* Implements tarn_capture_visit: shows a copy of a live allocator (live_copy.h) piece by piece. */
#include "base/errinfo.h"
#include "capture/live_copy.h"

static uint64_t host_stack(const struct tn_live_copy *copy, uint64_t stack)
{
    return copy->has_stacks ? tn_history_host_stack((const struct tn_interned *)(uintptr_t)stack)
                            : 0;
}

static void visit_segment(const struct tn_live_copy *copy, const struct tn_copied_segment *segment,
                          const struct tarn_capture_visitor *visitor)
{
    if (visitor->segment) {
        visitor->segment(visitor->context, &segment->info, host_stack(copy, segment->info.stack));
    }
    for (uint64_t i = 0; visitor->block && i < segment->block_count; i++) {
        const struct tarn_block_info *block = &copy->blocks[segment->first_block + i];

        visitor->block(visitor->context, block, host_stack(copy, block->stack));
    }
}

static void visit_events(const struct tn_live_copy *copy,
                         const struct tarn_capture_visitor *visitor)
{
    for (uint64_t i = 0; i < copy->history.count; i++) {
        const struct tn_ring_entry *entry = &copy->history.entries[i];
        const struct tarn_history_entry shown =
            tn_history_entry_shown(copy->source.history, &copy->history, entry);

        visitor->event(visitor->context, &shown, tn_history_host_stack(entry->stack));
    }
}

static const char *text_of(const struct tn_interned *piece)
{
    return (const char *)piece->bytes;
}

static void visit_annotation(const struct tn_live_copy *copy,
                             const struct tn_annotation_entry *entry,
                             const struct tarn_capture_visitor *visitor)
{
    struct tarn_annotation_field fields[TARN_ANNOTATION_FIELDS_MAX];
    const struct tarn_captured_annotation annotation = {
        .device = entry->device,
        .stage = entry->stage,
        .name = text_of(entry->name),
        .time_us = tn_history_time_us(copy->source.history, &copy->history, entry->ticks),
        .fields = fields,
        .field_count = entry->field_count,
    };

    for (uint32_t i = 0; i < entry->field_count; i++) {
        fields[i].key = text_of(entry->fields[(size_t)2 * i]);
        fields[i].value = text_of(entry->fields[(size_t)2 * i + 1]);
    }
    visitor->annotation(visitor->context, &annotation);
}

enum tarn_status tarn_capture_visit(const struct tarn_capture_source *source,
                                    const struct tarn_capture_options *options,
                                    const struct tarn_capture_visitor *visitor,
                                    struct tarn_error *error)
{
    struct tarn_capture_options all;
    struct tn_live_copy copy;

    if (!source->allocator || visitor->struct_size != sizeof *visitor ||
        !tn_capture_options_read(options, &all)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "visiting an allocator needs one, and a visitor and options of the right "
                       "size");
    }
    const enum tarn_status status = tn_live_copy_init(&copy, source, &all, true, error);

    if (status) {
        return status;
    }
    for (uint64_t i = 0; i < copy.segment_count; i++) {
        visit_segment(&copy, &copy.segments[i], visitor);
    }
    if (copy.has_history && visitor->event && !all.without_traces) {
        visit_events(&copy, visitor);
    }
    for (uint64_t i = 0; visitor->annotation && i < copy.history.annotation_count; i++) {
        visit_annotation(&copy, &copy.history.annotations[i], visitor);
    }
    tn_live_copy_fini(&copy);
    return TARN_OK;
}
