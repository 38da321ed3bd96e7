/* SPDX-License-Identifier: MIT */
#include "snapshot/decode_field.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/utf8.h"
#include "snapshot/warning.h"

static const char *value_kind_name(const struct tn_decoder *decoder, struct tn_value value)
{
    static const char *const plain[TN_VALUE_KIND_COUNT] = {
        [TN_VALUE_NONE] = "None",      [TN_VALUE_BOOL] = "a bool",
        [TN_VALUE_INT] = "an integer", [TN_VALUE_UINT] = "an integer",
        [TN_VALUE_FLOAT] = "a float",  [TN_VALUE_STRING] = "a string",
        [TN_VALUE_PAIR] = "a tuple",   [TN_VALUE_GLOBAL] = "a name to import",
    };
    static const char *const objects[] = {
        [TN_OBJECT_EMPTY_DICT] = "an empty dict",
        [TN_OBJECT_DICT] = "a dict",
        [TN_OBJECT_ENTRY] = "a trace entry",
        [TN_OBJECT_FRAME] = "a frame",
        [TN_OBJECT_BLOCK] = "a block",
        [TN_OBJECT_EMPTY_LIST] = "an empty list",
        [TN_OBJECT_LIST] = "a list",
        [TN_OBJECT_RUN] = "a list of trace entries",
        [TN_OBJECT_STACK] = "a list of frames",
        [TN_OBJECT_TUPLE] = "a tuple",
    };
    const enum tn_value_kind kind = tn_value_kind(value);

    return kind == TN_VALUE_OBJECT ? objects[tn_decode_object(decoder, value)->kind] : plain[kind];
}

enum tarn_status tn_field_wrong(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                const char *wanted)
{
    const struct tn_string name = tn_model_string(decoder->model, key);

    return tn_fail_at(decoder->error, TARN_ERR_FORMAT, (int64_t)tn_value_offset(value),
                      "the key `%.*s` at byte %llu must hold %s, but holds %s",
                      tn_utf8_fit(name.text, name.length, 60), name.text,
                      (unsigned long long)tn_value_offset(value), wanted,
                      value_kind_name(decoder, value));
}

enum tarn_status tn_decode_memory(struct tn_decoder *decoder)
{
    const enum tarn_status status = tn_model_memory_status(decoder->model);

    return status == TARN_ERR_LIMIT
               ? tn_fail(
                     decoder->error, status,
                     "the snapshot needs more than the limit of %llu bytes of memory, which can "
                     "be raised",
                     (unsigned long long)decoder->model->budget.limit)
               : tn_fail_memory(decoder->error);
}

enum tarn_status tn_field_address(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                  uint64_t *out)
{
    const enum tn_value_kind kind = tn_value_kind(value);

    if (tn_unlikely(kind != TN_VALUE_INT && kind != TN_VALUE_UINT)) {
        return tn_field_wrong(decoder, key, value, "an integer");
    }
    *out = value.as.number;
    return TARN_OK;
}

enum tarn_status tn_field_size(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               uint64_t *out)
{
    const enum tn_value_kind kind = tn_value_kind(value);

    if (tn_unlikely(kind != TN_VALUE_INT && kind != TN_VALUE_UINT)) {
        return tn_field_wrong(decoder, key, value, "an integer");
    }
    *out = value.as.number;
    if (tn_unlikely(kind == TN_VALUE_INT && value.as.integer < 0)) {
        tn_warning_add(decoder->model, TN_WARNING_NEGATIVE, key, tn_value_offset(value));
        *out = 0;
    }
    return TARN_OK;
}

enum tarn_status tn_field_integer(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                  int64_t *out)
{
    if (tn_unlikely(tn_value_kind(value) != TN_VALUE_INT)) {
        return tn_field_wrong(decoder, key, value, "an integer of 64 bits");
    }
    *out = value.as.integer;
    return TARN_OK;
}

enum tarn_status tn_field_time(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               int64_t *out)
{
    const enum tarn_status status = tn_field_integer(decoder, key, value, out);

    if (status == TARN_OK && tn_unlikely(!tn_time_take(out))) {
        tn_warning_add(decoder->model, TN_WARNING_NO_TIME, key, tn_value_offset(value));
    }
    return status;
}

void tn_decode_take_size(struct tn_decoder *decoder, uint32_t key, uint64_t at, uint64_t *size)
{
    if (tn_unlikely(!tn_model_take_size(decoder->model, size))) {
        tn_warning_add(decoder->model, TN_WARNING_TOO_LARGE, key, at);
    }
}

enum tarn_status tn_field_bool(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               bool *out)
{
    if (tn_value_kind(value) != TN_VALUE_BOOL) {
        return tn_field_wrong(decoder, key, value, "a bool");
    }
    *out = value.as.number != 0;
    return TARN_OK;
}

enum tarn_status tn_field_string(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                 uint32_t *out)
{
    if (tn_unlikely(tn_value_kind(value) != TN_VALUE_STRING)) {
        return tn_field_wrong(decoder, key, value, "a string");
    }
    *out = (uint32_t)value.as.number;
    return TARN_OK;
}

/* A list of two integers, in formats without tuples. */
static bool pool_from_list(const struct tn_decoder *decoder, struct tn_value value,
                           struct tn_pool_id *out)
{
    const struct tn_value_list *list = tn_decode_items(decoder, value, false);

