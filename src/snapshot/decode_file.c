/* SPDX-License-Identifier: MIT */
/*
 * Decodes the rest of a snapshot once all of it is read: segments with their blocks, the entries of
 * each device, settings, annotations. Missing sums are computed from the blocks.
 */
#include "base/checked.h"
#include "base/errinfo.h"
#include "snapshot/decode.h"
#include "snapshot/decode_field.h"
#include "snapshot/decode_rest.h"
#include "snapshot/warning.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIELDS_LOOKED_AT = 64
};

/* Key at `i` of a dict; TN_STRING_NONE if it is not a string. */
static uint32_t list_key(const struct tn_value_list *list, size_t i)
{
    const struct tn_value key = list->items[i];

    return tn_value_kind(key) == TN_VALUE_STRING ? (uint32_t)key.as.number : TN_STRING_NONE;
}

/* Blocks of a segment. */

static enum tarn_status block_check(struct tn_decoder *decoder, struct tn_value item)
{
    const enum tarn_status status = tn_decode_make_block(decoder, item);

    if (status != TARN_OK) {
        return status;
    }
    if (tn_value_kind(item) == TN_VALUE_OBJECT &&
        tn_decode_object(decoder, item)->kind == TN_OBJECT_BLOCK) {
        return TARN_OK;
    }
    return tn_field_wrong(decoder, TN_KEY_BLOCKS, item, "dicts with the key `state`");
}

/* Fills in fields that the old format does not have. */
static void block_complete(struct tn_model *model, struct tn_model_block *block,
                           uint64_t running_address)
{
    if (!block->has_address) {
        block->address = running_address;
    }
    if (block->history_count > 0 && block->stack == TN_STACK_NONE) {
        model->is_legacy = true;
        block->requested_size = block->history[0].real_size;
        block->stack = block->history[0].stack;
    } else if (!block->has_requested_size) {
        block->requested_size = block->size;
    }
}

static void block_take_sizes(struct tn_decoder *decoder, struct tn_model_block *block, uint64_t at)
{
    tn_decode_take_size(decoder, TN_KEY_SIZE, at, &block->size);
    tn_decode_take_size(decoder, TN_KEY_REQUESTED_SIZE, at, &block->requested_size);
}

static enum tarn_status block_charge(struct tn_decoder *decoder, const struct tn_model_block *block)
{
    uint64_t bytes = sizeof *block + tn_model_stack(decoder->model, block->stack).written +
                     tn_model_container(decoder->model, block->rest).written;

    for (uint32_t i = 0; i < block->history_count; i++) {
        bytes += tn_model_stack(decoder->model, block->history[i].stack).written;
    }
    return tn_decode_charge(decoder, bytes);
}

static enum tarn_status segment_set_blocks(struct tn_decoder *decoder,
                                           struct tn_model_segment *segment, struct tn_value value)
{
    const struct tn_value_list *list = NULL;
    uint64_t running = segment->address;
    enum tarn_status status =
        tn_field_list(decoder, TN_KEY_BLOCKS, value, "a list of blocks", &list);

    if (status != TARN_OK) {
        return status;
    }
    struct tn_model_block *blocks =
        tn_arena_alloc_array(&decoder->model->arena, list->count, sizeof *blocks);
    if (!blocks) {
        return tn_decode_memory(decoder);
    }
    for (size_t i = 0; i < list->count && status == TARN_OK; i++) {
        status = block_check(decoder, list->items[i]);
        if (status == TARN_OK) {
            blocks[i] = *(const struct tn_model_block *)tn_chunked_vec_at(
                &decoder->blocks, tn_decode_object(decoder, list->items[i])->index);
            block_complete(decoder->model, &blocks[i], running);
            block_take_sizes(decoder, &blocks[i], tn_value_offset(list->items[i]));
            running += blocks[i].size;
            status = block_charge(decoder, &blocks[i]);
        }
    }
    segment->blocks = blocks;
    segment->block_count = list->count;
    return status;
}

/* Segments. */

struct segment_draft {
    struct tn_model_segment segment;
    struct tn_value blocks;
    struct tn_rest rest;
    bool has_address, has_total, has_blocks, has_allocated, has_active, has_requested, has_type;
};

