/* SPDX-License-Identifier: MIT */
#include "page/letters.h"

enum {
    PLAIN_BITS = 7,
    MORE_BITS = 5, /* behind a value that is no character */
    BOTH_BITS = PLAIN_BITS + MORE_BITS,
    ROOM = 1024
};

/* 1 more than which of the values that are no character it is; 0: it is one. The order is that of
 * viewer/payload.js. */
static const uint8_t forbidden[1 << PLAIN_BITS] = {['\0'] = 1, ['\r'] = 2, ['<'] = 3, [0x1a] = 4};

/* Takes the highest bits that are left. */
static uint32_t bits_take(struct tn_letters *letters, unsigned count)
{
    letters->count -= count;
    return letters->bits >> letters->count & ((1u << count) - 1);
}

/* Writes the characters that the bits are enough for; returns the bytes of them. */
static size_t characters_make(struct tn_letters *letters, char *text)
{
    size_t used = 0;

    while (letters->count >= PLAIN_BITS) {
        const uint32_t value = letters->bits >> (letters->count - PLAIN_BITS) & 0x7f;

        if (forbidden[value] == 0) {
            text[used++] = (char)bits_take(letters, PLAIN_BITS);
        } else if (letters->count < BOTH_BITS) {
            break;
        } else {
            const uint32_t low = bits_take(letters, BOTH_BITS) & ((1u << MORE_BITS) - 1);
            const uint32_t code = (uint32_t)(forbidden[value] - 1) << MORE_BITS | low;

            text[used++] = (char)(unsigned char)(0xc2 | code >> 6);
            text[used++] = (char)(unsigned char)(0x80 | (code & 0x3f));
        }
    }
    return used;
}

void tn_letters_put(struct tn_letters *letters, const uint8_t *bytes, size_t size)
{
    char text[ROOM + 8];
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        letters->bits = letters->bits << 8 | bytes[i];
        letters->count += 8;
        used += characters_make(letters, text + used);
        if (used >= ROOM) {
            tn_text_put(letters->out, text, used);
            used = 0;
        }
    }
    tn_text_put(letters->out, text, used);
}

void tn_letters_finish(struct tn_letters *letters)
{
    char text[8];

    while (letters->count > 0) {
        letters->bits = letters->bits << 1 | 1;
        letters->count++;
        tn_text_put(letters->out, text, characters_make(letters, text));
    }
}
