/* SPDX-License-Identifier: MIT */
#include "base/escaped.h"

#include "base/assertion.h"
#include "base/utf8.h"
#include "tarn/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void escaped_set(struct tn_escaped *escaped, const char *text, size_t length)
{
    memcpy(escaped->text, text, length);
    escaped->text[length] = '\0';
    escaped->length = length;
}

/* Characters with a special escape in this format. */
static const char *spelling_find(char c, enum tn_escape_format format)
{
    static const struct {
        enum tn_escape_format format;
        char c;
        const char *spelling;
    } spellings[] = {
        {TN_ESCAPED_LINES, '\n', "\n"},   {TN_ESCAPED_XML, '&', "&amp;"},
        {TN_ESCAPED_XML, '<', "&lt;"},    {TN_ESCAPED_XML, '>', "&gt;"},
        {TN_ESCAPED_XML, '"', "&quot;"},  {TN_ESCAPED_XML, '\'', "&#39;"},
        {TN_ESCAPED_JSON, '"', "\\\""},   {TN_ESCAPED_JSON, '\\', "\\\\"},
        {TN_ESCAPED_JSON, '\n', "\\n"},   {TN_ESCAPED_PYTHON, '\\', "\\\\"},
        {TN_ESCAPED_PYTHON, '\n', "\\n"}, {TN_ESCAPED_PYTHON, '\r', "\\r"},
        {TN_ESCAPED_PYTHON, '\t', "\\t"}, {TN_ESCAPED_PYTHON, '\'', "\\'"},
    };

    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        const bool same = spellings[i].format == format ||
                          (format == TN_ESCAPED_PYTHON_DOUBLE &&
                           spellings[i].format == TN_ESCAPED_PYTHON && c != '\'');

        if (same && spellings[i].c == c) {
            return spellings[i].spelling;
        }
    }
    return NULL;
}

/* Backslash, `kind`, and `digits` hexadecimal digits. */
static void escape_print(struct tn_escaped *escaped, char kind, int digits, uint32_t code)
{
    escaped->length = (size_t)snprintf(escaped->text, sizeof escaped->text, "\\%c%0*x", kind,
                                       digits, (unsigned)code);
}

/* JSON has only 16-bit escapes. A lone surrogate is not a character: many readers reject it. */
static void escape_json(struct tn_escaped *escaped, uint32_t code)
{
    if (code < 0x10000) {
        escape_print(escaped, 'u', 4, code >= 0xd800 && code <= 0xdfff ? 0xfffd : code);
        return;
    }
    code -= 0x10000;
    escaped->length =
        (size_t)snprintf(escaped->text, sizeof escaped->text, "\\u%04x\\u%04x",
                         (unsigned)(0xd800 | code >> 10), (unsigned)(0xdc00 | (code & 0x3ff)));
}

static void escape_set(struct tn_escaped *escaped, uint32_t code, enum tn_escape_format format)
{
    if (format == TN_ESCAPED_JSON) {
        escape_json(escaped, code);
    } else if (code < 0x100) {
        escape_print(escaped, 'x', 2, code);
    } else {
        escape_print(escaped, code < 0x10000 ? 'u' : 'U', code < 0x10000 ? 4 : 8, code);
    }
}

/* A byte of invalid UTF-8. JSON has no escape for bytes. */
static size_t byte_set(struct tn_escaped *escaped, unsigned char byte, enum tn_escape_format format)
{
    escape_set(escaped, format == TN_ESCAPED_JSON ? 0xfffd : byte, format);
    return 1;
}

size_t tn_escaped_next(const char *text, size_t length, enum tn_escape_format format,
                       struct tn_escaped *escaped_out)
{
    const char *spelling = spelling_find(*text, format);
    uint32_t code;

    if (spelling) {
        escaped_set(escaped_out, spelling, strlen(spelling));
        return 1;
    }
    const size_t count = tn_utf8_decode(text, length, &code);

    if (count == 0) {
        return byte_set(escaped_out, (unsigned char)*text, format);
    }
    if (tn_utf8_is_printable(code)) {
        escaped_set(escaped_out, text, count);
    } else {
        escape_set(escaped_out, code, format);
    }
    return count;
}

/* For each byte, the set of formats (as bits) that need no escape. */
enum {
    PLAIN_BIT = 1 << TN_ESCAPED_PLAIN | 1 << TN_ESCAPED_LINES,
    XML_BIT = 1 << TN_ESCAPED_XML,
    JSON_BIT = 1 << TN_ESCAPED_JSON,
    SINGLE_BIT = 1 << TN_ESCAPED_PYTHON,
    DOUBLE_BIT = 1 << TN_ESCAPED_PYTHON_DOUBLE,
    EVERY_BIT = PLAIN_BIT | XML_BIT | JSON_BIT | SINGLE_BIT | DOUBLE_BIT
};