static enum tarn_status segment_set_device(struct tn_decoder *decoder, struct tn_value value,
                                           int32_t *out)
{
    int64_t device = 0;
    const enum tarn_status status = tn_field_integer(decoder, TN_KEY_DEVICE, value, &device);

    if (status == TARN_OK && (device < INT32_MIN || device > INT32_MAX)) {
        return tn_field_wrong(decoder, TN_KEY_DEVICE, value, "a device number");
    }
    *out = (int32_t)device;
    return status;
}

static enum tarn_status segment_set_type(struct tn_decoder *decoder, struct segment_draft *draft,
                                         struct tn_value value)
{
    uint32_t word = TN_STRING_NONE;
    const enum tarn_status status = tn_field_string(decoder, TN_KEY_SEGMENT_TYPE, value, &word);

    draft->has_type = true;
    draft->segment.is_large = word == TN_WORD_LARGE;
    if (status == TARN_OK && word != TN_WORD_LARGE && word != TN_WORD_SMALL) {
        tn_warning_add(decoder->model, TN_WARNING_UNKNOWN_WORD, TN_KEY_SEGMENT_TYPE,
                       tn_value_offset(value));
    }
    return status;
}

static enum tarn_status segment_set(struct tn_decoder *decoder, struct segment_draft *draft,
                                    uint32_t key, struct tn_value value)
{
    struct tn_model_segment *segment = &draft->segment;

    switch (key) {
    case TN_KEY_DEVICE:
        return segment_set_device(decoder, value, &segment->device);
    case TN_KEY_ADDRESS:
        draft->has_address = true;
        return tn_field_address(decoder, key, value, &segment->address);
    case TN_KEY_TOTAL_SIZE:
        draft->has_total = true;
        return tn_field_size(decoder, key, value, &segment->total_size);
    case TN_KEY_ALLOCATED_SIZE:
        draft->has_allocated = true;
        return tn_field_size(decoder, key, value, &segment->allocated_size);
    case TN_KEY_ACTIVE_SIZE:
        draft->has_active = true;
        return tn_field_size(decoder, key, value, &segment->active_size);
    case TN_KEY_REQUESTED_SIZE:
        draft->has_requested = true;
        return tn_field_size(decoder, key, value, &segment->requested_size);
    case TN_KEY_STREAM:
        return tn_field_address(decoder, key, value, &segment->stream);
    case TN_KEY_SEGMENT_TYPE:
        return segment_set_type(decoder, draft, value);
    case TN_KEY_SEGMENT_POOL_ID:
        return tn_field_pool(decoder, key, value, &segment->pool);
    case TN_KEY_IS_EXPANDABLE:
        return tn_field_bool(decoder, key, value, &segment->is_expandable);
    case TN_KEY_FRAMES:
        return tn_field_stack(decoder, key, value, &segment->stack);
    case TN_KEY_BLOCKS:
        draft->has_blocks = true;
        draft->blocks = value;
        return TARN_OK;
    case TN_KEY_TARN_PAGES:
        return tn_rest_add(decoder, &draft->rest, key, value);
    default:
        return tn_rest_add_unknown(decoder, &draft->rest, key, value);
    }
}

static enum tarn_status segment_check_keys(struct tn_decoder *decoder,
                                           const struct segment_draft *draft, struct tn_value item)
{
    const char *missing = !draft->has_address  ? "address"
                          : !draft->has_total  ? "total_size"
                          : !draft->has_blocks ? "blocks"
                                               : NULL;

    if (!missing) {
        return TARN_OK;
    }
    return tn_fail_at(decoder->error, TARN_ERR_FORMAT, (int64_t)tn_value_offset(item),
                      "the segment at byte %llu lacks the key `%s`",
                      (unsigned long long)tn_value_offset(item), missing);
}

