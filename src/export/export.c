/* SPDX-License-Identifier: MIT */
/* Implements tarn/export.h. */
#include "tarn/export.h"

#include "base/errinfo.h"
#include "export/export_formats.h"
#include "snapshot/snapshot.h"
#include "tarn/report.h"

enum tarn_status tn_export_end(const struct tn_export *job, struct tn_text_out *out,
                               bool out_of_memory)
{
    const enum tarn_status status = tn_text_finish(out);

    if (out_of_memory) {
        return tn_fail_memory(job->error);
    }
    return status ? tn_fail(job->error, status, "writing the export failed") : TARN_OK;
}

static enum tarn_status folded_write(const struct tarn_snapshot *snapshot,
                                     const struct tn_export *job)
{
    const struct tarn_flame_options options = {.struct_size = sizeof options,
                                               .folded = true,
                                               .one_device = job->options->one_device,
                                               .device = job->options->device};

    return tarn_report_flame(snapshot, TARN_FLAME_MEMORY, &options, job->writer, job->error);
}

enum tarn_status tarn_export(const struct tarn_snapshot *snapshot, enum tarn_export_format format,
                             const struct tarn_export_options *options,
                             const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_export_options all = {.struct_size = sizeof all};
    const struct tn_export job = {.model = tn_snapshot_model(snapshot),
                                  .options = options ? options : &all,
                                  .writer = writer,
                                  .error = error};

    switch (format) {
    case TARN_EXPORT_JSON:
        return tarn_snapshot_write(snapshot, TARN_SNAPSHOT_JSON, writer, error);
    case TARN_EXPORT_PICKLE:
        return tarn_snapshot_write(snapshot, TARN_SNAPSHOT_PICKLE, writer, error);
    case TARN_EXPORT_JSONL:
        return tn_export_jsonl(&job);
    case TARN_EXPORT_CSV:
        return tn_export_csv(&job);
    case TARN_EXPORT_SQLITE:
        return tn_export_sqlite(&job);
    case TARN_EXPORT_PERFETTO:
        return tn_export_perfetto(&job);
    case TARN_EXPORT_SPEEDSCOPE:
        return tn_export_speedscope(&job);
    case TARN_EXPORT_FOLDED:
        return folded_write(snapshot, &job);
    }
    return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "there is no export format %d", (int)format);
}
