/* SPDX-License-Identifier: MIT */
#include "snapshot/model.h"

#include "base/assertion.h"
#include "base/checked.h"
#include "base/errinfo.h"

#include <string.h>

enum {
    EXTRA_MAX = (1 << 27) - 1,
    FRAME_WRITTEN = 48, /* bytes of a frame besides its texts, about as in JSON */
    FIELD_WRITTEN = 8
};

static const char *const action_names[TN_TRACE_ACTION_COUNT] = {
#define ACTION_NAME(name, text) [TN_TRACE_##name] = text,
    TN_TRACE_ACTION_MAP(ACTION_NAME)
#undef ACTION_NAME
        [TN_TRACE_OTHER] = "other",
};

const char *tn_trace_action_name(enum tn_trace_action action)
{
    return action_names[action];
}

const char *tn_block_state_name(enum tn_block_state state)
{
    static const char *const names[] = {
        [TN_BLOCK_INACTIVE] = "inactive",
        [TN_BLOCK_ACTIVE_ALLOCATED] = "active_allocated",
        [TN_BLOCK_ACTIVE_PENDING_FREE] = "active_pending_free",
    };
    return names[state];
}

enum tarn_status tn_model_memory_status(const struct tn_model *model)
{
    return tn_budget_status(&model->budget);
}

static void model_init_tables(struct tn_model *model)
{
    struct tn_budget *budget = &model->budget;

    tn_arena_init(&model->arena, budget);
    tn_chunked_vec_init(&model->strings, budget, sizeof(struct tn_string));
    tn_chunked_vec_init(&model->frames, budget, sizeof(struct tn_frame));
    tn_chunked_vec_init(&model->stacks, budget, sizeof(struct tn_stack));
    tn_chunked_vec_init(&model->extras, budget, sizeof(struct tn_trace_extra));
    tn_chunked_vec_init(&model->shapes, budget, sizeof(struct tn_shape));
    tn_chunked_vec_init(&model->fx, budget, sizeof(struct tn_frame_fx));
    tn_chunked_vec_init(&model->containers, budget, sizeof(struct tn_container));
    tn_chunked_vec_init(&model->entries, budget, sizeof(struct tn_trace_entry));
    tn_id_table_init(&model->string_ids, budget);
    tn_id_table_init(&model->frame_ids, budget);
    tn_id_table_init(&model->stack_ids, budget);
    tn_id_table_init(&model->extra_ids, budget);
    tn_id_table_init(&model->shape_ids, budget);
    tn_id_table_init(&model->fx_ids, budget);
    tn_id_table_init(&model->container_ids, budget);
}

/* Adds number 0 of each table, which means "none", and the empty stack. */
static bool model_push_zeros(struct tn_model *model)
{
    struct tn_string *string = tn_chunked_vec_push(&model->strings);
    struct tn_frame *frame = tn_chunked_vec_push(&model->frames);
    struct tn_stack *stack = tn_chunked_vec_push(&model->stacks);
    struct tn_trace_extra *extra = tn_chunked_vec_push(&model->extras);
    struct tn_shape *shape = tn_chunked_vec_push(&model->shapes);
    struct tn_frame_fx *fx = tn_chunked_vec_push(&model->fx);
    struct tn_container *container = tn_chunked_vec_push(&model->containers);
    uint32_t empty = TN_STACK_NONE;

    if (!string || !frame || !stack || !extra || !shape || !fx || !container) {
        return false;
    }
    *string = (struct tn_string){"", 0};
    *frame = (struct tn_frame){0};
    *stack = (struct tn_stack){0};
    *extra = (struct tn_trace_extra){0};
    *shape = (struct tn_shape){0};
    *fx = (struct tn_frame_fx){0};
    *container = (struct tn_container){0};
    return tn_model_add_stack(model, NULL, 0, &empty) == TARN_OK &&
           tn_always(empty == TN_STACK_EMPTY); /* the first that is added */
}