static void segment_take_sizes(struct tn_decoder *decoder, struct tn_model_segment *segment,
                               uint64_t at)
{
    tn_decode_take_size(decoder, TN_KEY_TOTAL_SIZE, at, &segment->total_size);
    tn_decode_take_size(decoder, TN_KEY_ALLOCATED_SIZE, at, &segment->allocated_size);
    tn_decode_take_size(decoder, TN_KEY_ACTIVE_SIZE, at, &segment->active_size);
    tn_decode_take_size(decoder, TN_KEY_REQUESTED_SIZE, at, &segment->requested_size);
}

/* Computes sums missing in the file, and checks the others against the blocks. */
static void segment_complete(struct tn_decoder *decoder, struct segment_draft *draft,
                             uint64_t offset)
{
    struct tn_model *model = decoder->model;
    struct tn_model_segment *segment = &draft->segment;
    uint64_t total = 0;
    uint64_t allocated = 0;
    uint64_t active = 0;
    uint64_t requested = 0;

    for (size_t i = 0; i < segment->block_count; i++) {
        const struct tn_model_block *block = &segment->blocks[i];

        total += block->size;
        allocated += block->state == TN_BLOCK_ACTIVE_ALLOCATED ? block->size : 0;
        active += block->state != TN_BLOCK_INACTIVE ? block->size : 0;
        requested += block->state != TN_BLOCK_INACTIVE ? block->requested_size : 0;
    }
    segment_take_sizes(decoder, segment, offset);
    segment->allocated_size = draft->has_allocated ? segment->allocated_size : allocated;
    segment->active_size = draft->has_active ? segment->active_size : active;
    segment->requested_size = draft->has_requested ? segment->requested_size : requested;
    if (!draft->has_type) {
        segment->is_large = segment->total_size > 2u << 20;
    }
    if (total != segment->total_size) {
        tn_warning_add(model, TN_WARNING_BLOCK_SUM, TN_KEY_TOTAL_SIZE, offset);
    }
    if (!tn_add_u64(segment->address, segment->total_size, &total)) {
        tn_warning_add(model, TN_WARNING_WRAPS, TN_KEY_TOTAL_SIZE, offset);
    }
}

static enum tarn_status segment_decode(struct tn_decoder *decoder, uint32_t key,
                                       struct tn_value item, struct tn_model_segment *out)
{
    const struct tn_value_list *list = NULL;
    struct segment_draft draft = {0};
    enum tarn_status status = tn_field_dict(decoder, key, item, "dicts of segments", &list);

    for (size_t i = 0; status == TARN_OK && i + 1 < list->count; i += 2) {
        status = segment_set(decoder, &draft, list_key(list, i), list->items[i + 1]);
    }
    if (status == TARN_OK) {
        status = segment_check_keys(decoder, &draft, item);
    }
    if (status == TARN_OK) {
        status = segment_set_blocks(decoder, &draft.segment, draft.blocks);
    }
    if (status == TARN_OK) {
        status = tn_rest_store(decoder, &draft.rest, &draft.segment.rest);
    }
    if (status == TARN_OK) {
        status = tn_decode_charge(
            decoder, sizeof draft.segment +
                         tn_model_stack(decoder->model, draft.segment.stack).written +
                         tn_model_container(decoder->model, draft.segment.rest).written);
    }
    if (status == TARN_OK) {
        segment_complete(decoder, &draft, tn_value_offset(item));
        *out = draft.segment;
    }
    return status;
}

static enum tarn_status segments_decode(struct tn_decoder *decoder, uint32_t key,
                                        struct tn_value value,
                                        const struct tn_model_segment **segments_out,
                                        size_t *count_out)
{
    const struct tn_value_list *list = NULL;
    enum tarn_status status = tn_field_list(decoder, key, value, "a list of segments", &list);

    if (status != TARN_OK) {
        return status;
    }
    struct tn_model_segment *segments =
        tn_arena_alloc_array(&decoder->model->arena, list->count, sizeof *segments);
    if (!segments) {
        return tn_decode_memory(decoder);
    }
    for (size_t i = 0; i < list->count && status == TARN_OK; i++) {
        status = segment_decode(decoder, key, list->items[i], &segments[i]);
    }
    if (status == TARN_OK) {
        *segments_out = segments;
        *count_out = list->count;
    }
    return status;
}

/* Traces. */

/* Walks the entries once: takes their sizes, checks that times rise, returns their bytes written
 * out. Most entries have the extra of the previous one. */
