/* SPDX-License-Identifier: MIT */
#include "base/unpack.h"

#include "base/errinfo.h"
#include "base/host_mem.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum {
    PACKED_SIZE = 1 << 16,
    RATIO_FREE_BYTES = 1 << 24,
    GZIP_WINDOW = 15 + 16, /* largest window, gzip header */
    ZSTD_WINDOW_LOG_MAX = 27
};

struct tn_unpack_state {
    z_stream gzip;
    bool gzip_open;
    ZSTD_DStream *zstd; /* its memory does not come from the host hooks: its public interface has no
                           way */
};

static enum tarn_status unpack_refill(struct tn_unpack *unpack, struct tarn_error *error)
{
    size_t got = 0;

    unpack->packed_at = 0;
    unpack->packed_end = 0;
    const enum tarn_status status =
        tn_source_read(unpack->source, unpack->packed, PACKED_SIZE, &got, error);
    if (status != TARN_OK) {
        return status;
    }
    unpack->packed_end = got;
    unpack->source_ended = got == 0;
    return TARN_OK;
}

/* Reads the first bytes; a pipe may deliver them one by one. */
static enum tarn_status unpack_read_magic(struct tn_unpack *unpack, struct tarn_error *error)
{
    while (unpack->packed_end < 4 && !unpack->source_ended) {
        size_t got = 0;
        const enum tarn_status status =
            tn_source_read(unpack->source, unpack->packed + unpack->packed_end,
                           PACKED_SIZE - unpack->packed_end, &got, error);
        if (status != TARN_OK) {
            return status;
        }
        unpack->packed_end += got;
        unpack->source_ended = got == 0;
    }
    return TARN_OK;
}

static enum tn_packing packing_find(const uint8_t *bytes, size_t size)
{
    static const uint8_t gzip_magic[] = {0x1f, 0x8b};
    static const uint8_t zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};

    if (size >= sizeof gzip_magic && memcmp(bytes, gzip_magic, sizeof gzip_magic) == 0) {
        return TN_PACKING_GZIP;
    }
    if (size >= sizeof zstd_magic && memcmp(bytes, zstd_magic, sizeof zstd_magic) == 0) {
        return TN_PACKING_ZSTD;
    }
    return TN_PACKING_NONE;
}

static enum tarn_status unpack_start(struct tn_unpack *unpack)
{
    struct tn_unpack_state *state = unpack->state;

    if (unpack->packing == TN_PACKING_GZIP) {
        state->gzip.zalloc = tn_host_zlib_alloc;
        state->gzip.zfree = tn_host_zlib_free;
        if (inflateInit2(&state->gzip, GZIP_WINDOW) != Z_OK) {
            return TARN_ERR_HOST_MEMORY;
        }
        state->gzip_open = true;
    }
    if (unpack->packing == TN_PACKING_ZSTD) {
        state->zstd = ZSTD_createDStream();
        if (!state->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(state->zstd, ZSTD_d_windowLogMax,
                                                                ZSTD_WINDOW_LOG_MAX))) {
            return TARN_ERR_HOST_MEMORY;
        }
    }
    return TARN_OK;
}

enum tarn_status tn_unpack_init(struct tn_unpack *unpack, struct tn_source *source,
                                const struct tn_unpack_limits *limits, struct tarn_error *error)
{
    enum tarn_status status;

    *unpack = (struct tn_unpack){.source = source, .limits = *limits};
    unpack->state = tn_host_alloc_zero(sizeof *unpack->state);
    unpack->packed = tn_host_alloc(PACKED_SIZE);
    if (!unpack->state || !unpack->packed) {
        return tn_fail_memory(error);
    }
    status = unpack_read_magic(unpack, error);
    if (status != TARN_OK) {
        return status;
    }
    unpack->packing = packing_find(unpack->packed, unpack->packed_end);
    status = unpack_start(unpack);
    if (status != TARN_OK) {
        return tn_fail_memory(error);
    }
    return TARN_OK;
}

void tn_unpack_fini(struct tn_unpack *unpack)
{
    if (unpack->state) {
        if (unpack->state->gzip_open) {
            (void)inflateEnd(&unpack->state->gzip);
        }
        (void)ZSTD_freeDStream(unpack->state->zstd);
        tn_host_free(unpack->state, sizeof *unpack->state);
    }
    tn_host_free(unpack->packed, PACKED_SIZE);
    unpack->state = NULL;
    unpack->packed = NULL;
}

/* Reads buffered bytes first, then directly from the source. */
static enum tarn_status plain_read(struct tn_unpack *unpack, uint8_t *bytes, size_t size,
                                   size_t *got_out, struct tarn_error *error)
{
    const size_t buffered = unpack->packed_end - unpack->packed_at;

    if (buffered == 0) {
        return unpack->source_ended ? TARN_OK
                                    : tn_source_read(unpack->source, bytes, size, got_out, error);
    }
    *got_out = size < buffered ? size : buffered;
    memcpy(bytes, unpack->packed + unpack->packed_at, *got_out);
    unpack->packed_at += *got_out;
    return TARN_OK;
}

