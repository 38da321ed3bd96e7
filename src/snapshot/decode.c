/* SPDX-License-Identifier: MIT */
#include "snapshot/decode.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "snapshot/decode_field.h"

#include <string.h>

enum {
    STACK_PIECES_MAX = 64, /* maximum batches of a stack; CPython writes 1000 frames each */
    LIST_FIRST = 4
};

static const uint8_t key_classes[TN_KEY_END] = {
#define KEY_CLASS(name, text, class) [TN_KEY_##name] = TN_CLASS_##class,
    TN_KEY_MAP(KEY_CLASS)
#undef KEY_CLASS
};

enum tarn_status tn_decoder_init(struct tn_decoder *decoder, struct tn_model *model,
                                 const struct tn_decode_limits *limits, struct tarn_error *error)
{
    struct tn_budget *budget = &model->budget;

    *decoder = (struct tn_decoder){.model = model, .limits = *limits, .error = error};
    tn_arena_init(&decoder->scratch, budget);
    tn_chunked_vec_init(&decoder->objects, budget, sizeof(struct tn_object));
    tn_chunked_vec_init(&decoder->lists, budget, sizeof(struct tn_value_list));
    tn_chunked_vec_init(&decoder->runs, budget, sizeof(struct tn_trace));
    tn_chunked_vec_init(&decoder->blocks, budget, sizeof(struct tn_model_block));
    tn_chunked_vec_init(&decoder->pairs, budget, sizeof(struct tn_pool_id));
    tn_id_table_init(&decoder->pair_ids, budget);
    decoder->frame_buffer =
        tn_arena_alloc_array(&decoder->scratch, limits->max_frames, sizeof(uint32_t));
    const enum tarn_status status = decoder->frame_buffer && tn_keys_enter(model) == TARN_OK
                                        ? TARN_OK
                                        : tn_decode_memory(decoder);
    if (status != TARN_OK) {
        tn_decoder_fini(decoder);
    }
    return status;
}

void tn_decoder_fini(struct tn_decoder *decoder)
{
    tn_id_table_fini(&decoder->pair_ids);
    tn_chunked_vec_fini(&decoder->pairs);
    tn_chunked_vec_fini(&decoder->blocks);
    tn_chunked_vec_fini(&decoder->runs);
    tn_chunked_vec_fini(&decoder->lists);
    tn_chunked_vec_fini(&decoder->objects);
    tn_arena_fini(&decoder->scratch);
}

enum tarn_status tn_decode_new(struct tn_decoder *decoder, enum tn_object_kind kind,
                               uint64_t offset, struct tn_value *value_out)
{
    struct tn_object *object = tn_chunked_vec_push(&decoder->objects);

    if (!object) {
        return tn_decode_memory(decoder);
    }
    *object = (struct tn_object){.kind = kind, .depth = 1};
    *value_out = tn_value_make(TN_VALUE_OBJECT, offset, decoder->objects.count - 1);
    return TARN_OK;
}

/* The object of a value; NULL if it is of another kind. */
static struct tn_object *value_object(const struct tn_decoder *decoder, struct tn_value value,
                                      enum tn_object_kind kind)
{
    if (tn_unlikely(tn_value_kind(value) != TN_VALUE_OBJECT)) {
        return NULL;
    }
    struct tn_object *object = tn_decode_object(decoder, value);
    return object->kind == kind ? object : NULL;
}

/* Seals every `step`-th value: items of a container no longer change. */
static void values_seal(struct tn_decoder *decoder, const struct tn_value *values, size_t count,
                        size_t step)
{
    for (size_t i = 0; i < count; i += step) {
        if (tn_value_kind(values[i]) == TN_VALUE_OBJECT) {
            tn_decode_object(decoder, values[i])->sealed = 1;
        }
    }
}

static enum tarn_status object_check_open(struct tn_decoder *decoder, struct tn_value value)
{
    if (tn_likely(!tn_decode_object(decoder, value)->sealed)) {
        return TARN_OK;
    }
    return tn_fail_at(decoder->error, TARN_ERR_FORMAT, (int64_t)tn_value_offset(value),
                      "a dict or list at byte %llu contains itself or changes after its last use, "
                      "which no snapshot does",
                      (unsigned long long)tn_value_offset(value));
}

