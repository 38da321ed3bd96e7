/* SPDX-License-Identifier: MIT */
#include "snapshot/encode.h"

#include "base/assertion.h"
#include "snapshot/decode_object.h" /* TN_SHAPE_KEYS_MAX */
#include "snapshot/keys.h"

/* A dict being written. */
struct dict {
    struct tn_format *format;
    uint64_t count;
};

static struct dict dict_begin(struct tn_format *format)
{
    format->ops->dict_begin(format);
    return (struct dict){.format = format};
}

static void dict_key(struct dict *dict, uint32_t key)
{
    dict->format->ops->key(dict->format, dict->count++, key);
}

static void dict_whole(struct dict *dict, uint32_t key, uint64_t value)
{
    dict_key(dict, key);
    dict->format->ops->whole(dict->format, value);
}

static void dict_integer(struct dict *dict, uint32_t key, int64_t value)
{
    dict_key(dict, key);
    dict->format->ops->integer(dict->format, value);
}

static void dict_boolean(struct dict *dict, uint32_t key, bool value)
{
    dict_key(dict, key);
    dict->format->ops->boolean(dict->format, value);
}

static void dict_string(struct dict *dict, uint32_t key, uint32_t string)
{
    dict_key(dict, key);
    dict->format->ops->string(dict->format, string);
}

/* Writes nothing for TN_STRING_NONE: the key was absent. */
static void dict_string_if(struct dict *dict, uint32_t key, uint32_t string)
{
    if (string != TN_STRING_NONE) {
        dict_string(dict, key, string);
    }
}

static void dict_pair(struct dict *dict, uint32_t key, const struct tn_pool_id *pool)
{
    dict_key(dict, key);
    dict->format->ops->pair(dict->format, pool->id);
}

static void dict_end(struct dict *dict)
{
    dict->format->ops->dict_end(dict->format);
}

/* ---- values ---- */

enum {
    DEPTH_MAX = 128 /* of containers, as in decode_rest.c */
};

/* A container that is being written. */
struct level {
    struct tn_container container;
    uint32_t next;
};

static void container_begin(struct tn_format *format, const struct tn_container *container)
{
    switch ((enum tn_container_kind)container->kind) {
    case TN_CONTAINER_DICT:
        format->ops->dict_begin(format);
        break;
    case TN_CONTAINER_LIST:
        format->ops->list_begin(format, container->count);
        break;
    case TN_CONTAINER_TUPLE:
        format->ops->tuple_begin(format, container->count);
        break;
    }
}

static void container_end(struct tn_format *format, const struct tn_container *container)
{
    switch ((enum tn_container_kind)container->kind) {
    case TN_CONTAINER_DICT:
        format->ops->dict_end(format);
        break;
    case TN_CONTAINER_LIST:
        format->ops->list_end(format, container->count);
        break;
    case TN_CONTAINER_TUPLE:
        format->ops->tuple_end(format, container->count);
        break;
    }
}

static void container_item(struct tn_format *format, const struct tn_container *container,
                           uint32_t index)
{
    if (container->kind == TN_CONTAINER_TUPLE) {
        format->ops->tuple_item(format, index);
    } else {
        format->ops->item(format, index);
    }
}

/* Both only as long as no frame contains another (has_frames in model.h). */
static void encode_stack(struct tn_format *format, uint32_t number);
static void encode_frame(struct tn_format *format, uint32_t number);

/* A value that is no container. */
static void encode_leaf(struct tn_format *format, const struct tn_field *field)
{
    switch ((enum tn_field_kind)field->kind) {
    case TN_FIELD_NONE:
        format->ops->none(format);
        break;
    case TN_FIELD_BOOL:
        format->ops->boolean(format, field->value.boolean);
        break;
    case TN_FIELD_INT:
        format->ops->integer(format, field->value.integer);
        break;
    case TN_FIELD_UINT:
        format->ops->whole(format, field->value.unsigned_integer);
        break;
    case TN_FIELD_FLOAT:
        format->ops->real(format, field->value.real);
        break;
    case TN_FIELD_STRING:
        format->ops->string(format, field->value.string);
        break;
    case TN_FIELD_STACK:
        encode_stack(format, field->value.number);
        break;
    case TN_FIELD_FRAME:
        encode_frame(format, field->value.number);
        break;
    case TN_FIELD_CONTAINER: /* is no leaf */
        tn_no_case();
        break;
    }
}

