/* SPDX-License-Identifier: MIT */
#include "base/unpack.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"

#include <string.h>

enum {
    PACKED_SIZE = 1 << 16,
    RATIO_FREE_BYTES = 1 << 24
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

static enum tarn_status unpack_start(struct tn_unpack *unpack, struct tarn_error *error)
{
    if (unpack->packing == TN_PACKING_NONE) {
        return TARN_OK;
    }
    unpack->codec = tn_packing_codec(unpack->packing);
    if (!unpack->codec) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "%s is compressed with %s, and this tarn was not built with %s: unpack it "
                       "first, or build tarn with that library",
                       unpack->source->name, tn_packing_name(unpack->packing),
                       tn_packing_library(unpack->packing));
    }
    unpack->state = unpack->codec->unpack_open();
    return unpack->state ? TARN_OK : tn_fail_memory(error);
}

enum tarn_status tn_unpack_init(struct tn_unpack *unpack, struct tn_source *source,
                                const struct tn_unpack_limits *limits, struct tarn_error *error)
{
    enum tarn_status status;

    *unpack = (struct tn_unpack){.source = source, .limits = *limits};
    unpack->packed = tn_host_alloc(PACKED_SIZE);
    if (!unpack->packed) {
        return tn_fail_memory(error);
    }
    status = unpack_read_magic(unpack, error);
    if (status != TARN_OK) {
        return status;
    }
    unpack->packing = packing_find(unpack->packed, unpack->packed_end);
    return unpack_start(unpack, error);
}

void tn_unpack_fini(struct tn_unpack *unpack)
{
    if (unpack->state) {
        unpack->codec->unpack_close(unpack->state);
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

static enum tarn_status damaged(const struct tn_unpack *unpack, const char *reason,
                                struct tarn_error *error)
{
    const uint64_t offset = unpack->source->taken - (unpack->packed_end - unpack->packed_at);

    return tn_fail_at(error, TARN_ERR_FORMAT, (int64_t)offset,
                      "the %s data is damaged near byte %llu of the packed file: %s. Copy the file "
                      "again, or unpack it first",
                      tn_packing_name(unpack->packing), (unsigned long long)offset, reason);
}

static enum tarn_status packed_step(struct tn_unpack *unpack, uint8_t *bytes, size_t size,
                                    size_t *got_out, struct tarn_error *error)
{
    struct tn_codec_step step = {.in = unpack->packed + unpack->packed_at,
                                 .in_left = unpack->packed_end - unpack->packed_at,
                                 .out = bytes,
                                 .out_left = size};
    const enum tn_codec_result result = unpack->codec->unpack(unpack->state, &step);

    unpack->packed_at = unpack->packed_end - step.in_left;
    *got_out = size - step.out_left;
    tn_written_outside(bytes, *got_out);
    unpack->mid_frame = result != TN_CODEC_ENDED;
    if (result == TN_CODEC_MEMORY) {
        return tn_fail_memory(error);
    }
    return result == TN_CODEC_DAMAGED ? damaged(unpack, step.reason, error) : TARN_OK;
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
        status = packed_step(unpack, bytes, size, got_out, error);
        /* Without further bytes no frame ends: its end is read with its last byte. */
        if (status == TARN_OK && empty && *got_out == 0 && tn_always(unpack->mid_frame)) {
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
