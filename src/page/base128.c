/* SPDX-License-Identifier: MIT */
#include "page/base128.h"

enum {
    PLAIN_BITS = 7,
    MORE_BITS = 5, /* after a value that is not a character */
    BOTH_BITS = PLAIN_BITS + MORE_BITS,
    ROOM = 1024
};

/* 1 more than which of the values that are no character it is; 0: it is one. The order is that of
 * viewer/payload.js. */
static const uint8_t forbidden[1 << PLAIN_BITS] = {['\0'] = 1, ['\r'] = 2, ['<'] = 3, [0x1a] = 4};

/* Takes the highest bits that are left. */
static uint32_t bits_take(struct tn_base128 *encoder, unsigned count)
{
    encoder->count -= count;
    return encoder->bits >> encoder->count & ((1u << count) - 1);
}

/* Writes the characters that the bits are enough for; returns the bytes of them. */
static size_t characters_make(struct tn_base128 *encoder, char *text)
{
    size_t used = 0;

    while (encoder->count >= PLAIN_BITS) {
        const uint32_t value = encoder->bits >> (encoder->count - PLAIN_BITS) & 0x7f;

        if (forbidden[value] == 0) {
            text[used++] = (char)bits_take(encoder, PLAIN_BITS);
        } else if (encoder->count < BOTH_BITS) {
            break;
        } else {
            const uint32_t low = bits_take(encoder, BOTH_BITS) & ((1u << MORE_BITS) - 1);
            const uint32_t code = (uint32_t)(forbidden[value] - 1) << MORE_BITS | low;

            text[used++] = (char)(unsigned char)(0xc2 | code >> 6);
            text[used++] = (char)(unsigned char)(0x80 | (code & 0x3f));
        }
    }
    return used;
}

void tn_base128_put(struct tn_base128 *encoder, const uint8_t *bytes, size_t size)
{
    char text[ROOM + 8];
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        encoder->bits = encoder->bits << 8 | bytes[i];
        encoder->count += 8;
        used += characters_make(encoder, text + used);
        if (used >= ROOM) {
            tn_text_put(encoder->out, text, used);
            used = 0;
        }
    }
    tn_text_put(encoder->out, text, used);
}

void tn_base128_finish(struct tn_base128 *encoder)
{
    char text[8];

    while (encoder->count > 0) {
        encoder->bits = encoder->bits << 1 | 1;
        encoder->count++;
        tn_text_put(encoder->out, text, characters_make(encoder, text));
    }
}