static uint64_t trace_check(struct tn_decoder *decoder, const struct tn_trace *trace,
                            uint64_t offset)
{
    struct tn_model *model = decoder->model;
    uint32_t extra = TN_EXTRA_NONE;
    uint64_t extra_written = tn_model_extra_written(model, extra);
    int64_t last = INT64_MIN;
    uint64_t written = 0;

    for (uint64_t i = 0; i < trace->count; i++) {
        struct tn_trace_entry *entry = tn_chunked_vec_at(&model->entries, trace->first + i);
        const int64_t now = entry->time_us;

        tn_decode_take_size(decoder, TN_KEY_SIZE, offset, &entry->size);
        if (now != TN_TIME_NONE && now < last) {
            tn_warning_add(model, TN_WARNING_TIME_BACKWARDS, TN_KEY_TIME_US, offset);
        }
        last = now == TN_TIME_NONE ? last : now;
        if (entry->extra != extra) {
            extra = entry->extra;
            extra_written = tn_model_extra_written(model, extra);
        }
        written += tn_model_entry_written(model, entry) + extra_written;
    }
    return written;
}

static enum tarn_status trace_decode(struct tn_decoder *decoder, uint32_t key,
                                     struct tn_value value, struct tn_trace *out)
{
    const enum tarn_status status = tn_field_run(decoder, key, value, out);

    return status == TARN_OK
               ? tn_decode_charge(decoder, trace_check(decoder, out, tn_value_offset(value)))
               : status;
}

static enum tarn_status traces_decode(struct tn_decoder *decoder, uint32_t key,
                                      struct tn_value value, const struct tn_trace **traces_out,
                                      size_t *count_out)
{
    const struct tn_value_list *list = NULL;
    enum tarn_status status =
        tn_field_list(decoder, key, value, "a list of lists of trace entries", &list);

    if (status != TARN_OK) {
        return status;
    }
    if (list->count > TN_DEVICES_MAX) {
        return tn_fail_at(decoder->error, TARN_ERR_LIMIT, (int64_t)tn_value_offset(value),
                          "traces of more than %d devices at byte %llu", TN_DEVICES_MAX,
                          (unsigned long long)tn_value_offset(value));
    }
    struct tn_trace *traces =
        tn_arena_alloc_array(&decoder->model->arena, list->count, sizeof *traces);
    if (!traces) {
        return tn_decode_memory(decoder);
    }
    for (size_t i = 0; i < list->count && status == TARN_OK; i++) {
        status = trace_decode(decoder, key, list->items[i], &traces[i]);
    }
    if (status == TARN_OK) {
        *traces_out = traces;
        *count_out = list->count;
    }
    return status;
}

/* Open dicts. */

struct field_list {
    struct tn_field *fields;
    size_t count;
};

/* Index of a key among the first fields, or the end. No real dict has more keys than are checked.
 * */
static size_t field_list_find(const struct field_list *list, uint32_t key)
{
    for (size_t i = 0; i < list->count && i < FIELDS_LOOKED_AT; i++) {
        if (list->fields[i].key == key) {
            return i;
        }
    }
    return list->count;
}

/* Adds a key without a field of its own; what cannot be kept is skipped, with a warning. */
static enum tarn_status field_list_add(struct tn_decoder *decoder, struct field_list *list,
                                       uint32_t key, struct tn_value value)
{
    const size_t index = field_list_find(list, key);
    struct tn_field field = {0};
    bool kept = false;

    if (index < list->count) {
        tn_warning_add(decoder->model, TN_WARNING_DUPLICATE_KEY, key, tn_value_offset(value));
    }
    const enum tarn_status status = tn_rest_convert(decoder, key, value, &field, &kept);

    if (kept) {
        list->fields[index] = field;
        list->count += index == list->count;
    } else if (status == TARN_OK) {
        tn_warning_add(decoder->model, TN_WARNING_SKIPPED_VALUE, key, tn_value_offset(value));
    }
    return status;
}