/* Without recursion: files may nest containers. */
static void encode_value(struct tn_format *format, const struct tn_field *value)
{
    struct level levels[DEPTH_MAX] = {{.next = 0}};
    unsigned depth = 0;
    const struct tn_field *field = value;

    for (;;) {
        if (field->kind != TN_FIELD_CONTAINER) {
            encode_leaf(format, field);
        } else if (tn_always(depth < DEPTH_MAX)) {
            levels[depth++] =
                (struct level){.container = tn_model_container(format->model, field->value.number)};
            container_begin(format, &levels[depth - 1].container);
        }
        while (depth > 0 && levels[depth - 1].next == levels[depth - 1].container.count) {
            container_end(format, &levels[--depth].container);
        }
        if (depth == 0) {
            return;
        }
        struct level *level = &levels[depth - 1];
        const uint32_t index = level->next++;

        field = &level->container.items[index];
        if (level->container.kind == TN_CONTAINER_DICT) {
            format->ops->key(format, index, field->key);
        } else {
            container_item(format, &level->container, index);
        }
    }
}

static void dict_field(struct dict *dict, const struct tn_field *field)
{
    dict_key(dict, field->key);
    encode_value(dict->format, field);
}

/* Adds the unknown keys of a record. */
static void dict_rest(struct dict *dict, uint32_t container)
{
    const struct tn_container rest = tn_model_container(dict->format->model, container);

    for (uint32_t i = 0; i < rest.count; i++) {
        dict_field(dict, &rest.items[i]);
    }
}

/* ---- stacks ---- */

static void encode_new_frame(struct tn_format *format, const struct tn_frame *frame)
{
    struct dict dict = dict_begin(format);

    dict_string_if(&dict, TN_KEY_NAME, frame->name);
    dict_string_if(&dict, TN_KEY_FILENAME, frame->filename);
    dict_integer(&dict, TN_KEY_LINE, frame->line);
    if (frame->fx != 0) {
        const struct tn_frame_fx *fx = tn_chunked_vec_at(&format->model->fx, frame->fx);

        dict_string_if(&dict, TN_KEY_FX_NODE_OP, fx->node_op);
        dict_string_if(&dict, TN_KEY_FX_NODE_NAME, fx->node_name);
        dict_string_if(&dict, TN_KEY_FX_NODE_TARGET, fx->node_target);
        dict_string_if(&dict, TN_KEY_FX_ORIGINAL_TRACE, fx->original_trace);
        dict_rest(&dict, fx->rest);
    }
    dict_end(&dict);
}

static bool recall(struct tn_format *format, enum tn_shared kind, uint32_t number)
{
    return format->ops->recall && format->ops->recall(format, kind, number);
}

static void remember(struct tn_format *format, enum tn_shared kind, uint32_t number)
{
    if (format->ops->remember) {
        format->ops->remember(format, kind, number);
    }
}

static void encode_frame(struct tn_format *format, uint32_t number)
{
    if (!recall(format, TN_SHARED_FRAME, number)) {
        encode_new_frame(format, tn_model_frame(format->model, number));
        remember(format, TN_SHARED_FRAME, number);
    }
}

static void encode_new_stack(struct tn_format *format, uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(format->model, number);

    format->ops->list_begin(format, stack.count);
    for (uint32_t i = 0; i < stack.count; i++) {
        format->ops->item(format, i);
        encode_frame(format, stack.frames[i]);
    }
    format->ops->list_end(format, stack.count);
}

static void encode_stack(struct tn_format *format, uint32_t number)
{
    if (!recall(format, TN_SHARED_STACK, number)) {
        encode_new_stack(format, number);
        remember(format, TN_SHARED_STACK, number);
    }
}

static void dict_stack_if(struct dict *dict, uint32_t key, uint32_t number)
{
    struct tn_format *format = dict->format;

    if (number == TN_STACK_NONE) {
        return;
    }
    dict_key(dict, key);
    encode_stack(format, number);
}

/* ---- segments ---- */

static void encode_history(struct tn_format *format, const struct tn_block_history *history)
{
    struct dict dict = dict_begin(format);

    dict_whole(&dict, TN_KEY_ADDR, history->address);
    dict_whole(&dict, TN_KEY_REAL_SIZE, history->real_size);
    dict_stack_if(&dict, TN_KEY_FRAMES, history->stack);
    dict_end(&dict);
}

