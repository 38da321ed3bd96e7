/* SPDX-License-Identifier: MIT */
/* Writes a snapshot, in either format. */
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/pack.h"
#include "snapshot/encode.h"
#include "snapshot/json_write.h"
#include "snapshot/pickle_write.h"
#include "snapshot/snapshot.h"
#include "tarn/writer.h"

#include <string.h>

static enum tarn_status write_pickle(const struct tn_model *model, struct tn_byte_out *out)
{
    struct tn_pickle_format pickle;

    if (!tn_pickle_format_init(&pickle, model, out)) {
        return TARN_ERR_HOST_MEMORY;
    }
    tn_encode(&pickle.format);
    tn_pickle_format_fini(&pickle);
    return tn_bytes_finish(out);
}

static enum tarn_status write_json(const struct tn_model *model, struct tn_byte_out *out)
{
    struct tn_format format = tn_json_format(model, out);

    tn_encode(&format);
    return tn_bytes_finish(out);
}

enum tarn_status tarn_snapshot_write(const struct tarn_snapshot *snapshot,
                                     enum tarn_snapshot_format format,
                                     const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    struct tn_byte_out *out = tn_host_alloc(sizeof *out);
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    if (out) {
        tn_bytes_init(out, writer);
        status = format == TARN_SNAPSHOT_JSON ? write_json(model, out) : write_pickle(model, out);
        tn_host_free(out, sizeof *out);
    }
    if (status == TARN_ERR_HOST_MEMORY) {
        return tn_fail_memory(error);
    }
    return status ? tn_fail(error, status, "writing a snapshot failed") : TARN_OK;
}

enum tarn_snapshot_format tarn_snapshot_format_of(const char *path)
{
    static const char json[] = ".json";
    const size_t length = tn_packing_name_length(path);
    const size_t size = sizeof json - 1;

    return length >= size && memcmp(path + length - size, json, size) == 0 ? TARN_SNAPSHOT_JSON
                                                                           : TARN_SNAPSHOT_PICKLE;
}

enum tarn_status tarn_snapshot_save(const struct tarn_snapshot *snapshot, const char *path,
                                    struct tarn_error *error)
{
    struct tarn_file *file;
    enum tarn_status status = tarn_file_create(path, &file, error);

    if (status) {
        return status;
    }
    const struct tarn_writer writer = tarn_file_writer(file);

    status = tarn_snapshot_write(snapshot, tarn_snapshot_format_of(path), &writer, error);
    return tarn_file_finish(file, status, error);
}