/* Depth of a container with those items; fails if it is too deep. */
static enum tarn_status object_deepen(struct tn_decoder *decoder, struct tn_object *object,
                                      const struct tn_value *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tn_value_kind(items[i]) != TN_VALUE_OBJECT) {
            continue;
        }
        const unsigned depth = (unsigned)tn_decode_object(decoder, items[i])->depth + 1;
        if (depth > decoder->limits.max_depth) {
            return tn_fail_at(decoder->error, TARN_ERR_LIMIT, (int64_t)tn_value_offset(items[i]),
                              "containers at byte %llu are nested more than %u deep, which no "
                              "snapshot is",
                              (unsigned long long)tn_value_offset(items[i]),
                              decoder->limits.max_depth);
        }
        if (depth > object->depth) {
            object->depth = depth & 0x7f;
        }
    }
    return TARN_OK;
}

/* An empty list, of which others have given up the room, or a new one; false without memory. */
static bool list_take(struct tn_decoder *decoder, uint64_t *number_out)
{
    if (decoder->spare_list == 0) {
        struct tn_value_list *list = tn_chunked_vec_push(&decoder->lists);

        if (!list) {
            return false;
        }
        *list = (struct tn_value_list){0};
        *number_out = decoder->lists.count - 1;
        return true;
    }
    *number_out = decoder->spare_list - 1;
    struct tn_value_list *list = tn_chunked_vec_at(&decoder->lists, *number_out);

    decoder->spare_list = list->count;
    *list = (struct tn_value_list){.items = list->items, .capacity = list->capacity};
    return true;
}

/* A list for a generic container. */
static enum tarn_status object_make_list(struct tn_decoder *decoder, struct tn_object *object,
                                         enum tn_object_kind kind)
{
    uint64_t number;

    if (!list_take(decoder, &number)) {
        return tn_decode_memory(decoder);
    }
    object->kind = kind;
    object->index = TN_OBJECT_INDEX(number);
    return TARN_OK;
}

/* The next container may use it, and the room for its items. */
static void list_spare(struct tn_decoder *decoder, uint64_t number)
{
    struct tn_value_list *list = tn_chunked_vec_at(&decoder->lists, number);

    list->count = decoder->spare_list;
    decoder->spare_list = number + 1;
}

static enum tarn_status list_reserve(struct tn_decoder *decoder, struct tn_value_list *list,
                                     size_t count)
{
    size_t capacity = list->capacity == 0 ? LIST_FIRST : list->capacity;

    while (capacity < count) {
        capacity *= 2;
    }
    if (capacity == list->capacity) {
        return TARN_OK;
    }
    struct tn_value *items = tn_arena_alloc_array(&decoder->scratch, capacity, sizeof *items);
    if (!items) {
        return tn_decode_memory(decoder);
    }
    if (list->count > 0) {
        memcpy(items, list->items, list->count * sizeof *items);
    }
    list->items = items;
    list->capacity = capacity;
    return TARN_OK;
}

/* Adds values to a generic container. */
static enum tarn_status object_add_values(struct tn_decoder *decoder, struct tn_object *object,
                                          const struct tn_value *values, size_t count)
{
    struct tn_value_list *list = tn_chunked_vec_at(&decoder->lists, object->index);
    enum tarn_status status = object_deepen(decoder, object, values, count);

    if (status == TARN_OK && count > TN_DECODE_ITEMS_MAX - list->count) {
        status = tn_fail_at(decoder->error, TARN_ERR_LIMIT, (int64_t)tn_value_offset(values[0]),
                            "a container has more than %d values at byte %llu", TN_DECODE_ITEMS_MAX,
                            (unsigned long long)tn_value_offset(values[0]));
    }
    if (status == TARN_OK) {
        status = list_reserve(decoder, list, list->count + count);
    }
    if (status == TARN_OK && count > 0) {
        memcpy(list->items + list->count, values, count * sizeof *values);
        list->count += count;
    }
    return status;
}

static bool pair_equal(const void *owner, uint32_t id, const void *key)
{
    return memcmp(tn_chunked_vec_at(owner, id), key, sizeof(struct tn_pool_id)) == 0;
}

static bool value_is_integer(struct tn_value value)
{
    return tn_value_kind(value) == TN_VALUE_INT || tn_value_kind(value) == TN_VALUE_UINT;
}

/* Interns a tuple of two integers below 2^63: these are pool ids, of which a file has few. It would
 * not be known of larger ones, which are a tuple like others, that they are not negative. */