enum tarn_status tn_model_init(struct tn_model *model, uint64_t memory_limit)
{
    memset(model, 0, sizeof *model);
    model->budget.limit = memory_limit;
    if (!tn_mul_u64(memory_limit, TN_WRITTEN_PER_MEMORY, &model->written_most)) {
        model->written_most = UINT64_MAX;
    }
    model_init_tables(model);
    if (!model_push_zeros(model)) {
        const enum tarn_status status = tn_model_memory_status(model);

        tn_model_fini(model);
        return status;
    }
    return TARN_OK;
}

void tn_model_fini(struct tn_model *model)
{
    tn_id_table_fini(&model->string_ids);
    tn_id_table_fini(&model->frame_ids);
    tn_id_table_fini(&model->stack_ids);
    tn_id_table_fini(&model->extra_ids);
    tn_id_table_fini(&model->shape_ids);
    tn_id_table_fini(&model->fx_ids);
    tn_id_table_fini(&model->container_ids);
    tn_chunked_vec_fini(&model->strings);
    tn_chunked_vec_fini(&model->frames);
    tn_chunked_vec_fini(&model->stacks);
    tn_chunked_vec_fini(&model->extras);
    tn_chunked_vec_fini(&model->shapes);
    tn_chunked_vec_fini(&model->fx);
    tn_chunked_vec_fini(&model->containers);
    tn_chunked_vec_fini(&model->entries);
    tn_arena_fini(&model->arena);
}

/* Appends a copy of the item to `vec` and its number to `ids`. */
static enum tarn_status model_enter(struct tn_model *model, struct tn_chunked_vec *vec,
                                    struct tn_id_table *ids, uint32_t hash, const void *item,
                                    uint32_t *number_out)
{
    const uint64_t number = vec->count;

    if (number >= UINT32_MAX) {
        return TARN_ERR_LIMIT;
    }
    void *added = tn_chunked_vec_push(vec);

    if (!added) {
        return tn_model_memory_status(model);
    }
    memcpy(added, item, vec->item_size);
    if (!tn_id_table_add(ids, hash, (uint32_t)number)) {
        vec->count--;
        return tn_model_memory_status(model);
    }
    *number_out = (uint32_t)number;
    return TARN_OK;
}

static bool string_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_string *have = tn_chunked_vec_at(owner, id);
    const struct tn_string *want = key;

    return have->length == want->length && memcmp(have->text, want->text, want->length) == 0;
}

enum tarn_status tn_model_add_string(struct tn_model *model, const char *text, size_t length,
                                     uint32_t *string_out)
{
    const struct tn_string key = {text, length};
    const uint32_t hash = tn_hash_bytes(text, length);

    if (tn_id_table_find(&model->string_ids, hash, string_equal, &model->strings, &key,
                         string_out)) {
        return TARN_OK;
    }
    const char *copy = tn_arena_copy_text(&model->arena, text, length);
    if (!copy) {
        return tn_model_memory_status(model);
    }
    const struct tn_string string = {copy, length};
    return model_enter(model, &model->strings, &model->string_ids, hash, &string, string_out);
}

static bool frame_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_frame *have = tn_chunked_vec_at(owner, id);
    const struct tn_frame *want = key;

    return have->name == want->name && have->filename == want->filename &&
           have->line == want->line && have->fx == want->fx;
}

enum tarn_status tn_model_add_frame(struct tn_model *model, const struct tn_frame *frame,
                                    uint32_t *frame_out)
{
    const uint64_t words[] = {frame->name, frame->filename, (uint64_t)frame->line, frame->fx};
    const uint32_t hash = tn_hash_bytes(words, sizeof words);

    if (tn_id_table_find(&model->frame_ids, hash, frame_equal, &model->frames, frame, frame_out)) {
        return TARN_OK;
    }
    return model_enter(model, &model->frames, &model->frame_ids, hash, frame, frame_out);
}

static bool fx_equal(const void *owner, uint32_t id, const void *key)
{
    return memcmp(tn_chunked_vec_at(owner, id), key, sizeof(struct tn_frame_fx)) == 0;
}

