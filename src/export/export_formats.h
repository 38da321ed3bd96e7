/* SPDX-License-Identifier: MIT */
/* The formats of tarn/export.h that are written here; each fills `error` when it fails. */
#ifndef TN_EXPORT_EXPORT_FORMATS_H
#define TN_EXPORT_EXPORT_FORMATS_H

#include "base/text_out.h"
#include "snapshot/model.h"
#include "tarn/export.h"

struct tn_tables;
struct tn_fleet_rows;

/* What all of them get. `options` is complete. */
struct tn_export {
    const struct tn_tables *tables;
    const struct tn_model *model;      /* of a snapshot */
    const struct tn_fleet_rows *fleet; /* or NULL */
    const struct tarn_export_options *options;
    const struct tarn_writer *writer;
    struct tarn_error *error;
};

enum tarn_status tn_export_jsonl(const struct tn_export *job) TN_MUST_CHECK;
enum tarn_status tn_export_csv(const struct tn_export *job) TN_MUST_CHECK;
enum tarn_status tn_export_sqlite(const struct tn_export *job) TN_MUST_CHECK;
/* The same with these functions of SQLite; NULL: it is not there, TARN_ERR_NOT_SUPPORTED. */
struct tn_sqlite;
enum tarn_status tn_export_sqlite_with(const struct tn_export *job,
                                       const struct tn_sqlite *calls) TN_MUST_CHECK;
enum tarn_status tn_export_perfetto(const struct tn_export *job) TN_MUST_CHECK;
enum tarn_status tn_export_speedscope(const struct tn_export *job) TN_MUST_CHECK;

static inline bool tn_export_wants_device(const struct tn_export *job, int64_t device)
{
    return !job->options->one_device || job->options->device == device;
}

/* The text's status with its words, after tn_text_finish. */
enum tarn_status tn_export_end(const struct tn_export *job, struct tn_text_out *out,
                               bool out_of_memory) TN_MUST_CHECK;

#endif
