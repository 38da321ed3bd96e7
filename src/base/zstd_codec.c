/* SPDX-License-Identifier: MIT */
/* Its memory does not come from the host hooks: zstd's public interface has no way. */
#include "base/codec.h"

#include <zstd.h>

enum {
    ZSTD_WINDOW_LOG_MAX = 27
};

static void *zstd_pack_open(void)
{
    ZSTD_CStream *stream = ZSTD_createCStream();

    if (stream && ZSTD_isError(ZSTD_initCStream(stream, ZSTD_CLEVEL_DEFAULT))) {
        (void)ZSTD_freeCStream(stream);
        return NULL;
    }
    return stream;
}

static void step_move(struct tn_codec_step *step, size_t in, size_t out)
{
    step->in += in;
    step->in_left -= in;
    step->out += out;
    step->out_left -= out;
}

static enum tn_codec_result zstd_pack(void *state, struct tn_codec_step *step, bool is_last)
{
    ZSTD_inBuffer in = {step->in, step->in_left, 0};
    ZSTD_outBuffer out = {step->out, step->out_left, 0};
    const size_t left =
        ZSTD_compressStream2(state, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);

    step_move(step, in.pos, out.pos);
    if (ZSTD_isError(left)) {
        return TN_CODEC_MEMORY; /* the input has no other way to fail */
    }
    return step->in_left > 0 || (is_last && left > 0) ? TN_CODEC_MORE : TN_CODEC_ENDED;
}

static void zstd_pack_close(void *state)
{
    (void)ZSTD_freeCStream(state);
}

static void *zstd_unpack_open(void)
{
    ZSTD_DStream *stream = ZSTD_createDStream();

    if (stream &&
        ZSTD_isError(ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX))) {
        (void)ZSTD_freeDStream(stream);
        return NULL;
    }
    return stream;
}

static enum tn_codec_result zstd_unpack(void *state, struct tn_codec_step *step)
{
    ZSTD_inBuffer in = {step->in, step->in_left, 0};
    ZSTD_outBuffer out = {step->out, step->out_left, 0};
    const size_t code = ZSTD_decompressStream(state, &out, &in);

    step_move(step, in.pos, out.pos);
    if (ZSTD_isError(code)) {
        step->reason = ZSTD_getErrorName(code);
        return TN_CODEC_DAMAGED;
    }
    return code == 0 ? TN_CODEC_ENDED : TN_CODEC_MORE;
}

static void zstd_unpack_close(void *state)
{
    (void)ZSTD_freeDStream(state);
}

const struct tn_codec *tn_codec_zstd(void)
{
    static const struct tn_codec codec = {
        .pack_open = zstd_pack_open,
        .pack = zstd_pack,
        .pack_close = zstd_pack_close,
        .unpack_open = zstd_unpack_open,
        .unpack = zstd_unpack,
        .unpack_close = zstd_unpack_close,
    };

    return &codec;
}
