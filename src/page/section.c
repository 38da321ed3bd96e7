/* SPDX-License-Identifier: MIT */
#include "page/section.h"

#include "base/host_mem.h"

enum {
    LEVEL = 6,
    TRIAL_LEAST = 4 << 10, /* smaller parts are not worth a trial */
    TRIAL_MOST = 32 << 10, /* bytes of a part that are tried: zlib's window */
    INPUT_PIECE = 1 << 20  /* that zlib gets at once: it counts them in 32 bits */
};

static void piece_put(struct tn_section *section)
{
    tn_base128_put(&section->encoder, section->piece, TN_SECTION_PIECE - section->stream.avail_out);
    section->stream.next_out = section->piece;
    section->stream.avail_out = TN_SECTION_PIECE;
}

/* Deflates all that is given to the stream. */
static void stream_run(struct tn_section *section, int flush)
{
    do {
        if (section->stream.avail_out == 0) {
            piece_put(section);
        }
        (void)deflate(&section->stream, flush);
    } while (section->stream.avail_out == 0);
}

/* ---- what a part is packed with ---- */

/* Deflated size of some bytes. */
static uint64_t trial_size(struct tn_section *section, const uint8_t *bytes, size_t size,
                           int strategy)
{
    z_stream *trial = &section->trial;
    uint8_t ignored[TN_SECTION_PIECE];
    uint64_t total = 0;
    int result = Z_OK;

    (void)deflateReset(trial);
    trial->next_out = ignored;
    trial->avail_out = sizeof ignored;
    (void)deflateParams(trial, LEVEL, strategy);
    trial->next_in = bytes;
    trial->avail_in = (uInt)size;
    while (result == Z_OK) {
        trial->next_out = ignored;
        trial->avail_out = sizeof ignored;
        result = deflate(trial, Z_FINISH);
        total += sizeof ignored - trial->avail_out;
    }
    return total;
}

static int strategy_for(struct tn_section *section, const uint8_t *bytes, size_t size)
{
    const size_t tried = size < TRIAL_MOST ? size : TRIAL_MOST;

    if (size < TRIAL_LEAST || section->failed) {
        return Z_DEFAULT_STRATEGY;
    }
    if (!section->has_trial) {
        section->has_trial = deflateInit(&section->trial, LEVEL) == Z_OK;
        section->failed = !section->has_trial;
    }
    if (section->failed || trial_size(section, bytes, tried, Z_DEFAULT_STRATEGY) <
                               trial_size(section, bytes, tried, Z_HUFFMAN_ONLY)) {
        return Z_DEFAULT_STRATEGY;
    }
    return Z_HUFFMAN_ONLY;
}

/* ---- sections ---- */

bool tn_section_begin(struct tn_section *section, const struct tn_section_out *out,
                      const char *name, size_t size)
{
    section->stream = (z_stream){.zalloc = tn_host_zlib_alloc, .zfree = tn_host_zlib_free};
    section->trial = section->stream;
    section->has_trial = false;
    section->failed = false;
    section->strategy = Z_DEFAULT_STRATEGY;
    if (deflateInit(&section->stream, LEVEL) != Z_OK) {
        return false;
    }
    section->stream.next_out = section->piece;
    section->stream.avail_out = TN_SECTION_PIECE;
    tn_base128_init(&section->encoder, out->text);
    tn_text_printf(
        out->text,
        "<script type=\"application/octet-stream\" data-name=\"%s%s\" data-size=\"%zu\">",
        out->prefix, name, size);
    return true;
}

void tn_section_add(struct tn_section *section, const uint8_t *bytes, size_t size)
{
    const int strategy = size > 0 ? strategy_for(section, bytes, size) : section->strategy;

    if (strategy != section->strategy) {
        /* There is room: stream_run leaves some. Nothing waits: each part ends a block. */
        (void)deflateParams(&section->stream, LEVEL, strategy);
        section->strategy = strategy;
    }
    while (size > 0) {
        const uInt more = size < INPUT_PIECE ? (uInt)size : INPUT_PIECE;

        section->stream.next_in = bytes;
        section->stream.avail_in = more;
        bytes += more;
        size -= more;
        stream_run(section, size > 0 ? Z_NO_FLUSH : Z_BLOCK);
    }
}

bool tn_section_end(struct tn_section *section)
{
    stream_run(section, Z_FINISH);
    piece_put(section);
    tn_base128_finish(&section->encoder);
    tn_text_puts(section->encoder.out, "</script>\n");
    (void)deflateEnd(&section->stream);
    if (section->has_trial) {
        (void)deflateEnd(&section->trial);
    }
    return !section->failed;
}