static void encode_block(struct tn_format *format, const struct tn_model_block *block)
{
    struct dict dict = dict_begin(format);

    if (block->has_address) {
        dict_whole(&dict, TN_KEY_ADDRESS, block->address);
    }
    dict_whole(&dict, TN_KEY_SIZE, block->size);
    if (block->has_requested_size) {
        dict_whole(&dict, TN_KEY_REQUESTED_SIZE, block->requested_size);
    }
    dict_string(&dict, TN_KEY_STATE, tn_word_of_state(block->state));
    if (block->history_count > 0) {
        dict_key(&dict, TN_KEY_HISTORY);
        format->ops->list_begin(format, block->history_count);
        for (uint32_t i = 0; i < block->history_count; i++) {
            format->ops->item(format, i);
            encode_history(format, &block->history[i]);
        }
        format->ops->list_end(format, block->history_count);
    } else {
        dict_stack_if(&dict, TN_KEY_FRAMES, block->stack);
    }
    dict_rest(&dict, block->rest);
    dict_end(&dict);
}

static void encode_segment(struct tn_format *format, const struct tn_model_segment *segment)
{
    struct dict dict = dict_begin(format);

    dict_integer(&dict, TN_KEY_DEVICE, segment->device);
    dict_whole(&dict, TN_KEY_ADDRESS, segment->address);
    dict_whole(&dict, TN_KEY_TOTAL_SIZE, segment->total_size);
    dict_whole(&dict, TN_KEY_ALLOCATED_SIZE, segment->allocated_size);
    dict_whole(&dict, TN_KEY_ACTIVE_SIZE, segment->active_size);
    dict_whole(&dict, TN_KEY_REQUESTED_SIZE, segment->requested_size);
    dict_whole(&dict, TN_KEY_STREAM, segment->stream);
    dict_string(&dict, TN_KEY_SEGMENT_TYPE, segment->is_large ? TN_WORD_LARGE : TN_WORD_SMALL);
    dict_pair(&dict, TN_KEY_SEGMENT_POOL_ID, &segment->pool);
    dict_boolean(&dict, TN_KEY_IS_EXPANDABLE, segment->is_expandable);
    dict_stack_if(&dict, TN_KEY_FRAMES, segment->stack);
    dict_rest(&dict, segment->rest);
    dict_key(&dict, TN_KEY_BLOCKS);
    format->ops->list_begin(format, segment->block_count);
    for (size_t i = 0; i < segment->block_count; i++) {
        format->ops->item(format, i);
        encode_block(format, &segment->blocks[i]);
    }
    format->ops->list_end(format, segment->block_count);
    dict_end(&dict);
}

static void encode_segments(struct tn_format *format, const struct tn_model_segment *segments,
                            size_t count)
{
    format->ops->list_begin(format, count);
    for (size_t i = 0; i < count; i++) {
        format->ops->item(format, i);
        encode_segment(format, &segments[i]);
    }
    format->ops->list_end(format, count);
}

/* ---- traces ---- */

static uint32_t action_string(const struct tn_trace_entry *entry,
                              const struct tn_trace_extra *extra)
{
    return entry->action == TN_TRACE_OTHER ? extra->action_name
                                           : (uint32_t)TN_WORD_FIRST_ACTION + entry->action;
}

/* A dict being built. */
struct row {
    struct tn_item items[TN_SHAPE_KEYS_MAX];
    uint32_t count;
};

static struct tn_item *row_add(struct row *row, uint32_t key, enum tn_item_kind kind)
{
    struct tn_item *item = &row->items[row->count++];

    item->key = key;
    item->kind = kind;
    return item;
}

static void row_whole(struct row *row, uint32_t key, uint64_t value)
{
    row_add(row, key, TN_ITEM_WHOLE)->value.number = value;
}

/* Adds nothing for TN_STRING_NONE. */
static void row_string_if(struct row *row, uint32_t key, uint32_t string)
{
    if (string != TN_STRING_NONE) {
        row_add(row, key, TN_ITEM_STRING)->value.number = string;
    }
}

static void row_time_if(struct row *row, uint32_t key, int64_t time_us)
{
    if (time_us != TN_TIME_NONE) {
        row_add(row, key, TN_ITEM_INTEGER)->value.integer = time_us;
    }
}

static void row_pool_if(struct row *row, uint32_t key, const struct tn_trace_extra *extra)
{
    if (extra->has_pool) {
        row_add(row, key, TN_ITEM_PAIR)->value.pair = extra->pool.id;
    }
}

static void row_stack_if(struct row *row, uint32_t key, uint32_t stack)
{
    if (stack != TN_STACK_NONE) {
        row_add(row, key, TN_ITEM_STACK)->value.number = stack;
    }
}

