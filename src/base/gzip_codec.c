/* SPDX-License-Identifier: MIT */
#define ZLIB_CONST /* its input is const */
#include "base/codec.h"
#include "base/host_mem.h"

#include <zlib.h>

enum {
    GZIP_WINDOW = 15 + 16, /* largest window, gzip header */
    GZIP_MEMORY = 8        /* zlib's own default */
};

struct gzip {
    z_stream stream;
    bool member_ended; /* unpacking: the next bytes start a member */
};

enum {
    RUN_MAX = 1 << 20 /* bytes of one call: zlib counts in 32 bits */
};

static uInt room_of(size_t size)
{
    return size < RUN_MAX ? (uInt)size : RUN_MAX;
}

/* Calls `run` on as much as one call may take, and moves the step on. */
static int stream_run(z_stream *stream, struct tn_codec_step *step, int (*run)(z_streamp, int),
                      int flush)
{
    const uInt in = room_of(step->in_left);
    const uInt out = room_of(step->out_left);

    stream->next_in = step->in;
    stream->avail_in = in;
    stream->next_out = step->out;
    stream->avail_out = out;
    const int code = run(stream, flush);
    step->in += in - stream->avail_in;
    step->in_left -= in - stream->avail_in;
    step->out += out - stream->avail_out;
    step->out_left -= out - stream->avail_out;
    return code;
}

static struct gzip *gzip_create(void)
{
    struct gzip *gzip = tn_host_alloc_zero(sizeof *gzip);

    if (gzip) {
        gzip->stream.zalloc = tn_host_zlib_alloc;
        gzip->stream.zfree = tn_host_zlib_free;
    }
    return gzip;
}

static void *gzip_pack_open(void)
{
    struct gzip *gzip = gzip_create();

    if (gzip && deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW,
                             GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        tn_host_free(gzip, sizeof *gzip);
        return NULL;
    }
    return gzip;
}

static enum tn_codec_result gzip_pack(void *state, struct tn_codec_step *step, bool is_last)
{
    struct gzip *gzip = state;
    const int code = stream_run(&gzip->stream, step, deflate, is_last ? Z_FINISH : Z_NO_FLUSH);

    if (code == Z_STREAM_END) {
        return TN_CODEC_ENDED;
    }
    return gzip->stream.avail_out == 0 || step->in_left > 0 ? TN_CODEC_MORE : TN_CODEC_ENDED;
}

static void gzip_pack_close(void *state)
{
    struct gzip *gzip = state;

    (void)deflateEnd(&gzip->stream);
    tn_host_free(gzip, sizeof *gzip);
}

static void *gzip_unpack_open(void)
{
    struct gzip *gzip = gzip_create();

    if (gzip && inflateInit2(&gzip->stream, GZIP_WINDOW) != Z_OK) {
        tn_host_free(gzip, sizeof *gzip);
        return NULL;
    }
    return gzip;
}

static enum tn_codec_result gzip_unpack(void *state, struct tn_codec_step *step)
{
    struct gzip *gzip = state;

    if (gzip->member_ended) {
        (void)inflateReset(&gzip->stream);
    }
    const int code = stream_run(&gzip->stream, step, inflate, Z_NO_FLUSH);

    gzip->member_ended = code == Z_STREAM_END;
    if (code == Z_STREAM_END) {
        return TN_CODEC_ENDED;
    }
    if (code == Z_OK || code == Z_BUF_ERROR) {
        return TN_CODEC_MORE;
    }
    step->reason = gzip->stream.msg ? gzip->stream.msg : "unknown reason";
    return code == Z_MEM_ERROR ? TN_CODEC_MEMORY : TN_CODEC_DAMAGED;
}

static void gzip_unpack_close(void *state)
{
    struct gzip *gzip = state;

    (void)inflateEnd(&gzip->stream);
    tn_host_free(gzip, sizeof *gzip);
}

const struct tn_codec *tn_codec_gzip(void)
{
    static const struct tn_codec codec = {
        .pack_open = gzip_pack_open,
        .pack = gzip_pack,
        .pack_close = gzip_pack_close,
        .unpack_open = gzip_unpack_open,
        .unpack = gzip_unpack,
        .unpack_close = gzip_unpack_close,
    };

    return &codec;
}