static enum tarn_status field_list_init(struct tn_decoder *decoder, struct field_list *list,
                                        size_t capacity)
{
    *list = (struct field_list){
        .fields = tn_arena_alloc_array(&decoder->model->arena, capacity, sizeof *list->fields)};
    return list->fields ? TARN_OK : tn_decode_memory(decoder);
}

static enum tarn_status annotation_set(struct tn_decoder *decoder, struct tn_annotation *annotation,
                                       struct field_list *fields, uint32_t key,
                                       struct tn_value value)
{
    switch (key) {
    case TN_KEY_STAGE:
        return tn_field_string(decoder, key, value, &annotation->stage);
    case TN_KEY_NAME:
        return tn_field_string(decoder, key, value, &annotation->name);
    case TN_KEY_DEVICE:
        return segment_set_device(decoder, value, &annotation->device);
    case TN_KEY_TIME_US:
        return tn_field_time(decoder, key, value, &annotation->time_us);
    default:
        return field_list_add(decoder, fields, key, value);
    }
}

static enum tarn_status annotation_charge(struct tn_decoder *decoder,
                                          const struct tn_annotation *annotation)
{
    const struct tn_model *model = decoder->model;
    uint64_t bytes = sizeof *annotation + tn_model_string(model, annotation->name).length +
                     tn_model_string(model, annotation->stage).length;

    bytes += tn_model_fields_written(model, annotation->fields, annotation->field_count);
    return tn_decode_charge(decoder, bytes);
}

static enum tarn_status annotation_decode(struct tn_decoder *decoder, struct tn_value item,
                                          struct tn_annotation *annotation)
{
    const struct tn_value_list *list = NULL;
    struct field_list fields = {0};
    enum tarn_status status =
        tn_field_dict(decoder, TN_KEY_EXTERNAL_ANNOTATIONS, item, "dicts of annotations", &list);

    *annotation = (struct tn_annotation){.device = -1, .time_us = TN_TIME_NONE};
    if (status == TARN_OK) {
        status = field_list_init(decoder, &fields, list->count / 2);
    }
    for (size_t i = 0; status == TARN_OK && i + 1 < list->count; i += 2) {
        status =
            annotation_set(decoder, annotation, &fields, list_key(list, i), list->items[i + 1]);
    }
    annotation->fields = fields.fields;
    annotation->field_count = fields.count;
    return status == TARN_OK ? annotation_charge(decoder, annotation) : status;
}

static enum tarn_status annotations_decode(struct tn_decoder *decoder, struct tn_value value)
{
    const struct tn_value_list *list = NULL;
    enum tarn_status status =
        tn_field_list(decoder, TN_KEY_EXTERNAL_ANNOTATIONS, value, "a list of annotations", &list);

    if (status != TARN_OK) {
        return status;
    }
    struct tn_annotation *annotations =
        tn_arena_alloc_array(&decoder->model->arena, list->count, sizeof *annotations);
    if (!annotations) {
        return tn_decode_memory(decoder);
    }
    for (size_t i = 0; i < list->count && status == TARN_OK; i++) {
        status = annotation_decode(decoder, list->items[i], &annotations[i]);
    }
    if (status == TARN_OK) {
        decoder->model->annotations = annotations;
        decoder->model->annotation_count = list->count;
    }
    return status;
}

/* Interval of a key like "64" (MiB), or TN_ROUNDUP_INTERVALS. */
static unsigned roundup_interval(const struct tn_decoder *decoder, uint32_t key)
{
    char *end;
    const struct tn_string text = tn_model_string(decoder->model, key);
    const unsigned long megabytes = strtoul(text.text, &end, 10);

    for (unsigned i = 0; i < TN_ROUNDUP_INTERVALS; i++) {
        if (text.length > 0 && *end == '\0' && megabytes == 1ul << i) {
            return i;
        }
    }
    return TN_ROUNDUP_INTERVALS;
}

static enum tarn_status roundup_decode(struct tn_decoder *decoder, struct tn_value value)
{
    struct tn_model_settings *settings = &decoder->model->settings;
    const struct tn_value_list *list = NULL;
    enum tarn_status status = tn_field_dict(decoder, TN_KEY_ROUNDUP, value, "a dict", &list);