static enum tarn_status decode_pair(struct tn_decoder *decoder, const struct tn_value *items,
                                    uint64_t offset, struct tn_value *value_out)
{
    const struct tn_pool_id pair = {{items[0].as.number, items[1].as.number}};
    const uint32_t hash = tn_hash_bytes(&pair, sizeof pair);
    uint32_t number;

    if (!tn_id_table_find(&decoder->pair_ids, hash, pair_equal, &decoder->pairs, &pair, &number)) {
        struct tn_pool_id *added =
            decoder->pairs.count < UINT32_MAX ? tn_chunked_vec_push(&decoder->pairs) : NULL;

        if (!added) {
            return tn_decode_memory(decoder);
        }
        *added = pair;
        number = (uint32_t)(decoder->pairs.count - 1);
        if (!tn_id_table_add(&decoder->pair_ids, hash, number)) {
            return tn_decode_memory(decoder);
        }
    }
    *value_out = tn_value_make(TN_VALUE_PAIR, offset, number);
    return TARN_OK;
}

enum tarn_status tn_decode_tuple(struct tn_decoder *decoder, const struct tn_value *items,
                                 size_t count, uint64_t offset, struct tn_value *value_out)
{
    if (count == 2 && tn_value_kind(items[0]) == TN_VALUE_INT &&
        tn_value_kind(items[1]) == TN_VALUE_INT) {
        return decode_pair(decoder, items, offset, value_out);
    }
    enum tarn_status status = tn_decode_new(decoder, TN_OBJECT_EMPTY_LIST, offset, value_out);
    if (status != TARN_OK) {
        return status;
    }
    struct tn_object *tuple = tn_decode_object(decoder, *value_out);
    values_seal(decoder, items, count, 1);
    status = object_make_list(decoder, tuple, TN_OBJECT_TUPLE);
    return status == TARN_OK ? object_add_values(decoder, tuple, items, count) : status;
}

static unsigned pairs_classes(const struct tn_value *pairs, size_t count)
{
    unsigned classes = 0;

    for (size_t i = 0; i < count; i++) {
        const struct tn_value key = pairs[2 * i];

        if (tn_value_kind(key) == TN_VALUE_STRING && key.as.number < TN_KEY_END) {
            classes |= key_classes[key.as.number];
        }
    }
    return classes;
}

static bool has_all(unsigned classes, unsigned wanted)
{
    return (classes & wanted) == wanted;
}

/* The kind of a dict, from the classes of its keys. */
static enum tn_object_kind classes_kind(unsigned classes)
{
    if (classes & TN_CLASS_OPEN) {
        return TN_OBJECT_DICT;
    }
    if (has_all(classes, TN_CLASS_ENTRY | TN_CLASS_EVENT)) {
        return TN_OBJECT_ENTRY;
    }
    if (has_all(classes, TN_CLASS_BLOCK | TN_CLASS_SIZE)) {
        return TN_OBJECT_BLOCK;
    }
    return (classes & (TN_CLASS_FRAME | TN_CLASS_NO_FRAME)) == TN_CLASS_FRAME ? TN_OBJECT_FRAME
                                                                              : TN_OBJECT_DICT;
}

/* Whether these items can be a frame's: text and a number. Others are of some metadata. */
static bool pairs_fit_frame(const struct tn_value *pairs, size_t count)
{
    bool fit = true;

    for (size_t i = 0; i < count; i++) {
        const struct tn_value key = pairs[2 * i];
        const struct tn_value value = pairs[2 * i + 1];

        if (tn_value_kind(key) != TN_VALUE_STRING) {
            fit = false;
        } else if (key.as.number == TN_KEY_LINE) {
            fit = fit && value_is_integer(value);
        } else if (key.as.number == TN_KEY_NAME || key.as.number == TN_KEY_FILENAME) {
            fit = fit && tn_value_kind(value) == TN_VALUE_STRING;
        }
    }
    return fit;
}

static enum tarn_status object_set_items(struct tn_decoder *decoder, struct tn_object *object,
                                         const struct tn_value *pairs, size_t count)
{
    switch ((enum tn_object_kind)object->kind) {
    case TN_OBJECT_ENTRY:
        return tn_decode_entry(decoder, object, pairs, count);
    case TN_OBJECT_FRAME:
        return tn_decode_frame(decoder, object, pairs, count);
    case TN_OBJECT_BLOCK:
        return tn_decode_block(decoder, object, pairs, count);
    case TN_OBJECT_DICT:
        return object_add_values(decoder, object, pairs, 2 * count);
    case TN_OBJECT_EMPTY_DICT:
    case TN_OBJECT_EMPTY_LIST:
    case TN_OBJECT_LIST:
    case TN_OBJECT_RUN:
    case TN_OBJECT_STACK:
    case TN_OBJECT_TUPLE: /* are no dicts; the empty one has become another by now */
        tn_no_case();
        break;
    }
    return TARN_ERR_INTERNAL;
}

