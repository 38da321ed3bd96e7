/* SPDX-License-Identifier: MIT */
/* Values as a pickle. Containers and texts enter the memo before their items are written, as Python
 * does it, so that a second place is a reference and a cycle ends. */
#include "value.h"

#include <string.h>

struct pickler {
    struct value_pool *pool;
    struct document *document;
    unsigned flavour;
    unsigned memo; /* numbers given */
};

static void put_byte(const struct pickler *p, char byte)
{
    document_put(p->document, &byte, 1);
}

/* Little-endian. */
static void put_number(const struct pickler *p, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        put_byte(p, (char)(number >> (8 * i)));
    }
}

/* MEMOIZE numbers by itself, so a pickle has either it or numbers. */
static void put_memo(struct pickler *p, struct value *value)
{
    value->memo = ++p->memo;
    if (p->flavour & 1) {
        put_byte(p, '\x94');
    } else {
        put_byte(p, 'r');
        put_number(p, value->memo - 1, 4);
    }
}

static bool put_reference(const struct pickler *p, const struct value *value)
{
    if (value->memo == 0) {
        return false;
    }
    put_byte(p, 'j');
    put_number(p, value->memo - 1, 4);
    return true;
}

/* LONG1 with as many bytes as it takes, one more for the sign. */
static void put_int(const struct pickler *p, const struct value *value)
{
    const bool negative = value->kind == VALUE_INT && (int64_t)value->number < 0;

    if (value->kind == VALUE_INT && (p->flavour & 2) &&
        (int64_t)value->number == (int32_t)value->number) {
        put_byte(p, 'J');
        put_number(p, value->number, 4);
        return;
    }
    put_byte(p, '\x8a');
    put_byte(p, value->kind == VALUE_HUGE ? '\21' : '\11');
    if (value->kind == VALUE_HUGE) {
        put_number(p, 0, 8);
    }
    put_number(p, value->number, 8);
    put_byte(p, negative ? '\xff' : 0);
}

static void put_float(const struct pickler *p, double real)
{
    uint64_t bits;

    memcpy(&bits, &real, sizeof bits);
    put_byte(p, 'G');
    for (int shift = 56; shift >= 0; shift -= 8) {
        put_byte(p, (char)(bits >> shift));
    }
}

static void put_text(struct pickler *p, struct value *value)
{
    put_byte(p, value->kind == VALUE_BYTES ? 'B' : 'X');
    put_number(p, value->length, 4);
    document_put(p->document, value->text, value->length);
    put_memo(p, value);
}

static void put_scalar(struct pickler *p, struct value *value)
{
    switch (value->kind) {
    case VALUE_BOOL:
        put_byte(p, value->number ? '\x88' : '\x89');
        break;
    case VALUE_INT:
    case VALUE_UINT:
    case VALUE_HUGE:
        put_int(p, value);
        break;
    case VALUE_FLOAT:
        put_float(p, value->real);
        break;
    case VALUE_TEXT:
    case VALUE_BYTES:
        put_text(p, value);
        break;
    case VALUE_NONE:
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
        put_byte(p, 'N');
        break;
    }
}

/* What a generator makes is not deep, so this may call itself. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void put_value(struct pickler *p, struct value *value)
{
    const bool is_tuple = value->kind == VALUE_TUPLE;
    const bool is_dict = value->kind == VALUE_DICT;

    if (put_reference(p, value)) {
        return;
    }
    if (value->kind != VALUE_LIST && !is_tuple && !is_dict) {
        put_scalar(p, value);
        return;
    }
    if (is_tuple && value->depth > 0) { /* one that holds itself, which no pickle can say */
        put_byte(p, 'N');
        return;
    }
    value->depth++;
    if (!is_tuple) {
        put_byte(p, is_dict ? '}' : ']');
        put_memo(p, value);
    }
    put_byte(p, '(');
    for (size_t i = 0; i < value->count; i++) {
        put_value(p, p->pool->slots[value->first + i]);
    }
    put_byte(p, (char)(is_tuple ? 't' : is_dict ? 'u' : 'e'));
    if (is_tuple) {
        put_memo(p, value);
    }
    value->depth--;
}

void value_write_pickle(struct value_pool *pool, struct value *value, unsigned flavour,
                        struct document *document)
{
    struct pickler p = {.pool = pool, .document = document, .flavour = flavour};

    for (size_t i = 0; i < pool->count; i++) {
        pool->values[i].memo = 0;
        pool->values[i].depth = 0;
    }
    put_byte(&p, '\x80');
    put_byte(&p, flavour & 1 ? '\4' : '\2');
    put_value(&p, value);
    put_byte(&p, '.');
}