    settings->has_roundup = true;
    for (size_t i = 0; status == TARN_OK && i + 1 < list->count; i += 2) {
        const uint32_t key = list_key(list, i);
        const unsigned interval = roundup_interval(decoder, key);

        if (interval == TN_ROUNDUP_INTERVALS) {
            tn_warning_add(decoder->model, TN_WARNING_SKIPPED_VALUE, key,
                           tn_value_offset(list->items[i]));
            continue;
        }
        status = tn_field_size(decoder, key, list->items[i + 1],
                               &settings->roundup_power2_divisions[interval]);
    }
    return status;
}

static enum tarn_status threshold_decode(struct tn_decoder *decoder, struct tn_value value,
                                         double *out)
{
    const enum tn_value_kind kind = tn_value_kind(value);

    if (kind != TN_VALUE_FLOAT && kind != TN_VALUE_INT) {
        return tn_field_wrong(decoder, TN_KEY_GC_THRESHOLD, value, "a number");
    }
    *out = kind == TN_VALUE_FLOAT ? value.as.real : (double)value.as.integer;
    return TARN_OK;
}

static enum tarn_status setting_set(struct tn_decoder *decoder, struct field_list *fields,
                                    uint32_t key, struct tn_value value)
{
    struct tn_model_settings *settings = &decoder->model->settings;

    switch (key) {
    case TN_KEY_CONF:
        return tn_field_string(decoder, key, value, &settings->conf);
    case TN_KEY_MAX_SPLIT_SIZE:
        if (tn_value_kind(value) == TN_VALUE_UINT) {
            settings->max_split_size = -1;
            return TARN_OK;
        }
        return tn_field_integer(decoder, key, value, &settings->max_split_size);
    case TN_KEY_GC_THRESHOLD:
        return threshold_decode(decoder, value, &settings->garbage_collection_threshold);
    case TN_KEY_EXPANDABLE_SEGMENTS:
        return tn_field_bool(decoder, key, value, &settings->expandable_segments);
    case TN_KEY_ROUNDUP:
        return roundup_decode(decoder, value);
    default:
        return field_list_add(decoder, fields, key, value);
    }
}

static enum tarn_status settings_decode(struct tn_decoder *decoder, struct tn_value value)
{
    struct tn_model_settings *settings = &decoder->model->settings;
    const struct tn_value_list *list = NULL;
    struct field_list fields = {0};
    enum tarn_status status =
        tn_field_dict(decoder, TN_KEY_ALLOCATOR_SETTINGS, value, "a dict", &list);

    *settings = (struct tn_model_settings){.present = true, .max_split_size = -1};
    if (status == TARN_OK) {
        status = field_list_init(decoder, &fields, list->count / 2);
    }
    for (size_t i = 0; status == TARN_OK && i + 1 < list->count; i += 2) {
        status = setting_set(decoder, &fields, list_key(list, i), list->items[i + 1]);
    }
    settings->fields = fields.fields;
    settings->field_count = fields.count;
    return status == TARN_OK
               ? tn_decode_charge(
                     decoder, tn_model_fields_written(decoder->model, fields.fields, fields.count))
               : status;
}

/* Top level. */

static enum tarn_status top_set(struct tn_decoder *decoder, struct tn_rest *rest, uint32_t key,
                                struct tn_value value)
{
    struct tn_model *model = decoder->model;

    switch (key) {
    case TN_KEY_SEGMENTS:
        return segments_decode(decoder, key, value, &model->segments, &model->segment_count);
    case TN_KEY_DEVICE_TRACES:
        model->has_traces = true;
        return traces_decode(decoder, key, value, &model->traces, &model->trace_count);
    case TN_KEY_HOST_SEGMENTS:
        model->has_host = true;
        return segments_decode(decoder, key, value, &model->host_segments,
                               &model->host_segment_count);
    case TN_KEY_HOST_TRACES:
        model->has_host = true;
        return traces_decode(decoder, key, value, &model->host_traces, &model->host_trace_count);
    case TN_KEY_ALLOCATOR_SETTINGS:
        return settings_decode(decoder, value);
    case TN_KEY_EXTERNAL_ANNOTATIONS:
        model->has_annotations = true;
        return annotations_decode(decoder, value);
    default:
        return tn_rest_add_unknown(decoder, rest, key, value);
    }
}