/* Adds one key of an entry, if the entry has it. */
static inline void row_entry_key(struct row *row, uint32_t key, const struct tn_trace_entry *entry,
                                 const struct tn_trace_extra *extra)
{
    switch (key) {
    case TN_KEY_ACTION:
        row_string_if(row, key, action_string(entry, extra));
        break;
    case TN_KEY_ADDR:
    case TN_KEY_DEVICE_FREE:
        row_whole(row, key, entry->address);
        break;
    case TN_KEY_SIZE:
        row_whole(row, key, entry->size);
        break;
    case TN_KEY_STREAM:
        row_whole(row, key, entry->stream);
        break;
    case TN_KEY_TIME_US:
        row_time_if(row, key, entry->time_us);
        break;
    case TN_KEY_COMPILE_CONTEXT:
        row_string_if(row, key, extra->compile_context);
        break;
    case TN_KEY_USER_METADATA:
        row_string_if(row, key, extra->user_metadata);
        break;
    case TN_KEY_INTERNAL_METADATA:
        row_string_if(row, key, extra->internal_metadata);
        break;
    case TN_KEY_CATEGORY:
        row_string_if(row, key, extra->category);
        break;
    case TN_KEY_POOL_ID:
        row_pool_if(row, key, extra);
        break;
    case TN_KEY_FRAMES:
        row_stack_if(row, key, entry->stack);
        break;
    default:
        break;
    }
}

/* The same, and what the entry has under a key that its record has no field for. */
static inline void row_any_key(struct row *row, uint32_t key, const struct tn_trace_entry *entry,
                               const struct tn_trace_extra *extra, const struct tn_model *model)
{
    const struct tn_field *field =
        extra->rest == TN_CONTAINER_NONE ? NULL : tn_container_find(model, extra->rest, key);

    if (tn_likely(!field)) {
        row_entry_key(row, key, entry, extra);
    } else {
        row_add(row, key, TN_ITEM_FIELD)->value.field = field;
    }
}

static void dict_item(struct dict *dict, const struct tn_item *item)
{
    switch ((enum tn_item_kind)item->kind) {
    case TN_ITEM_WHOLE:
        dict_whole(dict, item->key, item->value.number);
        break;
    case TN_ITEM_INTEGER:
        dict_integer(dict, item->key, item->value.integer);
        break;
    case TN_ITEM_STRING:
        dict_string(dict, item->key, (uint32_t)item->value.number);
        break;
    case TN_ITEM_PAIR:
        dict_key(dict, item->key);
        dict->format->ops->pair(dict->format, item->value.pair);
        break;
    case TN_ITEM_STACK:
        dict_stack_if(dict, item->key, (uint32_t)item->value.number);
        break;
    case TN_ITEM_FIELD:
        dict_field(dict, item->value.field);
        break;
    }
}

static void encode_row(struct tn_format *format, const struct row *row)
{
    if (tn_likely(format->ops->row && format->ops->row(format, row->items, row->count))) {
        return;
    }
    struct dict dict = dict_begin(format);

    for (uint32_t i = 0; i < row->count; i++) {
        dict_item(&dict, &row->items[i]);
    }
    dict_end(&dict);
}

/* PyTorch's order of keys. */
static struct tn_shape usual_shape(const struct tn_trace_entry *entry)
{
    static const uint32_t usual[] = {TN_KEY_ACTION,        TN_KEY_ADDR,    TN_KEY_SIZE,
                                     TN_KEY_STREAM,        TN_KEY_TIME_US, TN_KEY_COMPILE_CONTEXT,
                                     TN_KEY_USER_METADATA, TN_KEY_POOL_ID, TN_KEY_INTERNAL_METADATA,
                                     TN_KEY_CATEGORY,      TN_KEY_FRAMES};
    static const uint32_t oom[] = {
        TN_KEY_ACTION,        TN_KEY_DEVICE_FREE, TN_KEY_SIZE,
        TN_KEY_STREAM,        TN_KEY_TIME_US,     TN_KEY_COMPILE_CONTEXT,
        TN_KEY_USER_METADATA, TN_KEY_POOL_ID,     TN_KEY_INTERNAL_METADATA,
        TN_KEY_CATEGORY,      TN_KEY_FRAMES};

    return (struct tn_shape){.keys = entry->action == TN_TRACE_OOM ? oom : usual,
                             .count = sizeof usual / sizeof usual[0]};
}

void tn_encode_entry(struct tn_format *format, const struct tn_trace_entry *entry)
{
    const struct tn_trace_extra *extra = tn_model_extra(format->model, entry->extra);
    const struct tn_shape shape =
        extra->shape ? tn_model_shape(format->model, extra->shape) : usual_shape(entry);
    struct row row;

    row.count = 0;
    for (uint32_t i = 0; i < shape.count; i++) {
        row_any_key(&row, shape.keys[i], entry, extra, format->model);
    }
    encode_row(format, &row);
}