static enum tarn_status damaged(const struct tn_unpack *unpack, const char *format,
                                const char *reason, struct tarn_error *error)
{
    const uint64_t offset = unpack->source->taken - (unpack->packed_end - unpack->packed_at);

    return tn_fail_at(error, TARN_ERR_FORMAT, (int64_t)offset,
                      "the %s data is damaged near byte %llu of the packed file: %s. Copy the file "
                      "again, or unpack it first",
                      format, (unsigned long long)offset, reason);
}

static enum tarn_status gzip_step(struct tn_unpack *unpack, uint8_t *bytes, size_t size,
                                  size_t *got_out, struct tarn_error *error)
{
    z_stream *gzip = &unpack->state->gzip;
    const uInt in = (uInt)(unpack->packed_end - unpack->packed_at);

    if (unpack->member_ended && inflateReset(gzip) != Z_OK) {
        return tn_fail(error, TARN_ERR_INTERNAL, "cannot start the next gzip member");
    }
    gzip->next_in = unpack->packed + unpack->packed_at;
    gzip->avail_in = in;
    gzip->next_out = bytes;
    gzip->avail_out = (uInt)size;
    const int code = inflate(gzip, Z_NO_FLUSH);
    unpack->packed_at += in - gzip->avail_in;
    *got_out = size - gzip->avail_out;
    tn_written_outside(bytes, *got_out);
    unpack->member_ended = code == Z_STREAM_END;
    unpack->mid_frame = !unpack->member_ended;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) {
        return TARN_OK;
    }
    return code == Z_MEM_ERROR
               ? tn_fail_memory(error)
               : damaged(unpack, "gzip", gzip->msg ? gzip->msg : "unknown reason", error);
}

static enum tarn_status zstd_step(struct tn_unpack *unpack, uint8_t *bytes, size_t size,
                                  size_t *got_out, struct tarn_error *error)
{
    ZSTD_inBuffer in = {unpack->packed, unpack->packed_end, unpack->packed_at};
    ZSTD_outBuffer out = {bytes, size, 0};
    const size_t code = ZSTD_decompressStream(unpack->state->zstd, &out, &in);

    unpack->packed_at = in.pos;
    *got_out = out.pos;
    tn_written_outside(bytes, *got_out);
    if (ZSTD_isError(code)) {
        return damaged(unpack, "zstd", ZSTD_getErrorName(code), error);
    }
    unpack->mid_frame = code != 0;
    return TARN_OK;
}

static enum tarn_status packed_read(struct tn_unpack *unpack, uint8_t *bytes, size_t size,
                                    size_t *got_out, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    while (status == TARN_OK && *got_out == 0) {
        const bool empty = unpack->packed_at == unpack->packed_end;

        if (empty && !unpack->source_ended) {
            status = unpack_refill(unpack, error);
            continue;
        }
        if (empty && !unpack->mid_frame) {
            break;
        }
        status = unpack->packing == TN_PACKING_GZIP
                     ? gzip_step(unpack, bytes, size, got_out, error)
                     : zstd_step(unpack, bytes, size, got_out, error);
        if (status == TARN_OK && empty && *got_out == 0 && unpack->mid_frame) {
            return tn_fail_at(error, TARN_ERR_TRUNCATED, (int64_t)unpack->source->taken,
                              "the packed data of %s ends early", unpack->source->name);
        }
    }
    return status;
}

static enum tarn_status unpack_check_limits(const struct tn_unpack *unpack,
                                            struct tarn_error *error)
{
    const struct tn_unpack_limits *limits = &unpack->limits;

    if (limits->max_bytes != 0 && unpack->given > limits->max_bytes) {
        return tn_fail(error, TARN_ERR_LIMIT,
                       "the input is larger than the limit of %llu bytes, which can be raised",
                       (unsigned long long)limits->max_bytes);
    }
    if (unpack->packing != TN_PACKING_NONE && limits->max_ratio != 0 &&
        unpack->given > RATIO_FREE_BYTES &&
        unpack->given / limits->max_ratio > unpack->source->taken) {
        return tn_fail(error, TARN_ERR_LIMIT,
                       "the packed data grows more than %llu times, which no snapshot does; raise "
                       "the limit if you trust the file",
                       (unsigned long long)limits->max_ratio);
    }
    return TARN_OK;
}

enum tarn_status tn_unpack_read(struct tn_unpack *unpack, void *bytes, size_t size, size_t *got_out,
                                struct tarn_error *error)
{
    *got_out = 0;
    const enum tarn_status status = unpack->packing == TN_PACKING_NONE
                                        ? plain_read(unpack, bytes, size, got_out, error)
                                        : packed_read(unpack, bytes, size, got_out, error);
    if (status != TARN_OK) {
        return status;
    }
    unpack->given += *got_out;
    return unpack_check_limits(unpack, error);
}
