/* SPDX-License-Identifier: MIT */
/* Implements tarn/export.h. */
#include "tarn/export.h"

#include "base/errinfo.h"
#include "export/export_table.h"
#include "fleet/fleet_rows.h"
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

/* Stacks are in both. */
static bool is_of_fleet(enum tarn_export_table table)
{
    return table >= TARN_TABLE_RANKS;
}

static enum tarn_status table_fail(const char *whose, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "there is no such table of %s", whose);
}

enum tarn_status tarn_export(const struct tarn_snapshot *snapshot, enum tarn_export_format format,
                             const struct tarn_export_options *options,
                             const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_export_options all = {.struct_size = sizeof all};
    const struct tn_export job = {.tables = &tn_snapshot_tables,
                                  .model = tn_snapshot_model(snapshot),
                                  .options = options ? options : &all,
                                  .writer = writer,
                                  .error = error};

    if (is_of_fleet(job.options->table)) {
        return table_fail("a snapshot", error);
    }
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

/* ---- fleets ---- */

static enum tarn_status fleet_write(const struct tn_export *job, enum tarn_export_format format)
{
    switch (format) {
    case TARN_EXPORT_JSONL:
        return tn_export_jsonl(job);
    case TARN_EXPORT_CSV:
        return tn_export_csv(job);
    case TARN_EXPORT_SQLITE:
        return tn_export_sqlite(job);
    case TARN_EXPORT_JSON:
    case TARN_EXPORT_PICKLE:
    case TARN_EXPORT_PERFETTO:
    case TARN_EXPORT_SPEEDSCOPE:
    case TARN_EXPORT_FOLDED:
        break;
    }
    return tn_fail(job->error, TARN_ERR_INVALID_ARGUMENT,
                   "many ranks are exported as jsonl, csv or sqlite");
}

enum tarn_status tarn_export_fleet(struct tarn_fleet *fleet, enum tarn_export_format format,
                                   const struct tarn_export_options *options,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tarn_export_options all = {.struct_size = sizeof all};
    struct tn_fleet_rows rows;
    const struct tn_export job = {.tables = &tn_fleet_tables,
                                  .fleet = &rows,
                                  .options = options ? options : &all,
                                  .writer = writer,
                                  .error = error};
    const enum tarn_export_table table = job.options->table;

    if (table != TARN_TABLE_ALL && table != TARN_TABLE_STACKS && !is_of_fleet(table)) {
        return table_fail("a fleet", error);
    }
    enum tarn_status status = tn_fleet_rows_make(&rows, fleet, NULL, NULL, error);

    status = status ? status : fleet_write(&job, format);
    tn_fleet_rows_fini(&rows);
    return status;
}