    if (!list || list->count != 2) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        const enum tn_value_kind kind = tn_value_kind(list->items[i]);

        if (kind != TN_VALUE_INT && kind != TN_VALUE_UINT) {
            return false;
        }
        out->id[i] = list->items[i].as.number;
    }
    return true;
}

enum tarn_status tn_field_pool(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               struct tn_pool_id *out)
{
    if (tn_likely(tn_value_kind(value) == TN_VALUE_PAIR)) {
        *out = *(const struct tn_pool_id *)tn_chunked_vec_at(&decoder->pairs, value.as.number);
        return TARN_OK;
    }
    return pool_from_list(decoder, value, out)
               ? TARN_OK
               : tn_field_wrong(decoder, key, value, "a tuple of two integers");
}

enum tarn_status tn_field_stack(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                uint32_t *out)
{
    if (tn_likely(tn_value_kind(value) == TN_VALUE_OBJECT)) {
        struct tn_object *object = tn_decode_object(decoder, value);

        if (object->kind == TN_OBJECT_STACK || object->kind == TN_OBJECT_EMPTY_LIST) {
            object->sealed = 1;
            *out = object->kind == TN_OBJECT_STACK ? (uint32_t)object->index : TN_STACK_EMPTY;
            return TARN_OK;
        }
    }
    if (tn_value_kind(value) == TN_VALUE_NONE) {
        *out = TN_STACK_NONE;
        return TARN_OK;
    }
    return tn_field_wrong(decoder, key, value, "a list of frames");
}

/* Charges `bytes` for each visit after the first. */
static enum tarn_status object_walk(struct tn_decoder *decoder, struct tn_value value,
                                    uint64_t bytes)
{
    struct tn_object *object = tn_decode_object(decoder, value);
    const bool again = object->walked;

    object->walked = 1;
    return !again || tn_budget_charge(&decoder->model->budget, bytes) ? TARN_OK
                                                                      : tn_decode_memory(decoder);
}

static enum tarn_status field_items(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                                    bool dict, const char *wanted,
                                    const struct tn_value_list **list_out)
{
    const struct tn_value_list *list = tn_decode_items(decoder, value, dict);

    if (!list) {
        return tn_field_wrong(decoder, key, value, wanted);
    }
    *list_out = list;
    return object_walk(decoder, value, list->count * sizeof *list->items);
}

enum tarn_status tn_field_list(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               const char *wanted, const struct tn_value_list **list_out)
{
    return field_items(decoder, key, value, false, wanted, list_out);
}

enum tarn_status tn_field_dict(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                               const char *wanted, const struct tn_value_list **list_out)
{
    return field_items(decoder, key, value, true, wanted, list_out);
}

enum tarn_status tn_field_run(struct tn_decoder *decoder, uint32_t key, struct tn_value value,
                              struct tn_trace *run_out)
{
    const struct tn_object *object =
        tn_value_kind(value) == TN_VALUE_OBJECT ? tn_decode_object(decoder, value) : NULL;

    *run_out = (struct tn_trace){0};
    if (object && object->kind == TN_OBJECT_EMPTY_LIST) {
        return TARN_OK;
    }
    if (!object || object->kind != TN_OBJECT_RUN) {
        return tn_field_wrong(decoder, key, value, "lists of trace entries");
    }
    *run_out = *(const struct tn_trace *)tn_chunked_vec_at(&decoder->runs, object->index);
    return object_walk(decoder, value, run_out->count * sizeof(struct tn_trace_entry));
}

enum tarn_status tn_decode_charge(struct tn_decoder *decoder, uint64_t bytes)
{
    const enum tarn_status status = tn_model_charge_written(decoder->model, bytes);

    return status == TARN_OK
               ? TARN_OK
               : tn_fail(decoder->error, status,
                         "written out without sharing, the snapshot would take more than %llu "
                         "bytes, the limit for a file of its size, which can be raised",
                         (unsigned long long)tn_model_written_limit(decoder->model));
}

bool tn_field_plain(uint32_t key, struct tn_value value, struct tn_field *field)
{
    *field = (struct tn_field){.key = key};
    switch (tn_value_kind(value)) {
    case TN_VALUE_NONE:
        field->kind = TN_FIELD_NONE;
        return true;
    case TN_VALUE_BOOL:
        field->kind = TN_FIELD_BOOL;
        field->value.boolean = value.as.number != 0;
        return true;
    case TN_VALUE_INT:
        field->kind = TN_FIELD_INT;
        field->value.integer = value.as.integer;
        return true;
    case TN_VALUE_UINT:
        field->kind = TN_FIELD_UINT;
        field->value.unsigned_integer = value.as.number;
        return true;
    case TN_VALUE_FLOAT:
        field->kind = TN_FIELD_FLOAT;
        field->value.real = value.as.real;
        return true;
    case TN_VALUE_STRING:
        field->kind = TN_FIELD_STRING;
        field->value.string = (uint32_t)value.as.number;
        return true;
    case TN_VALUE_PAIR:
    case TN_VALUE_OBJECT:
    case TN_VALUE_GLOBAL:
        break;
    case TN_VALUE_KIND_COUNT:
        tn_no_case();
        break;
    }
    return false;
}
