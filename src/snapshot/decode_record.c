/* SPDX-License-Identifier: MIT */
/*
 * Trace entries, frames and blocks: dicts that are packed as their items arrive. An entry is
 * drafted on the stack, then its rare part is interned; most entries have the shape and the extra
 * of the previous one, so both are compared with those first.
 */
#include "base/errinfo.h"
#include "snapshot/decode_field.h"
#include "snapshot/decode_rest.h"
#include "snapshot/warning.h"

#include <string.h>

/* The key of a pair, or TN_STRING_NONE with an error. */
static enum tarn_status pair_key(struct tn_decoder *decoder, struct tn_value key, uint32_t *out)
{
    if (tn_likely(tn_value_kind(key) == TN_VALUE_STRING)) {
        *out = (uint32_t)key.as.number;
        return TARN_OK;
    }
    return tn_fail_at(decoder->error, TARN_ERR_FORMAT, (int64_t)tn_value_offset(key),
                      "a key at byte %llu is not a string",
                      (unsigned long long)tn_value_offset(key));
}

/* An optional text; a value of another kind is kept with the unknown keys. */
static enum tarn_status note_set(struct tn_decoder *decoder, struct tn_rest *rest, uint32_t key,
                                 struct tn_value value, uint32_t *out)
{
    if (tn_likely(tn_value_kind(value) == TN_VALUE_STRING)) {
        *out = (uint32_t)value.as.number;
        return TARN_OK;
    }
    return tn_rest_add(decoder, rest, key, value);
}

struct entry_draft {
    struct tn_trace_entry entry;
    struct tn_trace_extra extra;
    struct tn_rest rest;
    uint32_t keys[TN_SHAPE_KEYS_MAX];
    uint32_t key_count;
    uint64_t seen; /* one bit per known key */
};

_Static_assert(TN_KEY_END <= 64, "one bit for each key");

static void draft_load(const struct tn_decoder *decoder, const struct tn_object *object,
                       struct entry_draft *draft)
{
    const struct tn_model *model = decoder->model;

    draft->entry =
        *(const struct tn_trace_entry *)tn_chunked_vec_at(&model->entries, object->index);
    draft->extra = *tn_model_extra(model, draft->entry.extra);
    draft->key_count = 0;
    draft->seen = 0;
    tn_rest_load(decoder, draft->extra.rest, &draft->rest);
    if (draft->extra.shape != 0) {
        const struct tn_shape shape = tn_model_shape(model, draft->extra.shape);

        draft->key_count = shape.count;
        memcpy(draft->keys, shape.keys, shape.count * sizeof *shape.keys);
        for (uint32_t i = 0; i < shape.count; i++) {
            draft->seen |= shape.keys[i] < TN_KEY_END ? (uint64_t)1 << shape.keys[i] : 0;
        }
    }
}

static TN_COLD bool draft_has_key(const struct entry_draft *draft, uint32_t key)
{
    uint32_t i = 0;

    while (i < draft->key_count && draft->keys[i] != key) {
        i++;
    }
    return i < draft->key_count;
}

static void draft_note_key(struct tn_decoder *decoder, struct entry_draft *draft, uint32_t key,
                           struct tn_value at)
{
    if (tn_likely(key < TN_KEY_END)) {
        const uint64_t bit = (uint64_t)1 << key;

        if (tn_unlikely(draft->seen & bit)) {
            tn_warning_add(decoder->model, TN_WARNING_DUPLICATE_KEY, key, tn_value_offset(at));
            return;
        }
        draft->seen |= bit;
    } else if (draft_has_key(draft, key)) {
        tn_warning_add(decoder->model, TN_WARNING_DUPLICATE_KEY, key, tn_value_offset(at));
        return;
    }
    if (tn_likely(draft->key_count < TN_SHAPE_KEYS_MAX)) {
        draft->keys[draft->key_count++] = key;
    }
}

static enum tarn_status entry_set_action(struct tn_decoder *decoder, struct entry_draft *draft,
                                         struct tn_value value)
{
    uint32_t name = TN_STRING_NONE;
    const enum tarn_status status = tn_field_string(decoder, TN_KEY_ACTION, value, &name);

    if (status != TARN_OK) {
        return status;
    }
    const uint32_t action = name - TN_WORD_FIRST_ACTION;
    if (tn_likely(action < TN_TRACE_OTHER)) {
        draft->entry.action = action & 0x1f;
        draft->extra.action_name = TN_STRING_NONE;
    } else {
        draft->entry.action = TN_TRACE_OTHER;
        draft->extra.action_name = name;
        tn_warning_add(decoder->model, TN_WARNING_UNKNOWN_WORD, TN_KEY_ACTION,
                       tn_value_offset(value));
    }
    return TARN_OK;
}

