/* SPDX-License-Identifier: MIT */
#include "snapshot/decode_rest.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "snapshot/decode_field.h"
#include "snapshot/warning.h"

#include <string.h>

enum {
    DEPTH_MAX = 128 /* an object's depth has 7 bits */
};

/* A container that is being converted. */
struct level {
    struct tn_value_list *list;
    struct tn_field *fields; /* in the decoder's scratch memory */
    size_t next;             /* item, or pair of a dict */
    uint32_t count;          /* fields so far: items that cannot be kept are left out */
    enum tn_container_kind kind;
};

struct conversion {
    struct tn_decoder *decoder;
    uint32_t key; /* for warnings */
    struct level levels[DEPTH_MAX];
    unsigned depth;
};

static size_t level_items(const struct level *level)
{
    return level->kind == TN_CONTAINER_DICT ? level->list->count / 2 : level->list->count;
}

/* A list of the decoder for a container, and its kind; NULL for other values. */
static struct tn_value_list *container_list(const struct tn_decoder *decoder, struct tn_value value,
                                            enum tn_container_kind *kind_out)
{
    if (tn_value_kind(value) != TN_VALUE_OBJECT) {
        return NULL;
    }
    const struct tn_object *object = tn_decode_object(decoder, value);

    if (object->kind != TN_OBJECT_DICT && object->kind != TN_OBJECT_LIST &&
        object->kind != TN_OBJECT_TUPLE) {
        return NULL;
    }
    *kind_out = object->kind == TN_OBJECT_DICT   ? TN_CONTAINER_DICT
                : object->kind == TN_OBJECT_LIST ? TN_CONTAINER_LIST
                                                 : TN_CONTAINER_TUPLE;
    return tn_chunked_vec_at(&decoder->lists, object->index);
}

static enum tarn_status level_push(struct conversion *conversion, struct tn_value_list *list,
                                   enum tn_container_kind kind)
{
    struct level level = {.list = list, .kind = kind};
    const size_t count = level_items(&level);

    tn_assert(count <= TN_DECODE_ITEMS_MAX);
    if (tn_never(conversion->depth == DEPTH_MAX)) { /* the decoder refuses deeper ones */
        return tn_fail(conversion->decoder->error, TARN_ERR_LIMIT,
                       "containers are nested more than %d deep, which no snapshot is", DEPTH_MAX);
    }
    level.fields = tn_arena_alloc_array(&conversion->decoder->scratch, count, sizeof *level.fields);
    if (!level.fields) {
        return tn_decode_memory(conversion->decoder);
    }
    conversion->levels[conversion->depth++] = level;
    return TARN_OK;
}

static enum tarn_status container_add(struct tn_decoder *decoder, enum tn_container_kind kind,
                                      const struct tn_field *fields, uint32_t count,
                                      uint32_t *container_out)
{
    return tn_model_add_container(decoder->model, kind, fields, count, container_out) == TARN_OK
               ? TARN_OK
               : tn_decode_memory(decoder);
}

/* A tuple of two integers. */
static enum tarn_status pair_convert(struct tn_decoder *decoder, struct tn_value value,
                                     struct tn_field *field)
{
    const struct tn_pool_id *pair = tn_chunked_vec_at(&decoder->pairs, value.as.number);
    struct tn_field items[2];

    for (size_t i = 0; i < 2; i++) {
        items[i] = (struct tn_field){.kind = TN_FIELD_INT, .value.unsigned_integer = pair->id[i]};
    }
    field->kind = TN_FIELD_CONTAINER;
    return container_add(decoder, TN_CONTAINER_TUPLE, items, 2, &field->value.number);
}

static struct tn_field field_of_size(uint32_t key, uint64_t size)
{
    return (struct tn_field){.key = key, .kind = TN_FIELD_INT, .value.integer = (int64_t)size};
}

/* The dict that a block was made of as an item of a list. */
static enum tarn_status block_convert(struct tn_decoder *decoder,
                                      const struct tn_model_block *block, struct tn_field *field)
{
    struct tn_field items[5];
    uint32_t count = 0;

    if (block->has_address) {
        items[count++] = field_of_size(TN_KEY_ADDRESS, block->address);
    }
    items[count++] = field_of_size(TN_KEY_SIZE, block->size);
    if (block->has_requested_size) {
        items[count++] = field_of_size(TN_KEY_REQUESTED_SIZE, block->requested_size);
    }
    items[count++] = (struct tn_field){.key = TN_KEY_STATE,
                                       .kind = TN_FIELD_STRING,
                                       .value.string = tn_word_of_state(block->state)};
    if (block->stack != TN_STACK_NONE) {
        items[count++] = (struct tn_field){
            .key = TN_KEY_FRAMES, .kind = TN_FIELD_STACK, .value.number = block->stack};
    }
    return container_add(decoder, TN_CONTAINER_DICT, items, count, &field->value.number);
}

