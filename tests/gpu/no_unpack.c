/* SPDX-License-Identifier: MIT */
/*
 * Packing and unpacking for builds on machines without zlib and zstd (torch_plug.sh): input is
 * taken to be plain, and so is output.
 */
#include "base/pack.h"
#include "base/unpack.h"

#include <string.h>

enum tn_packing tn_packing_of(const char *path)
{
    (void)path;
    return TN_PACKING_NONE;
}

size_t tn_packing_name_length(const char *path)
{
    return strlen(path);
}

struct tn_pack *tn_pack_create(enum tn_packing packing, const struct tarn_writer *writer)
{
    (void)packing;
    (void)writer;
    return NULL;
}

void tn_pack_destroy(struct tn_pack *pack)
{
    (void)pack;
}

enum tarn_status tn_pack_write(struct tn_pack *pack, const char *bytes, size_t size)
{
    (void)pack;
    (void)bytes;
    (void)size;
    return TARN_ERR_NOT_SUPPORTED;
}

enum tarn_status tn_pack_end(struct tn_pack *pack)
{
    (void)pack;
    return TARN_ERR_NOT_SUPPORTED;
}

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