enum tarn_status tn_model_add_fx(struct tn_model *model, const struct tn_frame_fx *fx,
                                 uint32_t *fx_out)
{
    const uint32_t hash = tn_hash_bytes(fx, sizeof *fx);

    if (tn_id_table_find(&model->fx_ids, hash, fx_equal, &model->fx, fx, fx_out)) {
        return TARN_OK;
    }
    return model_enter(model, &model->fx, &model->fx_ids, hash, fx, fx_out);
}

/* A list of numbers: a stack or a shape. */
struct number_list {
    const uint32_t *numbers;
    size_t count;
};

static bool numbers_equal(const uint32_t *have, size_t count, const struct number_list *want)
{
    return count == want->count &&
           (count == 0 || memcmp(have, want->numbers, count * sizeof *have) == 0);
}

static bool stack_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_stack *have = tn_chunked_vec_at(owner, id);

    tn_assert(id != TN_STACK_NONE); /* number 0 is in no table */
    return numbers_equal(have->frames, have->count, key);
}

static uint64_t string_written(const struct tn_model *model, uint32_t string)
{
    return tn_model_string(model, string).length;
}

static uint64_t frame_written(const struct tn_model *model, uint32_t number)
{
    const struct tn_frame *frame = tn_model_frame(model, number);
    const struct tn_frame_fx *fx = tn_chunked_vec_at(&model->fx, frame->fx);

    return (uint64_t)FRAME_WRITTEN + string_written(model, frame->name) +
           string_written(model, frame->filename) + string_written(model, fx->node_op) +
           string_written(model, fx->node_name) + string_written(model, fx->node_target) +
           string_written(model, fx->original_trace) + tn_model_container(model, fx->rest).written;
}

static uint32_t frames_written(const struct tn_model *model, const uint32_t *frames, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count && bytes < UINT32_MAX; i++) {
        bytes += frame_written(model, frames[i]);
    }
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

enum tarn_status tn_model_add_stack(struct tn_model *model, const uint32_t *frames, size_t count,
                                    uint32_t *stack_out)
{
    const struct number_list key = {frames, count};
    const uint32_t hash = tn_hash_bytes(frames, count * sizeof *frames);

    if (tn_id_table_find(&model->stack_ids, hash, stack_equal, &model->stacks, &key, stack_out)) {
        return TARN_OK;
    }
    const uint32_t *copy = tn_arena_copy(&model->arena, frames, count, sizeof *frames);
    if (!copy) {
        return tn_model_memory_status(model);
    }
    const struct tn_stack stack = {copy, (uint32_t)count, frames_written(model, frames, count)};
    return model_enter(model, &model->stacks, &model->stack_ids, hash, &stack, stack_out);
}

static bool shape_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_shape *have = tn_chunked_vec_at(owner, id);

    return numbers_equal(have->keys, have->count, key);
}

enum tarn_status tn_model_add_shape(struct tn_model *model, const uint32_t *keys, size_t count,
                                    uint32_t *shape_out)
{
    const struct number_list key = {keys, count};
    const uint32_t hash = tn_hash_bytes(keys, count * sizeof *keys);

    if (tn_id_table_find(&model->shape_ids, hash, shape_equal, &model->shapes, &key, shape_out)) {
        return TARN_OK;
    }
    const uint32_t *copy = tn_arena_copy(&model->arena, keys, count, sizeof *keys);
    if (!copy) {
        return tn_model_memory_status(model);
    }
    const struct tn_shape shape = {copy, (uint32_t)count};
    return model_enter(model, &model->shapes, &model->shape_ids, hash, &shape, shape_out);
}

static bool extra_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_trace_extra *a = tn_chunked_vec_at(owner, id);
    const struct tn_trace_extra *b = key;

    return a->compile_context == b->compile_context && a->user_metadata == b->user_metadata &&
           a->internal_metadata == b->internal_metadata && a->category == b->category &&
           a->action_name == b->action_name && a->shape == b->shape && a->has_pool == b->has_pool &&
           a->rest == b->rest && a->pool.id[0] == b->pool.id[0] && a->pool.id[1] == b->pool.id[1];
}

