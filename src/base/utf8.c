/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

/* Length of the sequence that starts with `lead`, 0 if it is not a lead byte. */
static size_t sequence_length(uint8_t lead)
{
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Excludes overlong encodings and code points above U+10FFFF, both detectable in the second
 * byte. */
static bool second_byte_fits(uint8_t lead, uint8_t second)
{
    return !(lead == 0xe0 && second < 0xa0) && !(lead == 0xf0 && second < 0x90) &&
           !(lead == 0xf4 && second > 0x8f);
}

static bool sequence_is_valid(const uint8_t *bytes, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return false;
        }
    }
    return length == 1 || second_byte_fits(bytes[0], bytes[1]);
}

bool tn_utf8_is_valid(const char *text, size_t length)
{
    const uint8_t *at = (const uint8_t *)text;
    const uint8_t *end = at + length;

    while (at < end) {
        uint64_t word;

        while ((size_t)(end - at) >= sizeof word) {
            memcpy(&word, at, sizeof word);
            if (word & 0x8080808080808080u) {
                break;
            }
            at += sizeof word;
        }
        if (at == end) {
            break;
        }
        const size_t count = sequence_length(*at);
        if (count == 0 || (size_t)(end - at) < count || !sequence_is_valid(at, count)) {
            return false;
        }
        at += count;
    }
    return true;
}

/* U+DC00 with the byte as its lowest bits. */
static void surrogate_put(char *out, uint8_t byte)
{
    out[0] = (char)0xed;
    out[1] = (char)(0xb0 | byte >> 6);
    out[2] = (char)(0x80 | (byte & 0x3f));
}

size_t tn_utf8_repair(const char *text, size_t length, char *out)
{
    size_t size = 0;

    for (size_t at = 0; at < length;) {
        uint32_t code;
        const size_t count = tn_utf8_decode(text + at, length - at, &code);

        if (count == 0) {
            surrogate_put(out + size, (uint8_t)text[at]);
            size += TN_UTF8_REPAIR_GROWTH;
            at++;
        } else {
            memcpy(out + size, text + at, count);
            size += count;
            at += count;
        }
    }
    return size;
}

size_t tn_utf8_decode(const char *text, size_t length, uint32_t *code_out)
{
    static const uint8_t lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const uint8_t *at = (const uint8_t *)text;
    const size_t count = sequence_length(*at);

    if (count == 0 || length < count || !sequence_is_valid(at, count)) {
        return 0;
    }
    uint32_t code = *at & lead_bits[count];

    for (size_t i = 1; i < count; i++) {
        code = code << 6 | (at[i] & 0x3fu);
    }
    *code_out = code;
    return count;
}

int tn_utf8_fit(const char *text, size_t length, size_t most)
{
    size_t lead = most; /* start of the character at `most` */
    uint32_t code;

    if (length <= most) {
        return (int)length;
    }
    while (lead > 0 && most - lead < TN_UTF8_MAX - 1 && ((uint8_t)text[lead] & 0xc0) == 0x80) {
        lead--;
    }
    return (int)(lead + tn_utf8_decode(text + lead, length - lead, &code) > most ? lead : most);
}

bool tn_utf8_is_printable(uint32_t code)
{
    /* Unicode categories Cc, Cf, Cs, Co, Zl, Zp, Zs except the space; sorted. */
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x00, 0x1f},       {0x7f, 0xa0},          {0xad, 0xad},       {0x600, 0x605},
        {0x61c, 0x61c},     {0x6dd, 0x6dd},        {0x70f, 0x70f},     {0x890, 0x891},
        {0x8e2, 0x8e2},     {0x1680, 0x1680},      {0x180e, 0x180e},   {0x2000, 0x200f},
        {0x2028, 0x202f},   {0x205f, 0x206f},      {0x3000, 0x3000},   {0xd800, 0xf8ff},
        {0xfeff, 0xfeff},   {0xfff9, 0xfffb},      {0xfffe, 0xffff},   {0x110bd, 0x110bd},
        {0x110cd, 0x110cd}, {0x13430, 0x1343f},    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
        {0xe0000, 0xe007f}, {0xf0000, UINT32_MAX},
    };

    for (size_t i = 0; code >= hidden[i].first; i++) { /* the last has no end */
        if (code <= hidden[i].last) {
            return false;
        }
    }
    return true;
}
