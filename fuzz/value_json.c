/* SPDX-License-Identifier: MIT */
/* Values as JSON, written out wherever they stand; what holds itself ends after a few rounds. */
#include "value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    ROUNDS_MAX = 2 /* of a container in itself */
};

static void put_json_text(struct document *document, const struct value *value)
{
    char escape[8];

    document_put_text(document, "\"");
    for (size_t i = 0; i < value->length; i++) {
        const unsigned byte = value->text[i];

        if (byte < ' ' || byte == '"' || byte == '\\') {
            (void)snprintf(escape, sizeof escape, "\\u%04x", byte);
            document_put_text(document, escape);
        } else {
            document_put(document, &value->text[i], 1);
        }
    }
    document_put_text(document, "\"");
}

static void put_json_number(struct document *document, const struct value *value)
{
    char text[64] = "";

    if (value->kind == VALUE_FLOAT) {
        (void)snprintf(text, sizeof text, "%.17g", value->real);
    } else if (value->kind == VALUE_INT) {
        (void)snprintf(text, sizeof text, "%" PRId64, (int64_t)value->number);
    } else {
        (void)snprintf(text, sizeof text, "%" PRIu64 "%s", value->number,
                       value->kind == VALUE_HUGE ? "00000000000000000000" : "");
    }
    /* Python writes NaN and Infinity, which JSON does not have. */
    document_put_text(document, value->kind == VALUE_FLOAT && isnan(value->real)   ? "NaN"
                                : value->kind == VALUE_FLOAT && isinf(value->real) ? "-Infinity"
                                                                                   : text);
}

static void put_json_scalar(struct document *document, const struct value *value)
{
    switch (value->kind) {
    case VALUE_BOOL:
        document_put_text(document, value->number ? "true" : "false");
        break;
    case VALUE_INT:
    case VALUE_UINT:
    case VALUE_HUGE:
    case VALUE_FLOAT:
        put_json_number(document, value);
        break;
    case VALUE_TEXT:
    case VALUE_BYTES:
        put_json_text(document, value);
        break;
    case VALUE_NONE:
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_DICT:
        document_put_text(document, "null");
        break;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): what a generator makes is not deep */
static void put_json(struct value_pool *pool, struct value *value, struct document *document)
{
    const bool is_dict = value->kind == VALUE_DICT;

    if ((value->kind != VALUE_LIST && value->kind != VALUE_TUPLE && !is_dict) ||
        value->depth >= ROUNDS_MAX || document->is_full) {
        put_json_scalar(document, value);
        return;
    }
    value->depth++;
    document_put_text(document, is_dict ? "{" : "[");
    for (size_t i = 0; i < value->count; i++) {
        document_put_text(document, i == 0 ? "" : is_dict && i % 2 ? ":" : ",");
        put_json(pool, pool->slots[value->first + i], document);
    }
    document_put_text(document, is_dict ? "}" : "]");
    value->depth--;
}

void value_write_json(struct value_pool *pool, struct value *value, struct document *document)
{
    for (size_t i = 0; i < pool->count; i++) {
        pool->values[i].depth = 0;
    }
    put_json(pool, value, document);
}