static uint32_t extra_hash(const struct tn_trace_extra *extra)
{
    const uint64_t words[] = {
        extra->compile_context | (uint64_t)extra->user_metadata << 32,
        extra->internal_metadata | (uint64_t)extra->category << 32,
        extra->action_name | (uint64_t)extra->shape << 32,
        extra->rest,
        extra->pool.id[0],
        extra->pool.id[1] + (extra->has_pool ? 1 : 0),
    };
    return tn_hash_bytes(words, sizeof words);
}

enum tarn_status tn_model_add_extra(struct tn_model *model, const struct tn_trace_extra *extra,
                                    uint32_t *extra_out)
{
    if (extra_equal(&model->extras, TN_EXTRA_NONE, extra)) {
        *extra_out = TN_EXTRA_NONE;
        return TARN_OK;
    }
    const uint32_t hash = extra_hash(extra);

    if (tn_id_table_find(&model->extra_ids, hash, extra_equal, &model->extras, extra, extra_out)) {
        return TARN_OK;
    }
    if (model->extras.count > EXTRA_MAX) {
        return TARN_ERR_LIMIT;
    }
    return model_enter(model, &model->extras, &model->extra_ids, hash, extra, extra_out);
}

/* The bits of a value; what its kind does not use is 0. */
static uint64_t field_bits(const struct tn_field *field)
{
    uint64_t bits = 0;

    switch ((enum tn_field_kind)field->kind) {
    case TN_FIELD_NONE:
        break;
    case TN_FIELD_BOOL:
        bits = field->value.boolean;
        break;
    case TN_FIELD_INT:
    case TN_FIELD_UINT:
        bits = field->value.unsigned_integer;
        break;
    case TN_FIELD_FLOAT:
        memcpy(&bits, &field->value.real, sizeof bits);
        break;
    case TN_FIELD_STRING:
    case TN_FIELD_CONTAINER:
    case TN_FIELD_STACK:
    case TN_FIELD_FRAME:
        bits = field->value.number;
        break;
    }
    return bits;
}

static bool container_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_container *have = tn_chunked_vec_at(owner, id);
    const struct tn_container *want = key;

    tn_assert(id != TN_CONTAINER_NONE);
    if (have->kind != want->kind || have->count != want->count) {
        return false;
    }
    for (uint32_t i = 0; i < have->count; i++) {
        const struct tn_field *a = &have->items[i];
        const struct tn_field *b = &want->items[i];

        if (a->key != b->key || a->kind != b->kind || field_bits(a) != field_bits(b)) {
            return false;
        }
    }
    return true;
}

static uint32_t container_hash(const struct tn_container *container)
{
    uint64_t hash = (uint64_t)container->kind << 32 | container->count;

    for (uint32_t i = 0; i < container->count; i++) {
        const struct tn_field *item = &container->items[i];
        const uint64_t words[] = {hash, item->key | (uint64_t)item->kind << 32, field_bits(item)};

        hash = tn_hash_bytes(words, sizeof words);
    }
    return (uint32_t)hash;
}

static uint64_t field_written(const struct tn_model *model, const struct tn_field *field)
{
    const uint64_t bytes = FIELD_WRITTEN + string_written(model, field->key);

    switch ((enum tn_field_kind)field->kind) {
    case TN_FIELD_STRING:
        return bytes + string_written(model, field->value.string);
    case TN_FIELD_CONTAINER:
        return bytes + tn_model_container(model, field->value.number).written;
    case TN_FIELD_STACK:
        return bytes + tn_model_stack(model, field->value.number).written;
    case TN_FIELD_FRAME:
        return bytes + frame_written(model, field->value.number);
    case TN_FIELD_NONE:
    case TN_FIELD_BOOL:
    case TN_FIELD_INT:
    case TN_FIELD_UINT:
    case TN_FIELD_FLOAT:
        break;
    }
    return bytes;
}

uint64_t tn_model_fields_written(const struct tn_model *model, const struct tn_field *fields,
                                 size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += field_written(model, &fields[i]);
    }
    return bytes;
}

