/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the sequence that begins with `lead`, 0 when nothing does. */
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

/* Excludes overlong forms and code points above U+10FFFF, which show in the second byte. */
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
