/* SPDX-License-Identifier: MIT */
#include "snapshot/page_list.h"

#include "snapshot/keys.h"

static const char key_size[] = "page_size";
static const char key_handles[] = "handles";
static const char key_times[] = "times";

uint64_t tn_page_list_number(const struct tn_field *item)
{
    if (item->kind == TN_FIELD_UINT) {
        return item->value.unsigned_integer;
    }
    return item->value.integer > 0 ? (uint64_t)item->value.integer : 0;
}

struct tn_field tn_page_list_item(uint64_t number)
{
    const bool fits = number <= INT64_MAX;
    struct tn_field item = {.key = TN_STRING_NONE,
                            .kind = (uint8_t)(fits ? TN_FIELD_INT : TN_FIELD_UINT)};

    if (fits) {
        item.value.integer = (int64_t)number;
    } else {
        item.value.unsigned_integer = number;
    }
    return item;
}

/* ---- writing ---- */

/* Adds a container; one that is too large is a failure. */
static enum tarn_status value_add(struct tn_model *model, enum tn_container_kind kind,
                                  const struct tn_field *items, uint32_t count,
                                  uint32_t *number_out)
{
    const enum tarn_status status = tn_model_add_container(model, kind, items, count, number_out);

    return status == TARN_OK && *number_out == TN_CONTAINER_TOO_LARGE ? TARN_ERR_LIMIT : status;
}

static enum tarn_status key_add(struct tn_model *model, const char *key, struct tn_field *field)
{
    return tn_model_add_string(model, key, strlen(key), &field->key);
}

enum tarn_status tn_page_list_add(struct tn_model *model, const struct tn_page_list *pages,
                                  uint32_t *rest_out)
{
    struct tn_field handles = {.kind = TN_FIELD_CONTAINER};
    struct tn_field times = {.kind = TN_FIELD_CONTAINER};
    struct tn_field whole = {.key = TN_KEY_TARN_PAGES, .kind = TN_FIELD_CONTAINER};
    struct tn_field size = tn_page_list_item(pages->size);
    enum tarn_status status = key_add(model, key_size, &size);

    status = status ? status : key_add(model, key_handles, &handles);
    status = status ? status : key_add(model, key_times, &times);
    if (status == TARN_OK) {
        status = value_add(model, TN_CONTAINER_LIST, pages->handles, pages->count,
                           &handles.value.number);
    }
    if (status == TARN_OK) {
        status =
            value_add(model, TN_CONTAINER_LIST, pages->times, pages->count, &times.value.number);
    }
    if (status == TARN_OK) {
        const struct tn_field fields[] = {size, handles, times};

        status = value_add(model, TN_CONTAINER_DICT, fields, 3, &whole.value.number);
    }
    return status ? status : value_add(model, TN_CONTAINER_DICT, &whole, 1, rest_out);
}

/* ---- reading ---- */

/* The value of a key of a dict; NULL if there is none. */
static const struct tn_field *value_find(const struct tn_model *model, uint32_t dict,
                                         const char *key)
{
    const struct tn_container fields = tn_model_container(model, dict);

    for (uint32_t i = 0; i < fields.count; i++) {
        if (tn_string_is(tn_model_string(model, fields.items[i].key), key)) {
            return fields.items + i;
        }
    }
    return NULL;
}

static bool is_number(const struct tn_field *field)
{
    return field->kind == TN_FIELD_INT || field->kind == TN_FIELD_UINT;
}

/* A list of numbers; false for anything else. */
static bool numbers_find(const struct tn_model *model, uint32_t dict, const char *key,
                         const struct tn_field **items_out, uint32_t *count_out)
{
    const struct tn_field *field = value_find(model, dict, key);

    if (!field || field->kind != TN_FIELD_CONTAINER) {
        return false;
    }
    const struct tn_container list = tn_model_container(model, field->value.number);
    bool good = list.kind != TN_CONTAINER_DICT;

    for (uint32_t i = 0; i < list.count && good; i++) {
        good = is_number(&list.items[i]);
    }
    *items_out = list.items;
    *count_out = list.count;
    return good;
}

bool tn_page_list_find(const struct tn_model *model, const struct tn_model_segment *segment,
                       struct tn_page_list *pages_out)
{
    const struct tn_field *pages = tn_container_find(model, segment->rest, TN_KEY_TARN_PAGES);
    uint32_t times_count = 0;

    if (!pages || pages->kind != TN_FIELD_CONTAINER) {
        return false;
    }
    const uint32_t dict = pages->value.number;
    const struct tn_field *size = value_find(model, dict, key_size);

    *pages_out =
        (struct tn_page_list){.size = size && is_number(size) ? tn_page_list_number(size) : 0};
    return tn_model_container(model, dict).kind == TN_CONTAINER_DICT && pages_out->size > 0 &&
           numbers_find(model, dict, key_handles, &pages_out->handles, &pages_out->count) &&
           numbers_find(model, dict, key_times, &pages_out->times, &times_count) &&
           times_count == pages_out->count;
}
