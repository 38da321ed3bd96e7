/* SPDX-License-Identifier: MIT */
/*
 * Unpacking for builds on machines without zlib and zstd (torch_plug.sh): input is taken to be
 * plain.
 */
#include "base/unpack.h"

enum tarn_status tn_unpack_init(struct tn_unpack *unpack, struct tn_source *source,
                                const struct tn_unpack_limits *limits, struct tarn_error *error)
{
    (void)error;
    *unpack = (struct tn_unpack){.source = source, .limits = *limits};
    return TARN_OK;
}

void tn_unpack_fini(struct tn_unpack *unpack)
{
    (void)unpack;
}

enum tarn_status tn_unpack_read(struct tn_unpack *unpack, void *bytes, size_t size, size_t *got_out,
                                struct tarn_error *error)
{
    return tn_source_read(unpack->source, bytes, size, got_out, error);
}
