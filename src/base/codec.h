/* SPDX-License-Identifier: MIT */
/*
 * One compression, both ways: what pack.h and unpack.h call. gzip_codec.c needs zlib and
 * zstd_codec.c libzstd; a build without one of them has gzip_codec_none.c or zstd_codec_none.c.
 */
#ifndef TN_BASE_CODEC_H
#define TN_BASE_CODEC_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A step reads from `in` and writes to `out`, and moves both on. */
struct tn_codec_step {
    const uint8_t *in;
    size_t in_left;
    uint8_t *out;
    size_t out_left;
    const char *reason; /* set with TN_CODEC_DAMAGED: borrowed until the next step */
};

enum tn_codec_result {
    TN_CODEC_MORE,  /* packing: call again with more room; unpacking: not at the end of a frame */
    TN_CODEC_ENDED, /* packing: all of `in` is packed; unpacking: at the end of a frame */
    TN_CODEC_MEMORY,
    TN_CODEC_DAMAGED
};

struct tn_codec {
    void *(*pack_open)(void); /* NULL without host memory; the owner closes it */
    /* `is_last`: nothing is left in `in`, and the frame ends. */
    enum tn_codec_result (*pack)(void *state, struct tn_codec_step *step, bool is_last);
    void (*pack_close)(void *state);
    void *(*unpack_open)(void); /* as pack_open */
    enum tn_codec_result (*unpack)(void *state, struct tn_codec_step *step);
    void (*unpack_close)(void *state);
};

/* NULL in a build without zlib or libzstd. */
const struct tn_codec *tn_codec_gzip(void);
const struct tn_codec *tn_codec_zstd(void);

#endif
