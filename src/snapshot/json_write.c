/* SPDX-License-Identifier: MIT */
#include "snapshot/json_write.h"

#include "base/decimal.h"
#include "base/escaped.h"

#include <math.h>
#include <stdio.h>

static void put(struct tn_format *format, char c)
{
    tn_bytes_put_one(format->out, (unsigned char)c);
}

static void put_text(struct tn_format *format, const char *text)
{
    tn_bytes_put(format->out, text, strlen(text));
}

static void json_end(struct tn_format *format)
{
    put(format, '\n');
}

static void json_list_begin(struct tn_format *format, uint64_t count)
{
    (void)count;
    put(format, '[');
}

static void json_item(struct tn_format *format, uint64_t index)
{
    if (index > 0) {
        put(format, ',');
    }
}

static void json_list_end(struct tn_format *format, uint64_t count)
{
    (void)count;
    put(format, ']');
}

static void json_dict_begin(struct tn_format *format)
{
    put(format, '{');
}

static void json_dict_end(struct tn_format *format)
{
    put(format, '}');
}

static void json_none(struct tn_format *format)
{
    put_text(format, "null");
}

static void json_boolean(struct tn_format *format, bool value)
{
    put_text(format, value ? "true" : "false");
}

static void json_whole(struct tn_format *format, uint64_t value)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    unsigned char *at = tn_bytes_room(format->out);

    for (size_t i = 0; i < count; i++) {
        at[i] = (unsigned char)digits[count - 1 - i];
    }
    tn_bytes_advance(format->out, count);
}

static void json_integer(struct tn_format *format, int64_t value)
{
    if (value < 0) {
        put(format, '-');
    }
    json_whole(format, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* With a point or an exponent, so that it is read back as a float. */
static void json_real(struct tn_format *format, double value)
{
    if (!isfinite(value)) {
        json_none(format);
        return;
    }
    const struct tn_decimal_text text = tn_real_format(value);

    put_text(format, text.text);
    if (!strpbrk(text.text, ".eE")) {
        put_text(format, ".0");
    }
}

/* A lone surrogate encoded in three bytes, as in Python's pickles; 0 if there is none. */
static unsigned surrogate_at(const char *text, size_t left)
{
    const unsigned char *at = (const unsigned char *)text;

    return left >= 3 && at[0] == 0xed && at[1] >= 0xa0
               ? 0xd000u | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu)
               : 0;
}

/* Python reads it back unchanged; elsewhere it is no character. */
static size_t put_surrogate(struct tn_format *format, unsigned code)
{
    char text[8];

    (void)snprintf(text, sizeof text, "\\u%04x", code & 0xffff);
    put_text(format, text);
    return 3;
}

/* Invisible ones are escaped, so that the output is safe for terminals. Returns its length. */
static size_t put_escaped(struct tn_format *format, const char *text, size_t length)
{
    struct tn_escaped shown;
    const size_t count = tn_escaped_next(text, length, TN_ESCAPED_JSON, &shown);

    tn_bytes_put(format->out, shown.text, shown.length);
    return count;
}

/* Two surrogates that form a pair, as the character that readers make of them. Returns their
 * length. */
static size_t put_pair(struct tn_format *format, unsigned high, unsigned low)
{
    const uint32_t code = 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
    const char text[] = {(char)(0xf0 | code >> 18), (char)(0x80 | (code >> 12 & 0x3f)),
                         (char)(0x80 | (code >> 6 & 0x3f)), (char)(0x80 | (code & 0x3f))};

    (void)put_escaped(format, text, sizeof text);
    return 6;
}

/* Writes one character; returns the length of what it was. */
static size_t put_character(struct tn_format *format, const char *text, size_t length)
{
    const unsigned surrogate = surrogate_at(text, length);
    const unsigned next = surrogate ? surrogate_at(text + 3, length - 3) : 0;

    if (surrogate && surrogate < 0xdc00 && next >= 0xdc00) {
        return put_pair(format, surrogate, next);
    }
    return surrogate ? put_surrogate(format, surrogate) : put_escaped(format, text, length);
}

static void put_string(struct tn_format *format, const char *text, size_t length)
{
    while (length > 0) {
        size_t count = tn_escaped_plain(text, length, TN_ESCAPED_JSON);

        if (count > 0) {
            tn_bytes_put(format->out, text, count);
        } else {
            count = put_character(format, text, length);
        }
        text += count;
        length -= count;
    }
}

static void json_string(struct tn_format *format, uint32_t string)
{
    const struct tn_string text = tn_model_string(format->model, string);

    put(format, '"');
    put_string(format, text.text, text.length);
    put(format, '"');
}

static void json_key(struct tn_format *format, uint64_t index, uint32_t string)
{
    json_item(format, index);
    json_string(format, string);
    put(format, ':');
}

static void json_pair(struct tn_format *format, const uint64_t pair[2])
{
    put(format, '[');
    json_whole(format, pair[0]);
    put(format, ',');
    json_whole(format, pair[1]);
    put(format, ']');
}

static const struct tn_format_ops json_ops = {
    .end = json_end,
    .list_begin = json_list_begin,
    .item = json_item,
    .list_end = json_list_end,
    .tuple_begin = json_list_begin,
    .tuple_item = json_item,
    .tuple_end = json_list_end,
    .dict_begin = json_dict_begin,
    .key = json_key,
    .dict_end = json_dict_end,
    .none = json_none,
    .boolean = json_boolean,
    .integer = json_integer,
    .whole = json_whole,
    .real = json_real,
    .string = json_string,
    .pair = json_pair,
};

struct tn_format tn_json_format(const struct tn_model *model, struct tn_byte_out *out)
{
    return (struct tn_format){.ops = &json_ops, .model = model, .out = out};
}
