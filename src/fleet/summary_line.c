/* SPDX-License-Identifier: MIT */
#include "fleet/fleet.h"

#include <string.h>

enum {
    HEX_DIGITS = 16
};

/* Between the number of a stack and its frames. */
static const char middle[] = "\",\"frames\":";

uint64_t tn_line_hash(uint64_t hash, const char *line, size_t length)
{
    return tn_stable_hash(tn_stable_hash(hash, line, length), "\n", 1);
}

uint64_t tn_stack_line_id(const char *frames, size_t length)
{
    const uint64_t hash = tn_stable_hash(TN_STABLE_HASH_BEGIN, frames, length);

    return hash ? hash : 1;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool tn_hex_read(const char *text, size_t length, uint64_t *number_out)
{
    uint64_t number = 0;

    if (length != HEX_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        const int digit = digit_value(text[i]);

        if (digit < 0) {
            return false;
        }
        number = number << 4 | (uint64_t)digit;
    }
    *number_out = number;
    return true;
}

bool tn_line_begins(const char *line, size_t length, const char *begin)
{
    const size_t size = strlen(begin);

    return length >= size && memcmp(line, begin, size) == 0;
}

bool tn_stack_line_check(const char *line, size_t length, uint64_t *id_out, const char **frames_out,
                         size_t *frames_length_out)
{
    const size_t begin = sizeof TN_SUMMARY_STACK - 1;
    const size_t frames = begin + HEX_DIGITS + sizeof middle - 1;

    if (length <= frames + 1 || !tn_line_begins(line, length, TN_SUMMARY_STACK) ||
        !tn_hex_read(line + begin, HEX_DIGITS, id_out) ||
        !tn_line_begins(line + begin + HEX_DIGITS, length - begin - HEX_DIGITS, middle) ||
        line[length - 1] != '}') {
        return false;
    }
    *frames_out = line + frames;
    *frames_length_out = length - frames - 1;
    return tn_stack_line_id(*frames_out, *frames_length_out) == *id_out;
}
