/* SPDX-License-Identifier: MIT */
#include "viewer/section.h"

#include "base/host_mem.h"

#define ZLIB_CONST
#include <zlib.h>

enum {
    LEVEL = 6,
    PIECE = 3 << 10 /* a multiple of 3: pieces of base64 join without padding */
};

/* What has been deflated and not written as base64: less than PIECE bytes. */
struct packing {
    struct tn_text_out *out;
    z_stream stream;
    uint8_t bytes[PIECE];
};

/* zlib does not say sizes when it gives memory back, so each piece carries its own. */
struct piece {
    size_t size;
    size_t unused;
};

static void *piece_alloc(void *context, unsigned count, unsigned item)
{
    const size_t size = sizeof(struct piece) + (size_t)count * item;
    struct piece *piece = tn_host_alloc(size);

    (void)context;
    if (!piece) {
        return NULL;
    }
    piece->size = size;
    return piece + 1;
}

static void piece_free(void *context, void *memory)
{
    struct piece *piece = (struct piece *)memory - 1;

    (void)context;
    tn_host_free(piece, piece->size);
}

static void base64_put(struct tn_text_out *out, const uint8_t *bytes, size_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[PIECE / 3 * 4];
    size_t used = 0;

    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t three = (uint32_t)bytes[i] << 16 |
                               (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                               (left > 2 ? bytes[i + 2] : 0);

        text[used] = letters[three >> 18];
        text[used + 1] = letters[three >> 12 & 63];
        text[used + 2] = letters[three >> 6 & 63];
        text[used + 3] = letters[three & 63];
        used += 4;
    }
    if (size % 3 > 0) {
        text[used - 1] = '=';
    }
    if (size % 3 == 1) {
        text[used - 2] = '=';
    }
    tn_text_put(out, text, used);
}

static void packed_put(struct packing *packing)
{
    base64_put(packing->out, packing->bytes, PIECE - packing->stream.avail_out);
    packing->stream.next_out = packing->bytes;
    packing->stream.avail_out = PIECE;
}

static void section_pack(struct packing *packing, const struct tn_column *column)
{
    const uint8_t *at = column->bytes.items;
    size_t left = column->bytes.count;
    int result = Z_OK;

    packing->stream.next_out = packing->bytes;
    packing->stream.avail_out = PIECE;
    while (result == Z_OK) {
        if (packing->stream.avail_in == 0 && left > 0) {
            const uInt more = left < 1u << 30 ? (uInt)left : 1u << 30;

            packing->stream.next_in = at;
            packing->stream.avail_in = more;
            at += more;
            left -= more;
        }
        result = deflate(&packing->stream, left > 0 ? Z_NO_FLUSH : Z_FINISH);
        if (packing->stream.avail_out == 0) {
            packed_put(packing);
        }
    }
    packed_put(packing);
}

bool tn_section_put(struct tn_text_out *out, const char *name, const struct tn_column *column)
{
    struct packing packing = {.out = out, .stream = {.zalloc = piece_alloc, .zfree = piece_free}};

    if (column->failed || deflateInit(&packing.stream, LEVEL) != Z_OK) {
        return false;
    }
    tn_text_printf(out,
                   "<script type=\"application/octet-stream\" data-name=\"%s\" data-size=\"%zu\">",
                   name, column->bytes.count);
    section_pack(&packing, column);
    tn_text_puts(out, "</script>\n");
    (void)deflateEnd(&packing.stream);
    return true;
}
