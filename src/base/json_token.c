/* SPDX-License-Identifier: MIT */
#include "base/json_token.h"

#include <stdint.h>
#include <string.h>

/* ---- strings ---- */

/* The value of four hexadecimal digits, or -1. */
static int32_t hex_parse(const uint8_t *at, const uint8_t *end)
{
    int32_t code = 0;

    if (end - at < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        const uint8_t c = at[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;

        if (digit < 0) {
            return -1;
        }
        code = code * 16 + digit;
    }
    return code;
}

static size_t utf8_put(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Decodes \u1234 at `at` (after the u), or a surrogate pair; returns the bytes read, 0 when it is
 * malformed. */
static size_t unicode_parse(const uint8_t *at, const uint8_t *end, uint32_t *code_out)
{
    const int32_t first = hex_parse(at, end);

    if (first < 0) {
        return 0;
    }
    *code_out = (uint32_t)first;
    if (first >= 0xd800 && first < 0xdc00 && end - at >= 10 && at[4] == '\\' && at[5] == 'u') {
        const int32_t second = hex_parse(at + 6, end);

        if (second >= 0xdc00 && second < 0xe000) {
            *code_out =
                0x10000u + ((uint32_t)first - 0xd800u) * 0x400u + (uint32_t)second - 0xdc00u;
            return 10;
        }
    }
    return 4;
}

/* The character of a one-letter escape, 0 if there is none. */
static char escape_letter(uint8_t c)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const char *found = c ? strchr(letters, c) : NULL;

    if (!found) {
        return '\0';
    }
    return meant[found - letters];
}

const char *tn_json_unescape(const char *text, size_t length, char *out, size_t *size_out)
{
    const uint8_t *at = (const uint8_t *)text;
    const uint8_t *end = at + length;
    size_t size = 0;

    while (at < end) {
        uint32_t code = 0;

        if (*at != '\\') {
            out[size++] = (char)*at++;
        } else if (end - at > 1 && at[1] == 'u') {
            const size_t read = unicode_parse(at + 2, end, &code);

            if (read == 0) {
                return "a string with an invalid \\u escape";
            }
            size += utf8_put(out + size, code);
            at += 2 + read;
        } else {
            const char meant = escape_letter(end - at > 1 ? at[1] : 0);

            if (meant == '\0') {
                return "a string with an unknown escape";
            }
            out[size++] = meant;
            at += 2;
        }
    }
    *size_out = size;
    return NULL;
}

/* ---- numbers ---- */

static size_t skip_digits(const char *text, size_t at)
{
    while (text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    return at;
}

bool tn_json_number_is_formed(const char *text, bool *whole_out)
{
    size_t at = text[0] == '-';
    const size_t digits = at;

    at = skip_digits(text, at);
    if (at == digits || (text[digits] == '0' && at > digits + 1)) {
        return false;
    }
    *whole_out = text[at] == '\0';
    if (text[at] == '.') {
        const size_t fraction = ++at;

        at = skip_digits(text, at);
        if (at == fraction) {
            return false;
        }
    }
    if (text[at] == 'e' || text[at] == 'E') {
        at += text[at + 1] == '+' || text[at + 1] == '-' ? 2 : 1;
        const size_t exponent = at;

        at = skip_digits(text, at);
        if (at == exponent) {
            return false;
        }
    }
    return text[at] == '\0';
}

bool tn_json_token_has(char c)
{
    return c != '\0' &&
           strchr("+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", c) != NULL;
}
