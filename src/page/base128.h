/* SPDX-License-Identifier: MIT */
/*
 * Base 128: bytes as text that is valid UTF-8 and passes through HTML's script elements as it is,
 * seven bits a character, the highest first. Four values cannot be characters of such a text: NUL
 * and CR, which parsers of HTML change, "<", with which a tag would begin, and Ctrl-Z, at which
 * some programs stop. Instead of one of them comes a character of U+0080 to U+00FF, two bytes of
 * UTF-8: two bits select one of the four, five are the bits that follow. So 7 bytes become 8.15 on
 * the average, and programs that keep characters of up to U+00FF in a byte each need no more than
 * that.
 *
 * The last bits are filled with ones, at most seven: no whole byte. Borrows the output. Guarded by
 * its owner.
 */
#ifndef TN_PAGE_BASE128_H
#define TN_PAGE_BASE128_H

#include "base/text_out.h"

#include <stdint.h>

struct tn_base128 {
    struct tn_text_out *out;
    uint32_t bits;  /* not written so far, in the lowest places */
    unsigned count; /* of them, at most 11 between calls */
};

static inline void tn_base128_init(struct tn_base128 *encoder, struct tn_text_out *out)
{
    *encoder = (struct tn_base128){.out = out};
}

void tn_base128_put(struct tn_base128 *encoder, const uint8_t *bytes, size_t size);

/* The bits that are left. */
void tn_base128_finish(struct tn_base128 *encoder);

#endif
