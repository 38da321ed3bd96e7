/* SPDX-License-Identifier: MIT */
#include "base/json_text.h"

#include "base/assertion.h"
#include "base/escaped.h"
#include "tarn/base.h"

#include <inttypes.h>
#include <string.h>

static void string_put(struct tn_json_text *json, const char *text, size_t length)
{
    tn_text_putc(json->out, '"');
    tn_text_put_escaped(json->out, text, length, TN_ESCAPED_JSON);
    tn_text_putc(json->out, '"');
}

static void line_begin(struct tn_json_text *json)
{
    if (json->layout == TN_JSON_INDENTED) {
        tn_text_printf(json->out, "\n%*s", (int)(2 * json->depth), "");
    }
}

/* Writes what precedes every member: comma, newline, key. */
static void member_begin(struct tn_json_text *json, const char *key)
{
    if (json->depth > 0) {
        if (!json->is_empty) {
            tn_text_putc(json->out, ',');
            if (json->layout == TN_JSON_PYTHON) {
                tn_text_putc(json->out, ' ');
            }
        }
        line_begin(json);
    }
    json->is_empty = false;
    if (key) {
        string_put(json, key, strlen(key));
        tn_text_putc(json->out, ':');
        if (json->layout != TN_JSON_COMPACT) {
            tn_text_putc(json->out, ' ');
        }
    }
}

static void level_open(struct tn_json_text *json, const char *key, char opener, char closer)
{
    tn_assert(json->depth < TN_JSON_DEPTH_MAX);
    member_begin(json, key);
    tn_text_putc(json->out, opener);
    json->closers[json->depth++] = closer;
    json->is_empty = true;
}

void tn_json_open_object(struct tn_json_text *json, const char *key)
{
    level_open(json, key, '{', '}');
}

void tn_json_open_array(struct tn_json_text *json, const char *key)
{
    level_open(json, key, '[', ']');
}

void tn_json_close(struct tn_json_text *json)
{
    tn_assert(json->depth > 0);
    json->depth--;
    if (!json->is_empty) {
        line_begin(json);
    }
    tn_text_putc(json->out, json->closers[json->depth]);
    json->is_empty = false;
}

void tn_json_text(struct tn_json_text *json, const char *key, const char *text, size_t length)
{
    member_begin(json, key);
    string_put(json, text, length);
}

void tn_json_word(struct tn_json_text *json, const char *key, const char *word)
{
    tn_json_text(json, key, word, strlen(word));
}

void tn_json_number(struct tn_json_text *json, const char *key, uint64_t number)
{
    member_begin(json, key);
    tn_text_put_number(json->out, number);
}

void tn_json_number_or_null(struct tn_json_text *json, const char *key, uint64_t number,
                            uint64_t none)
{
    if (number == none) {
        tn_json_null(json, key);
    } else {
        tn_json_number(json, key, number);
    }
}

void tn_json_signed(struct tn_json_text *json, const char *key, int64_t number)
{
    member_begin(json, key);
    if (number < 0) {
        tn_text_putc(json->out, '-');
    }
    tn_text_put_number(json->out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void tn_json_address(struct tn_json_text *json, const char *key, uint64_t address)
{
    member_begin(json, key);
    tn_text_printf(json->out, "\"0x%" PRIx64 "\"", address);
}

void tn_json_bool(struct tn_json_text *json, const char *key, bool value)
{
    member_begin(json, key);
    tn_text_puts(json->out, value ? "true" : "false");
}

void tn_json_null(struct tn_json_text *json, const char *key)
{
    member_begin(json, key);
    tn_text_puts(json->out, "null");
}

void tn_json_init(struct tn_json_text *json, struct tn_text_out *out, enum tn_json_layout layout)
{
    *json = (struct tn_json_text){.out = out, .layout = layout, .is_empty = true};
}

void tn_json_begin_flat(struct tn_json_text *json, struct tn_text_out *out,
                        enum tn_json_layout layout, const char *schema)
{
    tn_json_init(json, out, layout);
    tn_json_open_object(json, NULL);
    tn_json_word(json, "schema", schema);
    tn_json_open_object(json, "tool");
    tn_json_word(json, "name", "tarn");
    tn_json_word(json, "version", TARN_VERSION_STRING);
    tn_json_close(json);
}

void tn_json_begin(struct tn_json_text *json, struct tn_text_out *out, const char *schema)
{
    tn_json_begin_flat(json, out, TN_JSON_INDENTED, schema);
    tn_json_open_object(json, "data");
}

void tn_json_end(struct tn_json_text *json)
{
    while (json->depth > 0) {
        tn_json_close(json);
    }
    tn_text_putc(json->out, '\n');
}