bool tn_field_has_frames(const struct tn_model *model, const struct tn_field *field)
{
    return field->kind == TN_FIELD_STACK || field->kind == TN_FIELD_FRAME ||
           (field->kind == TN_FIELD_CONTAINER &&
            tn_model_container(model, field->value.number).has_frames);
}

enum tarn_status tn_model_add_container(struct tn_model *model, enum tn_container_kind kind,
                                        const struct tn_field *items, uint32_t count,
                                        uint32_t *container_out)
{
    struct tn_container container = {.items = items, .count = count, .kind = (uint8_t)kind};
    const uint32_t hash = container_hash(&container);

    if (tn_id_table_find(&model->container_ids, hash, container_equal, &model->containers,
                         &container, container_out)) {
        return TARN_OK;
    }
    const uint64_t written = tn_model_fields_written(model, items, count);
    const uint64_t limit = tn_model_written_limit(model);

    if (written >= UINT32_MAX || (limit > 0 && written > limit)) {
        *container_out = TN_CONTAINER_TOO_LARGE;
        return TARN_OK;
    }
    container.written = (uint32_t)written;
    for (uint32_t i = 0; i < count; i++) {
        container.has_frames = container.has_frames || tn_field_has_frames(model, &items[i]);
    }
    container.items = tn_arena_copy(&model->arena, items, count, sizeof *items);
    if (!container.items) {
        return tn_model_memory_status(model);
    }
    return model_enter(model, &model->containers, &model->container_ids, hash, &container,
                       container_out);
}

const struct tn_field *tn_container_find(const struct tn_model *model, uint32_t container,
                                         uint32_t key)
{
    const struct tn_container dict = tn_model_container(model, container);

    for (uint32_t i = 0; i < dict.count; i++) {
        if (dict.items[i].key == key) {
            return dict.items + i;
        }
    }
    return NULL;
}

uint64_t tn_model_extra_written(const struct tn_model *model, uint32_t number)
{
    const struct tn_trace_extra *extra = tn_model_extra(model, number);

    return string_written(model, extra->compile_context) +
           string_written(model, extra->user_metadata) +
           string_written(model, extra->internal_metadata) +
           string_written(model, extra->category) + string_written(model, extra->action_name) +
           tn_model_container(model, extra->rest).written;
}

uint64_t tn_model_written_limit(const struct tn_model *model)
{
    const uint64_t *input = model->budget.input;
    uint64_t grown = 0;

    if (input && !tn_mul_u64(*input, model->written_per_byte, &grown)) {
        grown = UINT64_MAX;
    }
    return grown > model->written_most ? grown : model->written_most;
}

enum tarn_status tn_model_charge_written(struct tn_model *model, uint64_t bytes)
{
    const uint64_t limit = tn_model_written_limit(model);
    const bool fits = limit == 0 || (tn_add_u64(model->written, bytes, &model->written) &&
                                     model->written <= limit);

    if (!fits) {
        model->budget.exceeded = true;
        return TARN_ERR_LIMIT;
    }
    return TARN_OK;
}

bool tn_model_take_size(struct tn_model *model, uint64_t *size)
{
    const bool fits = *size <= TN_SIZES_MAX - model->sizes;

    *size = fits ? *size : 0;
    model->sizes += *size;
    return fits;
}

bool tn_time_take(int64_t *time_us)
{
    const bool fits = *time_us >= -TN_TIME_MAX && *time_us <= TN_TIME_MAX;

    *time_us = fits ? *time_us : TN_TIME_NONE;
    return fits;
}

enum tarn_status tn_model_add_entry(struct tn_model *model, const struct tn_trace_entry *entry,
                                    uint64_t *number_out)
{
    struct tn_trace_entry *added = tn_chunked_vec_push(&model->entries);

    if (!added) {
        return tn_model_memory_status(model);
    }
    *added = *entry;
    *number_out = model->entries.count - 1;
    return TARN_OK;
}

_Static_assert(sizeof(struct tn_trace_entry) == 40, "a trace entry takes 40 bytes");