/* Adds an empty record. */
static enum tarn_status object_make_record(struct tn_decoder *decoder, struct tn_object *object,
                                           enum tn_object_kind kind)
{
    if (kind == TN_OBJECT_ENTRY) {
        const struct tn_trace_entry entry = {.time_us = TN_TIME_NONE, .action = TN_TRACE_OTHER};
        uint64_t number;

        if (tn_model_add_entry(decoder->model, &entry, &number) != TARN_OK) {
            return tn_decode_memory(decoder);
        }
        object->index = TN_OBJECT_INDEX(number);
    } else if (kind == TN_OBJECT_BLOCK) {
        struct tn_model_block *block = tn_chunked_vec_push(&decoder->blocks);

        if (!block) {
            return tn_decode_memory(decoder);
        }
        *block = (struct tn_model_block){0};
        object->index = TN_OBJECT_INDEX(decoder->blocks.count - 1);
    } else {
        object->index = 0; /* frame number 0: none */
    }
    object->kind = kind;
    return TARN_OK;
}

/* A generic dict whose new keys reveal its kind: moves its items so far into the record. */
static enum tarn_status object_promote(struct tn_decoder *decoder, struct tn_object *object,
                                       enum tn_object_kind kind)
{
    const uint64_t number = object->index;
    const struct tn_value_list *list = tn_chunked_vec_at(&decoder->lists, number);
    enum tarn_status status = object_make_record(decoder, object, kind);

    if (status == TARN_OK) {
        status = object_set_items(decoder, object, list->items, list->count / 2);
    }
    if (status == TARN_OK) {
        object->depth = 1; /* as of every record */
        list_spare(decoder, number);
    }
    return status;
}

/* The items of a dict that may be a block; NULL for other values. */
static const struct tn_value_list *block_items(const struct tn_decoder *decoder,
                                               struct tn_value value)
{
    const struct tn_object *object = value_object(decoder, value, TN_OBJECT_DICT);
    const struct tn_value_list *list =
        object ? tn_chunked_vec_at(&decoder->lists, object->index) : NULL;

    return list && classes_kind(list->classes) == TN_OBJECT_BLOCK ? list : NULL;
}

static bool item_fits_block(const struct tn_decoder *decoder, struct tn_value key,
                            struct tn_value value)
{
    if (tn_value_kind(key) != TN_VALUE_STRING) {
        return false;
    }
    switch (key.as.number) {
    case TN_KEY_ADDRESS:
    case TN_KEY_SIZE:
    case TN_KEY_REQUESTED_SIZE:
        return tn_value_kind(value) == TN_VALUE_INT && value.as.integer >= 0;
    case TN_KEY_STATE:
        return tn_value_kind(value) == TN_VALUE_STRING &&
               (value.as.number == TN_WORD_INACTIVE ||
                value.as.number == TN_WORD_ACTIVE_ALLOCATED ||
                value.as.number == TN_WORD_ACTIVE_PENDING_FREE);
    case TN_KEY_FRAMES:
        return value_object(decoder, value, TN_OBJECT_STACK) ||
               value_object(decoder, value, TN_OBJECT_EMPTY_LIST);
    case TN_KEY_HISTORY:
        return tn_decode_is_list(decoder, value);
    default:
        return false;
    }
}

/* Blocks are dicts in a list. They are packed as the writer's batches arrive, so that few of them
 * are kept as pairs at any time. The list may be one of some metadata: a dict that a block would
 * not hold as it is waits until a segment has it as a block (tn_decode_make_block). */
static enum tarn_status items_pack_blocks(struct tn_decoder *decoder, const struct tn_value *items,
                                          size_t count)
{
    enum tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        const struct tn_value_list *list = block_items(decoder, items[i]);
        bool fit = list != NULL;

        for (size_t k = 0; fit && k + 1 < list->count; k += 2) {
            fit = item_fits_block(decoder, list->items[k], list->items[k + 1]);
        }
        if (fit) {
            status = tn_decode_make_block(decoder, items[i]);
        }
    }
    return status;
}

