/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <string.h>

void value_pool_clear(struct value_pool *pool)
{
    pool->count = 0;
    pool->slot_count = 0;
}

struct value *value_make(struct value_pool *pool, enum value_kind kind, size_t capacity)
{
    struct value *value = pool->count < VALUES_MAX ? &pool->values[pool->count++] : &pool->plain;
    const size_t room = VALUE_SLOTS_MAX - pool->slot_count;

    *value = (struct value){.kind = value == &pool->plain ? VALUE_NONE : kind,
                            .first = pool->slot_count,
                            .capacity = capacity < room ? capacity : room};
    if (value == &pool->plain) {
        value->capacity = 0;
    }
    pool->slot_count += value->capacity;
    return value;
}

struct value *value_uint(struct value_pool *pool, uint64_t number)
{
    struct value *value = value_make(pool, VALUE_UINT, 0);

    value->number = number;
    return value;
}

struct value *value_int(struct value_pool *pool, int64_t number)
{
    struct value *value = value_make(pool, VALUE_INT, 0);

    value->number = (uint64_t)number;
    return value;
}

struct value *value_text(struct value_pool *pool, const char *text)
{
    struct value *value = value_make(pool, VALUE_TEXT, 0);

    value->length = strnlen(text, VALUE_TEXT_MAX);
    memcpy(value->text, text, value->length);
    return value;
}

void value_add(struct value_pool *pool, struct value *container, struct value *item)
{
    if (container->count < container->capacity) {
        pool->slots[container->first + container->count++] = item;
    }
}

void value_set(struct value_pool *pool, struct value *dict, const char *key, struct value *item)
{
    if (dict->count + 2 <= dict->capacity) {
        value_add(pool, dict, value_text(pool, key));
        value_add(pool, dict, item);
    }
}

void document_put(struct document *document, const void *bytes, size_t size)
{
    if (size > DOCUMENT_MAX - document->size) {
        document->is_full = true;
        return;
    }
    if (size > 0) {
        memcpy(document->bytes + document->size, bytes, size);
    }
    document->size += size;
}

void document_put_text(struct document *document, const char *text)
{
    document_put(document, text, strlen(text));
}
