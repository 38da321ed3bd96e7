/* SPDX-License-Identifier: MIT */
/*
 * A source whose gzip or zstd packing, if its first bytes say so, is undone on the way. Several
 * gzip members or zstd frames in a row count as one. Output is limited in bytes and in how far it
 * may grow, so that a small file cannot become an endless one.
 */
#ifndef TN_BASE_UNPACK_H
#define TN_BASE_UNPACK_H

#include "base/source.h"

enum tn_packing {
    TN_PACKING_NONE,
    TN_PACKING_GZIP,
    TN_PACKING_ZSTD
};

struct tn_unpack_limits {
    uint64_t max_bytes; /* unpacked; 0 = none */
    uint64_t max_ratio; /* unpacked to packed, beyond the first 16 MiB; 0 = none */
};

struct tn_unpack_state;

struct tn_unpack {
    struct tn_source *source;
    enum tn_packing packing;
    struct tn_unpack_limits limits;
    struct tn_unpack_state *state; /* of the library that unpacks */
    uint8_t *packed;               /* bytes from the source */
    size_t packed_at;
    size_t packed_end;
    uint64_t given; /* bytes handed out */
    bool source_ended;
    bool mid_frame;    /* the source must not end here */
    bool member_ended; /* gzip: the next bytes, if any, begin a member */
};

/* Reads the first bytes to see how the source is packed. Borrows the source until tn_unpack_fini.
 * */
enum tarn_status tn_unpack_init(struct tn_unpack *unpack, struct tn_source *source,
                                const struct tn_unpack_limits *limits,
                                struct tarn_error *error) TARN_MUST_CHECK;

/* Also after a failed init. */
void tn_unpack_fini(struct tn_unpack *unpack);

/* Up to `size` (> 0) unpacked bytes; *got_out is 0 only at the end. TARN_ERR_TRUNCATED when the
 * packed stream ends in the middle, TARN_ERR_FORMAT when it is damaged, TARN_ERR_LIMIT. */
enum tarn_status tn_unpack_read(struct tn_unpack *unpack, void *bytes, size_t size, size_t *got_out,
                                struct tarn_error *error) TARN_MUST_CHECK;

#endif