/* A value that is not a container with items, or one that is converted already. */
static enum tarn_status leaf_convert(struct tn_decoder *decoder, struct tn_value value,
                                     struct tn_field *field, bool *kept_out)
{
    *kept_out = tn_field_plain(field->key, value, field);
    if (*kept_out || tn_value_kind(value) == TN_VALUE_GLOBAL) {
        return TARN_OK;
    }
    *kept_out = true;
    if (tn_value_kind(value) == TN_VALUE_PAIR) {
        return pair_convert(decoder, value, field);
    }
    struct tn_object *object = tn_decode_object(decoder, value);
    enum tn_container_kind kind = TN_CONTAINER_DICT;
    const struct tn_value_list *list = container_list(decoder, value, &kind);

    object->sealed = 1;
    field->kind = TN_FIELD_CONTAINER;
    if (list) {
        field->value.number = list->converted;
        *kept_out = list->converted != TN_CONTAINER_TOO_LARGE;
    } else if (object->kind == TN_OBJECT_FRAME || object->kind == TN_OBJECT_STACK) {
        field->kind = object->kind == TN_OBJECT_FRAME ? TN_FIELD_FRAME : TN_FIELD_STACK;
        field->value.number = (uint32_t)object->index;
    } else if (object->kind == TN_OBJECT_EMPTY_DICT || object->kind == TN_OBJECT_EMPTY_LIST) {
        kind = object->kind == TN_OBJECT_EMPTY_DICT ? TN_CONTAINER_DICT : TN_CONTAINER_LIST;
        return container_add(decoder, kind, NULL, 0, &field->value.number);
    } else if (object->kind == TN_OBJECT_BLOCK) {
        const struct tn_model_block *block = tn_chunked_vec_at(&decoder->blocks, object->index);

        *kept_out = block->history_count == 0 && block->rest == TN_CONTAINER_NONE;
        return *kept_out ? block_convert(decoder, block, field) : TARN_OK;
    } else {
        *kept_out = false;
    }
    return TARN_OK;
}

/* JSON readers refuse a key with a NUL, and no program has one. */
static bool key_fits(const struct tn_decoder *decoder, uint32_t key)
{
    const struct tn_string text = tn_model_string(decoder->model, key);

    return memchr(text.text, '\0', text.length) == NULL;
}

/* The key of the next item; false if it cannot be kept. */
static bool level_key(const struct tn_decoder *decoder, const struct level *level,
                      uint32_t *key_out)
{
    *key_out = TN_STRING_NONE;
    if (level->kind != TN_CONTAINER_DICT) {
        return true;
    }
    const struct tn_value key = level->list->items[2 * level->next];

    if (tn_value_kind(key) != TN_VALUE_STRING) {
        return false;
    }
    *key_out = (uint32_t)key.as.number;
    return key_fits(decoder, *key_out);
}

static enum tarn_status level_finish(struct conversion *conversion)
{
    const struct level *level = &conversion->levels[--conversion->depth];

    return container_add(conversion->decoder, level->kind, level->fields, level->count,
                         &level->list->converted);
}

/* Converts the next item, or begins the container that it is. */
static enum tarn_status level_step(struct conversion *conversion)
{
    struct tn_decoder *decoder = conversion->decoder;
    struct level *level = &conversion->levels[conversion->depth - 1];
    const size_t at = level->kind == TN_CONTAINER_DICT ? 2 * level->next + 1 : level->next;
    const struct tn_value value = level->list->items[at];
    enum tn_container_kind kind = TN_CONTAINER_DICT;
    struct tn_value_list *list = container_list(decoder, value, &kind);
    struct tn_field field = {0};
    bool kept = level_key(decoder, level, &field.key);
    enum tarn_status status = TARN_OK;