static void encode_traces(struct tn_format *format, const struct tn_trace *traces, size_t count)
{
    format->ops->list_begin(format, count);
    for (size_t i = 0; i < count; i++) {
        format->ops->item(format, i);
        format->ops->list_begin(format, traces[i].count);
        for (uint64_t k = 0; k < traces[i].count; k++) {
            format->ops->item(format, k);
            tn_encode_entry(format, tn_trace_at(format->model, &traces[i], k));
        }
        format->ops->list_end(format, traces[i].count);
    }
    format->ops->list_end(format, count);
}

/* ---- open dicts ---- */

static void encode_annotation(struct tn_format *format, const struct tn_annotation *annotation)
{
    struct dict dict = dict_begin(format);

    dict_string_if(&dict, TN_KEY_STAGE, annotation->stage);
    dict_string_if(&dict, TN_KEY_NAME, annotation->name);
    if (annotation->device >= 0) {
        dict_integer(&dict, TN_KEY_DEVICE, annotation->device);
    }
    if (annotation->time_us != TN_TIME_NONE) {
        dict_integer(&dict, TN_KEY_TIME_US, annotation->time_us);
    }
    for (size_t i = 0; i < annotation->field_count; i++) {
        dict_field(&dict, &annotation->fields[i]);
    }
    dict_end(&dict);
}

static void encode_annotations(struct tn_format *format)
{
    const struct tn_model *model = format->model;

    format->ops->list_begin(format, model->annotation_count);
    for (size_t i = 0; i < model->annotation_count; i++) {
        format->ops->item(format, i);
        encode_annotation(format, &model->annotations[i]);
    }
    format->ops->list_end(format, model->annotation_count);
}

static void encode_roundup(struct tn_format *format, const struct tn_model_settings *settings)
{
    struct dict dict = dict_begin(format);

    for (unsigned i = 0; i < TN_ROUNDUP_INTERVALS; i++) {
        dict_whole(&dict, (uint32_t)TN_WORD_FIRST_INTERVAL + i,
                   settings->roundup_power2_divisions[i]);
    }
    dict_end(&dict);
}

static void encode_settings(struct tn_format *format)
{
    const struct tn_model_settings *settings = &format->model->settings;
    struct dict dict = dict_begin(format);

    dict_string_if(&dict, TN_KEY_CONF, settings->conf);
    dict_integer(&dict, TN_KEY_MAX_SPLIT_SIZE, settings->max_split_size);
    dict_key(&dict, TN_KEY_GC_THRESHOLD);
    format->ops->real(format, settings->garbage_collection_threshold);
    dict_boolean(&dict, TN_KEY_EXPANDABLE_SEGMENTS, settings->expandable_segments);
    for (size_t i = 0; i < settings->field_count; i++) {
        dict_field(&dict, &settings->fields[i]);
    }
    if (settings->has_roundup) {
        dict_key(&dict, TN_KEY_ROUNDUP);
        encode_roundup(format, settings);
    }
    dict_end(&dict);
}

/* ---- top level ---- */

static void encode_top(struct tn_format *format)
{
    const struct tn_model *model = format->model;
    struct dict dict = dict_begin(format);

    dict_key(&dict, TN_KEY_SEGMENTS);
    encode_segments(format, model->segments, model->segment_count);
    if (model->has_traces) {
        dict_key(&dict, TN_KEY_DEVICE_TRACES);
        encode_traces(format, model->traces, model->trace_count);
    }
    if (model->settings.present) {
        dict_key(&dict, TN_KEY_ALLOCATOR_SETTINGS);
        encode_settings(format);
    }
    if (model->has_annotations) {
        dict_key(&dict, TN_KEY_EXTERNAL_ANNOTATIONS);
        encode_annotations(format);
    }
    if (model->has_host) {
        dict_key(&dict, TN_KEY_HOST_SEGMENTS);
        encode_segments(format, model->host_segments, model->host_segment_count);
        dict_key(&dict, TN_KEY_HOST_TRACES);
        encode_traces(format, model->host_traces, model->host_trace_count);
    }
    dict_rest(&dict, model->rest);
    dict_end(&dict);
}

void tn_encode(struct tn_format *format)
{
    if (format->ops->begin) {
        format->ops->begin(format);
    }
    if (format->model->is_list_only) {
        encode_segments(format, format->model->segments, format->model->segment_count);
    } else {
        encode_top(format);
    }
    format->ops->end(format);
}