static bool has_key(const struct tn_decoder *decoder, const struct tn_value_list *list,
                    const char *name)
{
    for (size_t i = 0; list && i + 1 < list->count; i += 2) {
        const struct tn_string key = tn_model_string(decoder->model, list_key(list, i));

        if (key.length == strlen(name) && memcmp(key.text, name, key.length) == 0) {
            return true;
        }
    }
    return false;
}

/* A Chrome trace: an object with its events, or a list of them. */
static bool is_profile(const struct tn_decoder *decoder, struct tn_value top)
{
    const struct tn_value_list *items = tn_decode_items(decoder, top, false);

    if (items && tn_decode_is_list(decoder, top)) {
        return tn_always(items->count > 0) && /* without any it is a list of segments */
               has_key(decoder, tn_decode_items(decoder, items->items[0], true), "ph");
    }
    return has_key(decoder, tn_decode_items(decoder, top, true), "traceEvents");
}

static enum tarn_status top_wrong(struct tn_decoder *decoder, struct tn_value top)
{
    if (is_profile(decoder, top)) {
        return tn_fail_at(decoder->error, TARN_ERR_FORMAT, (int64_t)tn_value_offset(top),
                          "this file is a Chrome trace, as torch.profiler exports it, and not a "
                          "memory snapshot. \"tarn profile TRACE SNAPSHOT\" makes a snapshot of "
                          "the memory events in it");
    }
    return tn_fail_at(
        decoder->error, TARN_ERR_FORMAT, (int64_t)tn_value_offset(top),
        "this file is not a memory snapshot: its top level is neither a dict with the "
        "key `segments` nor a list of segments. Make one with "
        "torch.cuda.memory._dump_snapshot");
}

static bool top_has_segments(const struct tn_value_list *list)
{
    for (size_t i = 0; i + 1 < list->count; i += 2) {
        const uint32_t key = list_key(list, i);

        if (key == TN_KEY_SEGMENTS || key == TN_KEY_DEVICE_TRACES) {
            return true;
        }
    }
    return false;
}

/* Whether a list may contain segments: it is empty, or its first item looks like one. */
static bool top_lists_segments(const struct tn_decoder *decoder, const struct tn_value_list *list)
{
    const struct tn_value_list *first =
        list->count > 0 ? tn_decode_items(decoder, list->items[0], true) : NULL;
    bool looks_like_one = list->count == 0;

    for (size_t i = 0; first && i + 1 < first->count; i += 2) {
        const uint32_t key = list_key(first, i);

        looks_like_one = looks_like_one || key == TN_KEY_BLOCKS || key == TN_KEY_TOTAL_SIZE ||
                         key == TN_KEY_ADDRESS;
    }
    return looks_like_one;
}

enum tarn_status tn_decode_finish(struct tn_decoder *decoder, struct tn_value top)
{
    struct tn_model *model = decoder->model;
    enum tarn_status status = TARN_OK;

    const struct tn_value_list *items = tn_decode_items(decoder, top, false);

    if (items && tn_decode_is_list(decoder, top)) {
        if (!top_lists_segments(decoder, items)) {
            return top_wrong(decoder, top);
        }
        model->is_list_only = true;
        return segments_decode(decoder, TN_KEY_SEGMENTS, top, &model->segments,
                               &model->segment_count);
    }
    const struct tn_value_list *list = tn_decode_items(decoder, top, true);
    if (!list || (!top_has_segments(list) && !model->is_partial)) {
        return top_wrong(decoder, top);
    }
    struct tn_rest rest = {.count = 0};

    for (size_t i = 0; i + 1 < list->count && status == TARN_OK; i += 2) {
        status = top_set(decoder, &rest, list_key(list, i), list->items[i + 1]);
    }
    if (status == TARN_OK) {
        status = tn_rest_store(decoder, &rest, &model->rest);
    }
    return status == TARN_OK
               ? tn_decode_charge(decoder, tn_model_container(model, model->rest).written)
               : status;
}