    if (kept && list && list->converted == TN_CONTAINER_NONE) {
        return level_push(conversion, list, kind);
    }
    level->next++;
    if (kept) {
        status = leaf_convert(decoder, value, &field, &kept);
    }
    if (kept) {
        level->fields[level->count++] = field;
    } else {
        tn_warning_add(decoder->model, TN_WARNING_SKIPPED_VALUE, conversion->key,
                       tn_value_offset(value));
    }
    return status;
}

static enum tarn_status list_convert(struct tn_decoder *decoder, uint32_t key,
                                     struct tn_value_list *list, enum tn_container_kind kind)
{
    struct conversion conversion;

    conversion.decoder = decoder;
    conversion.key = key;
    conversion.depth = 0;
    enum tarn_status status = level_push(&conversion, list, kind);

    while (status == TARN_OK && conversion.depth > 0) {
        const struct level *level = &conversion.levels[conversion.depth - 1];

        status =
            level->next == level_items(level) ? level_finish(&conversion) : level_step(&conversion);
    }
    return status;
}

enum tarn_status tn_rest_convert(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                 struct tn_field *field_out, bool *kept_out)
{
    enum tn_container_kind kind = TN_CONTAINER_DICT;
    struct tn_value_list *list = container_list(decoder, value, &kind);
    struct tn_field field = {.key = key};
    enum tarn_status status = TARN_OK;

    *kept_out = false;
    if (!key_fits(decoder, key)) {
        return TARN_OK;
    }
    if (list && list->converted == TN_CONTAINER_NONE) {
        status = list_convert(decoder, key, list, kind);
    }
    if (status == TARN_OK) {
        status = leaf_convert(decoder, value, &field, kept_out);
    }
    if (*kept_out) {
        *field_out = field;
    }
    return status;
}

void tn_rest_load(const struct tn_decoder *decoder, uint32_t container, struct tn_rest *rest_out)
{
    const struct tn_container from = tn_model_container(decoder->model, container);

    rest_out->count = from.count;
    rest_out->of_frame = false;
    if (from.count > 0) {
        memcpy(rest_out->fields, from.items, from.count * sizeof *from.items);
    }
}

static enum tarn_status rest_set(struct tn_decoder *decoder, struct tn_rest *rest, uint32_t key,
                                 struct tn_value value, bool *kept_out)
{
    struct tn_field field = {0};
    uint32_t index = 0;
    bool kept = false;

    while (index < rest->count && rest->fields[index].key != key) {
        index++;
    }
    const enum tarn_status status = index < TN_SHAPE_KEYS_MAX && key != TN_STRING_NONE
                                        ? tn_rest_convert(decoder, key, value, &field, &kept)
                                        : TARN_OK;

    kept = kept && !(rest->of_frame && tn_field_has_frames(decoder->model, &field));
    if (kept) {
        rest->fields[index] = field;
        rest->count += index == rest->count;
    }
    *kept_out = kept;
    return status;
}

enum tarn_status tn_rest_add(struct tn_decoder *decoder, struct tn_rest *rest, uint32_t key,
                             struct tn_value value)
{
    bool kept;
    const enum tarn_status status = rest_set(decoder, rest, key, value, &kept);

    if (!kept) {
        tn_warning_add(decoder->model, TN_WARNING_SKIPPED_VALUE, key, tn_value_offset(value));
    }
    return status;
}

enum tarn_status tn_rest_add_unknown(struct tn_decoder *decoder, struct tn_rest *rest, uint32_t key,
                                     struct tn_value value)
{
    bool kept;
    const enum tarn_status status = rest_set(decoder, rest, key, value, &kept);

    tn_warning_add(decoder->model, kept ? TN_WARNING_UNKNOWN_KEY : TN_WARNING_SKIPPED_VALUE, key,
                   tn_value_offset(value));
    return status;
}

enum tarn_status tn_rest_store(struct tn_decoder *decoder, const struct tn_rest *rest,
                               uint32_t *container_out)
{
    enum tarn_status status = TARN_OK;

    *container_out = TN_CONTAINER_NONE;
    if (rest->count > 0) {
        status =
            container_add(decoder, TN_CONTAINER_DICT, rest->fields, rest->count, container_out);
    }
    if (*container_out == TN_CONTAINER_TOO_LARGE) {
        *container_out = TN_CONTAINER_NONE;
        status = tn_decode_charge(decoder, UINT64_MAX); /* which fails, and says why */
    }
    return status;
}