static TN_NOINLINE enum tarn_status entry_set_rare(struct tn_decoder *decoder,
                                                   struct entry_draft *draft, uint32_t key,
                                                   const struct tn_value *value)
{
    struct tn_trace_extra *extra = &draft->extra;

    switch (key) {
    case TN_KEY_COMPILE_CONTEXT:
        return note_set(decoder, &draft->rest, key, *value, &extra->compile_context);
    case TN_KEY_USER_METADATA:
        return note_set(decoder, &draft->rest, key, *value, &extra->user_metadata);
    case TN_KEY_INTERNAL_METADATA:
        return note_set(decoder, &draft->rest, key, *value, &extra->internal_metadata);
    case TN_KEY_CATEGORY:
        return note_set(decoder, &draft->rest, key, *value, &extra->category);
    case TN_KEY_POOL_ID:
        extra->has_pool = true;
        return tn_field_pool(decoder, key, *value, &extra->pool);
    default:
        return tn_rest_add_unknown(decoder, &draft->rest, key, *value);
    }
}

static enum tarn_status entry_set(struct tn_decoder *decoder, struct entry_draft *draft,
                                  uint32_t key, const struct tn_value *value)
{
    uint64_t address = 0;
    enum tarn_status status;

    switch (key) {
    case TN_KEY_ACTION:
        return entry_set_action(decoder, draft, *value);
    case TN_KEY_ADDR:
    case TN_KEY_DEVICE_FREE:
        status = tn_field_address(decoder, key, *value, &address);
        draft->entry.address = address;
        return status;
    case TN_KEY_SIZE:
        return tn_field_size(decoder, key, *value, &draft->entry.size);
    case TN_KEY_STREAM:
        return tn_field_address(decoder, key, *value, &draft->entry.stream);
    case TN_KEY_TIME_US:
        return tn_field_time(decoder, key, *value, &draft->entry.time_us);
    case TN_KEY_FRAMES:
        return tn_field_stack(decoder, key, *value, &draft->entry.stack);
    default:
        return entry_set_rare(decoder, draft, key, value);
    }
}

static enum tarn_status draft_intern_shape(struct tn_decoder *decoder, struct entry_draft *draft)
{
    const struct tn_shape last = tn_model_shape(decoder->model, decoder->last_shape);

    if (last.count != draft->key_count ||
        memcmp(last.keys, draft->keys, last.count * sizeof *last.keys) != 0) {
        if (tn_model_add_shape(decoder->model, draft->keys, draft->key_count,
                               &decoder->last_shape) != TARN_OK) {
            return tn_decode_memory(decoder);
        }
    }
    draft->extra.shape = decoder->last_shape;
    return TARN_OK;
}

static bool extra_same(const struct tn_trace_extra *a, const struct tn_trace_extra *b)
{
    return a->compile_context == b->compile_context && a->user_metadata == b->user_metadata &&
           a->internal_metadata == b->internal_metadata && a->category == b->category &&
           a->action_name == b->action_name && a->shape == b->shape && a->has_pool == b->has_pool &&
           a->rest == b->rest && a->pool.id[0] == b->pool.id[0] && a->pool.id[1] == b->pool.id[1];
}

static enum tarn_status draft_intern_extra(struct tn_decoder *decoder, struct entry_draft *draft)
{
    if (tn_unlikely(draft->rest.count > 0)) { /* else draft->extra has none */
        const enum tarn_status status = tn_rest_store(decoder, &draft->rest, &draft->extra.rest);

        if (status != TARN_OK) {
            return status;
        }
    }
    if (!extra_same(tn_model_extra(decoder->model, decoder->last_extra), &draft->extra) &&
        tn_model_add_extra(decoder->model, &draft->extra, &decoder->last_extra) != TARN_OK) {
        return tn_decode_memory(decoder);
    }
    draft->entry.extra = decoder->last_extra & ((1u << 27) - 1);
    return TARN_OK;
}

enum tarn_status tn_decode_entry(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count)
{
    struct entry_draft draft;
    enum tarn_status status = TARN_OK;

    draft_load(decoder, object, &draft);
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        uint32_t key = TN_STRING_NONE;

        status = pair_key(decoder, pairs[2 * i], &key);
        if (status == TARN_OK) {
            draft_note_key(decoder, &draft, key, pairs[2 * i]);
            status = entry_set(decoder, &draft, key, &pairs[2 * i + 1]);
        }
    }
    if (status == TARN_OK) {
        status = draft_intern_shape(decoder, &draft);
    }
    if (status == TARN_OK) {
        status = draft_intern_extra(decoder, &draft);
    }
    if (status == TARN_OK) {
        *(struct tn_trace_entry *)tn_chunked_vec_at(&decoder->model->entries, object->index) =
            draft.entry;
    }
    return status;
}