static uint8_t plain_forms(unsigned char byte)
{
    if (byte < ' ' || byte >= 0x7f) {
        return 0;
    }
    switch (byte) {
    case '&':
    case '<':
    case '>':
        return EVERY_BIT & ~XML_BIT;
    case '"':
        return EVERY_BIT & ~(XML_BIT | JSON_BIT);
    case '\'':
        return EVERY_BIT & ~(XML_BIT | SINGLE_BIT);
    case '\\':
        return EVERY_BIT & ~(JSON_BIT | SINGLE_BIT | DOUBLE_BIT);
    default:
        return EVERY_BIT;
    }
}

#define EACH_BYTE ((uint64_t)0x0101010101010101)
#define HIGH_BITS ((uint64_t)0x8080808080808080)

/* The high bit of each byte below `limit` (at most 128), and of some others only if there is one.
 */
static uint64_t bytes_below(uint64_t bytes, uint64_t limit)
{
    return (bytes - EACH_BYTE * limit) & ~bytes & HIGH_BITS;
}

/* Whether eight bytes are letters, digits and the like, which no format escapes; false for most
 * punctuation too. */
static bool is_common(const char *text)
{
    uint64_t bytes;

    memcpy(&bytes, text, sizeof bytes);
    const uint64_t unlike_backslash = bytes ^ EACH_BYTE * '\\';
    const uint64_t from_delete = (bytes + EACH_BYTE) | bytes; /* high bit: 0x7f and beyond */

    return ((bytes_below(bytes, '(') | bytes_below(unlike_backslash, 1) | from_delete) &
            HIGH_BITS) == 0;
}

/* Eight at a time while they are the text of names and paths; the last eight may overlap those
 * before. */
static size_t common_count(const char *text, size_t length)
{
    size_t count = 0;

    while (length - count >= sizeof(uint64_t) && is_common(text + count)) {
        count += sizeof(uint64_t);
    }
    const bool is_whole = length - count < sizeof(uint64_t) && length >= sizeof(uint64_t) &&
                          is_common(text + length - sizeof(uint64_t));

    return is_whole ? length : count;
}

size_t tn_escaped_plain(const char *text, size_t length, enum tn_escape_format format)
{
    size_t count = format == TN_ESCAPED_XML ? 0 : common_count(text, length);

    while (count < length && plain_forms((unsigned char)text[count]) >> format & 1) {
        count++;
    }
    return count;
}

void tn_text_put_escaped(struct tn_text_out *out, const char *text, size_t length,
                         enum tn_escape_format format)
{
    while (length > 0) {
        size_t count = tn_escaped_plain(text, length, format);

        if (count > 0) {
            tn_text_put(out, text, count);
        } else {
            struct tn_escaped escaped;

            count = tn_escaped_next(text, length, format, &escaped);
            tn_text_put(out, escaped.text, escaped.length);
        }
        text += count;
        length -= count;
    }
}

size_t tn_escaped_copy(const char *text, size_t length, enum tn_escape_format format, char *escaped,
                       size_t size)
{
    size_t taken = 0;
    size_t used = 0;

    tn_assert(size >= TN_ESCAPED_MAX);
    while (taken < length) {
        struct tn_escaped one;
        const size_t count = tn_escaped_next(text + taken, length - taken, format, &one);

        if (one.length >= size - used) {
            break;
        }
        memcpy(escaped + used, one.text, one.length);
        used += one.length;
        taken += count;
    }
    escaped[used] = '\0';
    return taken;
}

void tn_text_put_python(struct tn_text_out *out, const char *text, size_t length)
{
    const bool is_double = memchr(text, '\'', length) && !memchr(text, '"', length);
    const char quote = (char)(is_double ? '"' : '\'');

    tn_text_putc(out, quote);
    tn_text_put_escaped(out, text, length,
                        is_double ? TN_ESCAPED_PYTHON_DOUBLE : TN_ESCAPED_PYTHON);
    tn_text_putc(out, quote);
}

/* ---- tarn/text.h ---- */

static_assert((int)TARN_TEXT_ESCAPED_MIN == (int)TN_ESCAPED_MAX, "one number");

size_t tarn_text_escape(const char *text, size_t length, enum tarn_text_format format,
                        char *escaped, size_t size)
{
    const enum tn_escape_format inside =
        format == TARN_TEXT_JSON ? TN_ESCAPED_JSON : TN_ESCAPED_PLAIN;

    if (size < TN_ESCAPED_MAX) {
        if (size > 0) {
            *escaped = '\0';
        }
        return 0;
    }
    return tn_escaped_copy(text, length, inside, escaped, size);
}

size_t tarn_text_fit(const char *text, size_t most)
{
    return (size_t)tn_utf8_cut(text, most);
}

bool tarn_text_is_formula(const char *text, size_t length)
{
    static const char *const starts[] = {
        "=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
    bool is_one = false;

    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t size = strlen(starts[i]);

        is_one = is_one || (length >= size && memcmp(text, starts[i], size) == 0);
    }
    return is_one;
}