enum tarn_status tn_decode_make_block(struct tn_decoder *decoder, struct tn_value value)
{
    return block_items(decoder, value)
               ? object_promote(decoder, tn_decode_object(decoder, value), TN_OBJECT_BLOCK)
               : TARN_OK;
}

/* Decides or revises the kind of a dict, given its next items. */
static enum tarn_status object_choose(struct tn_decoder *decoder, struct tn_object *object,
                                      const struct tn_value *pairs, size_t count)
{
    unsigned classes = pairs_classes(pairs, count);
    enum tarn_status status = TARN_OK;

    if (object->kind == TN_OBJECT_DICT) {
        const struct tn_value_list *list = tn_chunked_vec_at(&decoder->lists, object->index);

        classes |= list->classes;
    }
    enum tn_object_kind kind = classes_kind(classes);

    if (kind == TN_OBJECT_BLOCK) {
        kind = TN_OBJECT_DICT;
    } else if (kind != TN_OBJECT_ENTRY && !pairs_fit_frame(pairs, count)) {
        classes |= TN_CLASS_NO_FRAME;
        kind = TN_OBJECT_DICT;
    }
    if (object->kind == TN_OBJECT_EMPTY_DICT) {
        status = kind == TN_OBJECT_DICT ? object_make_list(decoder, object, kind)
                                        : object_make_record(decoder, object, kind);
    } else if (object->kind == TN_OBJECT_DICT && kind != TN_OBJECT_DICT) {
        status = object_promote(decoder, object, kind);
    }
    if (object->kind == TN_OBJECT_DICT) {
        struct tn_value_list *list = tn_chunked_vec_at(&decoder->lists, object->index);

        list->classes = classes;
    }
    return status;
}

enum tarn_status tn_decode_set_items(struct tn_decoder *decoder, struct tn_value dict,
                                     const struct tn_value *pairs, size_t count)
{
    struct tn_object *object = tn_decode_object(decoder, dict);
    enum tarn_status status;

    if (count == 0) {
        return TARN_OK;
    }
    if (object->kind == TN_OBJECT_EMPTY_DICT && !object->sealed &&
        tn_decode_keys_repeat(decoder, pairs, count)) {
        return tn_decode_repeated_entry(decoder, object, pairs, count);
    }
    values_seal(decoder, pairs + 1, 2 * count - 1, 2);
    status = object_check_open(decoder, dict);
    if (status != TARN_OK) {
        return status;
    }
    status = object_choose(decoder, object, pairs, count);
    return status == TARN_OK ? object_set_items(decoder, object, pairs, count) : status;
}

/* Lists. */

static enum tarn_status list_mixed(struct tn_decoder *decoder, struct tn_value item,
                                   const char *wanted)
{
    return tn_fail_at(decoder->error, TARN_ERR_FORMAT, (int64_t)tn_value_offset(item),
                      "a list of %s contains another item at byte %llu", wanted,
                      (unsigned long long)tn_value_offset(item));
}

/* Copies entries to the end of the vector. */
static enum tarn_status entries_copy(struct tn_decoder *decoder, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const struct tn_trace_entry *entry = tn_chunked_vec_at(&decoder->model->entries, first + i);
        uint64_t number;

        if (tn_model_add_entry(decoder->model, entry, &number) != TARN_OK) {
            return tn_decode_memory(decoder);
        }
    }
    return TARN_OK;
}

/* Appends entry `number` to the run. Entries of a list usually follow each other in the vector;
 * otherwise (a shared one, for example) the entry is copied, and so is the run if it is not the
 * newest. */
static enum tarn_status run_extend(struct tn_decoder *decoder, struct tn_trace *run,
                                   uint64_t number)
{
    const uint64_t total = decoder->model->entries.count;

    if (run->count == 0) {
        run->first = number;
    } else if (run->first + run->count != number) {
        if (run->first + run->count != total) {
            const enum tarn_status status = entries_copy(decoder, run->first, run->count);

            if (status != TARN_OK) {
                return status;
            }
            run->first = total;
        }
        const enum tarn_status status = entries_copy(decoder, number, 1);
        if (status != TARN_OK) {
            return status;
        }
    }
    run->count++;
    return TARN_OK;
}

static enum tarn_status run_append(struct tn_decoder *decoder, struct tn_object *object,
                                   const struct tn_value *items, size_t count)
{
    struct tn_trace *run = tn_chunked_vec_at(&decoder->runs, object->index);
    enum tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        const struct tn_object *entry = value_object(decoder, items[i], TN_OBJECT_ENTRY);

        status = entry ? run_extend(decoder, run, entry->index)
                       : list_mixed(decoder, items[i], "trace entries");
    }
    return status;
}

