/* SPDX-License-Identifier: MIT */
/*
 * A source that is decompressed on the fly if its first bytes are gzip or zstd. Consecutive gzip
 * members or zstd frames are concatenated. Output is limited in bytes and in its ratio to the
 * input, against decompression bombs.
 */
#ifndef TN_BASE_UNPACK_H
#define TN_BASE_UNPACK_H

#include "base/packing.h"
#include "base/source.h"

struct tn_unpack_limits {
    uint64_t max_bytes; /* uncompressed; 0 = none */
    uint64_t max_ratio; /* uncompressed to compressed, beyond the first 16 MiB; 0 = none */
};

struct tn_unpack {
    struct tn_source *source;
    enum tn_packing packing;
    struct tn_unpack_limits limits;
    const struct tn_codec *codec;
    void *state;     /* of the codec */
    uint8_t *packed; /* bytes from the source */
    size_t packed_at;
    size_t packed_end;
    uint64_t given; /* bytes returned */
    bool source_ended;
    bool mid_frame; /* the source must not end here */
};

/* Reads the first bytes to detect the compression. Borrows the source until tn_unpack_fini.
 * TARN_ERR_NOT_SUPPORTED for a compression that this build is without. */
enum tarn_status tn_unpack_init(struct tn_unpack *unpack, struct tn_source *source,
                                const struct tn_unpack_limits *limits,
                                struct tarn_error *error) TARN_MUST_CHECK;

/* Also after a failed init. */
void tn_unpack_fini(struct tn_unpack *unpack);

/* Up to `size` (> 0) uncompressed bytes; *got_out is 0 only at the end. TARN_ERR_TRUNCATED when the
 * compressed stream ends early, TARN_ERR_FORMAT when it is damaged, TARN_ERR_LIMIT. */
enum tarn_status tn_unpack_read(struct tn_unpack *unpack, void *bytes, size_t size, size_t *got_out,
                                struct tarn_error *error) TARN_MUST_CHECK;

#endif