bool tn_decode_keys_repeat(const struct tn_decoder *decoder, const struct tn_value *pairs,
                           size_t count)
{
    const struct tn_shape last = tn_model_shape(decoder->model, decoder->last_shape);

    if (count != last.count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (tn_value_kind(pairs[2 * i]) != TN_VALUE_STRING ||
            pairs[2 * i].as.number != last.keys[i]) {
            return false;
        }
    }
    return true;
}

enum tarn_status tn_decode_repeated_entry(struct tn_decoder *decoder, struct tn_object *object,
                                          const struct tn_value *pairs, size_t count)
{
    const struct tn_shape last = tn_model_shape(decoder->model, decoder->last_shape);
    struct entry_draft draft;
    enum tarn_status status = TARN_OK;
    uint64_t number;

    draft.entry = (struct tn_trace_entry){.time_us = TN_TIME_NONE, .action = TN_TRACE_OTHER};
    draft.extra = (struct tn_trace_extra){.shape = decoder->last_shape};
    tn_rest_load(decoder, TN_CONTAINER_NONE, &draft.rest);
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        status = entry_set(decoder, &draft, last.keys[i], &pairs[2 * i + 1]);
    }
    if (status == TARN_OK) {
        status = draft_intern_extra(decoder, &draft);
    }
    if (status != TARN_OK) {
        return status;
    }
    if (tn_model_add_entry(decoder->model, &draft.entry, &number) != TARN_OK) {
        return tn_decode_memory(decoder);
    }
    object->kind = TN_OBJECT_ENTRY;
    object->index = TN_OBJECT_INDEX(number);
    return TARN_OK;
}

/* Frames. */

static enum tarn_status frame_set(struct tn_decoder *decoder, struct tn_frame *frame,
                                  struct tn_frame_fx *fx, struct tn_rest *rest, uint32_t key,
                                  struct tn_value value)
{
    switch (key) {
    case TN_KEY_NAME:
        return tn_field_string(decoder, key, value, &frame->name);
    case TN_KEY_FILENAME:
        return tn_field_string(decoder, key, value, &frame->filename);
    case TN_KEY_LINE:
        return tn_field_integer(decoder, key, value, &frame->line);
    case TN_KEY_FX_NODE_OP:
        return note_set(decoder, rest, key, value, &fx->node_op);
    case TN_KEY_FX_NODE_NAME:
        return note_set(decoder, rest, key, value, &fx->node_name);
    case TN_KEY_FX_NODE_TARGET:
        return note_set(decoder, rest, key, value, &fx->node_target);
    case TN_KEY_FX_ORIGINAL_TRACE:
        return note_set(decoder, rest, key, value, &fx->original_trace);
    default:
        return tn_rest_add_unknown(decoder, rest, key, value);
    }
}

static enum tarn_status frame_store(struct tn_decoder *decoder, struct tn_object *object,
                                    struct tn_frame *frame, struct tn_frame_fx *fx,
                                    const struct tn_rest *rest)
{
    struct tn_model *model = decoder->model;
    uint32_t number = 0;
    enum tarn_status status = tn_rest_store(decoder, rest, &fx->rest);

    if (status != TARN_OK) {
        return status;
    }
    if (fx->node_op || fx->node_name || fx->node_target || fx->original_trace || fx->rest) {
        status = tn_model_add_fx(model, fx, &frame->fx);
    }
    if (status == TARN_OK) {
        status = tn_model_add_frame(model, frame, &number);
    }
    if (status != TARN_OK) {
        return tn_decode_memory(decoder);
    }
    object->index = number;
    return TARN_OK;
}

enum tarn_status tn_decode_frame(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count)
{
    struct tn_frame frame = *tn_model_frame(decoder->model, (uint32_t)object->index);
    struct tn_frame_fx fx =
        *(const struct tn_frame_fx *)tn_chunked_vec_at(&decoder->model->fx, frame.fx);
    enum tarn_status status = TARN_OK;
    struct tn_rest rest;

    tn_rest_load(decoder, fx.rest, &rest);
    rest.of_frame = true;

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        uint32_t key = TN_STRING_NONE;

        status = pair_key(decoder, pairs[2 * i], &key);
        if (status == TARN_OK) {
            status = frame_set(decoder, &frame, &fx, &rest, key, pairs[2 * i + 1]);
        }
    }
    return status == TARN_OK ? frame_store(decoder, object, &frame, &fx, &rest) : status;
}

/* Blocks. */

static enum tarn_status block_set_state(struct tn_decoder *decoder, struct tn_model_block *block,
                                        struct tn_value value)
{
    uint32_t word = TN_STRING_NONE;
    const enum tarn_status status = tn_field_string(decoder, TN_KEY_STATE, value, &word);