/* Interns the whole list again with the new frames appended: only lists longer than a batch of the
 * writer arrive in several parts. */
static enum tarn_status stack_append(struct tn_decoder *decoder, struct tn_object *object,
                                     const struct tn_value *items, size_t count)
{
    const struct tn_stack before = tn_model_stack(decoder->model, (uint32_t)object->index);
    uint32_t *frames = decoder->frame_buffer;
    uint32_t stack;

    if (before.count + count > decoder->limits.max_frames || object->pieces == STACK_PIECES_MAX) {
        return tn_fail_at(decoder->error, TARN_ERR_LIMIT, (int64_t)tn_value_offset(items[0]),
                          "a list of frames at byte %llu has more than %u frames or pieces",
                          (unsigned long long)tn_value_offset(items[0]),
                          decoder->limits.max_frames);
    }
    if (before.count > 0) {
        memcpy(frames, before.frames, before.count * sizeof *frames);
    }
    for (size_t i = 0; i < count; i++) {
        struct tn_object *frame = value_object(decoder, items[i], TN_OBJECT_FRAME);

        if (!frame) {
            return list_mixed(decoder, items[i], "frames");
        }
        frame->sealed = 1;
        frames[before.count + i] = (uint32_t)frame->index;
    }
    if (tn_model_add_stack(decoder->model, frames, before.count + count, &stack) != TARN_OK) {
        return tn_decode_memory(decoder);
    }
    object->index = stack;
    object->pieces = (object->pieces + 1u) & 0x7f;
    return TARN_OK;
}

/* The first items decide the kind of list. */
static enum tarn_status list_choose(struct tn_decoder *decoder, struct tn_object *object,
                                    struct tn_value first)
{
    if (value_object(decoder, first, TN_OBJECT_FRAME)) {
        object->kind = TN_OBJECT_STACK;
        object->index = TN_STACK_EMPTY;
        return TARN_OK;
    }
    if (!value_object(decoder, first, TN_OBJECT_ENTRY)) {
        return object_make_list(decoder, object, TN_OBJECT_LIST);
    }
    struct tn_trace *run = tn_chunked_vec_push(&decoder->runs);
    if (!run) {
        return tn_decode_memory(decoder);
    }
    *run = (struct tn_trace){0};
    object->kind = TN_OBJECT_RUN;
    object->index = TN_OBJECT_INDEX(decoder->runs.count - 1);
    return TARN_OK;
}

/* Whether items are frames of a stack, which stack_append seals. */
static bool list_is_stack(const struct tn_decoder *decoder, const struct tn_object *object,
                          struct tn_value first)
{
    return object->kind == TN_OBJECT_STACK ||
           (object->kind == TN_OBJECT_EMPTY_LIST && value_object(decoder, first, TN_OBJECT_FRAME));
}

enum tarn_status tn_decode_append(struct tn_decoder *decoder, struct tn_value list,
                                  const struct tn_value *items, size_t count)
{
    struct tn_object *object = tn_decode_object(decoder, list);
    enum tarn_status status;

    if (count == 0) {
        return TARN_OK;
    }
    if (!list_is_stack(decoder, object, items[0])) {
        values_seal(decoder, items, count, 1);
    }
    status = object_check_open(decoder, list);
    if (status == TARN_OK && object->kind == TN_OBJECT_EMPTY_LIST) {
        status = list_choose(decoder, object, items[0]);
    }
    if (status != TARN_OK) {
        return status;
    }
    switch ((enum tn_object_kind)object->kind) {
    case TN_OBJECT_STACK:
        return stack_append(decoder, object, items, count);
    case TN_OBJECT_RUN:
        return run_append(decoder, object, items, count);
    case TN_OBJECT_LIST:
        status = items_pack_blocks(decoder, items, count);
        return status == TARN_OK ? object_add_values(decoder, object, items, count) : status;
    case TN_OBJECT_EMPTY_LIST:
    case TN_OBJECT_EMPTY_DICT:
    case TN_OBJECT_DICT:
    case TN_OBJECT_ENTRY:
    case TN_OBJECT_FRAME:
    case TN_OBJECT_BLOCK:
    case TN_OBJECT_TUPLE: /* are no lists; the empty one has become another by now */
        tn_no_case();
        break;
    }
    return TARN_ERR_INTERNAL;
}

/* Queries. */