    block->state = TN_BLOCK_INACTIVE;
    if (word == TN_WORD_ACTIVE_ALLOCATED) {
        block->state = TN_BLOCK_ACTIVE_ALLOCATED;
    } else if (word == TN_WORD_ACTIVE_PENDING_FREE || word == TN_WORD_ACTIVE_AWAITING_FREE) {
        block->state = TN_BLOCK_ACTIVE_PENDING_FREE;
    } else if (status == TARN_OK && word != TN_WORD_INACTIVE) {
        tn_warning_add(decoder->model, TN_WARNING_UNKNOWN_WORD, TN_KEY_STATE,
                       tn_value_offset(value));
    }
    return status;
}

static enum tarn_status history_set(struct tn_decoder *decoder, struct tn_block_history *history,
                                    uint32_t key, struct tn_value value)
{
    switch (key) {
    case TN_KEY_ADDR:
        return tn_field_address(decoder, key, value, &history->address);
    case TN_KEY_REAL_SIZE: {
        const enum tarn_status status = tn_field_size(decoder, key, value, &history->real_size);

        tn_decode_take_size(decoder, key, tn_value_offset(value), &history->real_size);
        return status;
    }
    case TN_KEY_FRAMES:
        return tn_field_stack(decoder, key, value, &history->stack);
    default:
        tn_warning_add(decoder->model, TN_WARNING_SKIPPED_VALUE, key, tn_value_offset(value));
        return TARN_OK;
    }
}

static enum tarn_status history_decode(struct tn_decoder *decoder, struct tn_value item,
                                       struct tn_block_history *history)
{
    const struct tn_value_list *list = NULL;
    enum tarn_status status = tn_field_dict(decoder, TN_KEY_HISTORY, item, "dicts", &list);

    *history = (struct tn_block_history){0};
    for (size_t i = 0; status == TARN_OK && i + 1 < list->count; i += 2) {
        uint32_t key = TN_STRING_NONE;

        status = pair_key(decoder, list->items[i], &key);
        if (status == TARN_OK) {
            status = history_set(decoder, history, key, list->items[i + 1]);
        }
    }
    return status;
}

static enum tarn_status block_set_history(struct tn_decoder *decoder, struct tn_model_block *block,
                                          struct tn_value value)
{
    const struct tn_value_list *list = NULL;
    enum tarn_status status = tn_field_list(decoder, TN_KEY_HISTORY, value, "a list", &list);

    if (status != TARN_OK) {
        return status;
    }
    struct tn_block_history *history =
        tn_arena_alloc_array(&decoder->model->arena, list->count, sizeof *history);
    if (!history) {
        return tn_decode_memory(decoder);
    }
    for (size_t i = 0; i < list->count && status == TARN_OK; i++) {
        status = history_decode(decoder, list->items[i], &history[i]);
    }
    block->history = history;
    block->history_count = (uint32_t)list->count; /* TN_DECODE_ITEMS_MAX at most */
    return status;
}

static enum tarn_status block_set(struct tn_decoder *decoder, struct tn_model_block *block,
                                  struct tn_rest *rest, uint32_t key, struct tn_value value)
{
    switch (key) {
    case TN_KEY_ADDRESS:
        block->has_address = true;
        return tn_field_address(decoder, key, value, &block->address);
    case TN_KEY_SIZE:
        return tn_field_size(decoder, key, value, &block->size);
    case TN_KEY_REQUESTED_SIZE:
        block->has_requested_size = true;
        return tn_field_size(decoder, key, value, &block->requested_size);
    case TN_KEY_STATE:
        return block_set_state(decoder, block, value);
    case TN_KEY_FRAMES:
        return tn_field_stack(decoder, key, value, &block->stack);
    case TN_KEY_HISTORY:
        return block_set_history(decoder, block, value);
    default:
        return tn_rest_add_unknown(decoder, rest, key, value);
    }
}

enum tarn_status tn_decode_block(struct tn_decoder *decoder, struct tn_object *object,
                                 const struct tn_value *pairs, size_t count)
{
    struct tn_model_block *block = tn_chunked_vec_at(&decoder->blocks, object->index);
    enum tarn_status status = TARN_OK;
    struct tn_rest rest;

    tn_rest_load(decoder, block->rest, &rest);

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        uint32_t key = TN_STRING_NONE;

        status = pair_key(decoder, pairs[2 * i], &key);
        if (status == TARN_OK) {
            status = block_set(decoder, block, &rest, key, pairs[2 * i + 1]);
        }
    }
    return status == TARN_OK ? tn_rest_store(decoder, &rest, &block->rest) : status;
}
