/* SPDX-License-Identifier: MIT */
/* A build without SQLite. */
#include "base/errinfo.h"
#include "export/export_formats.h"

enum tarn_status tn_export_sqlite(const struct tn_export *job)
{
    return tn_fail(job->error, TARN_ERR_NOT_SUPPORTED,
                   "no database can be made: this tarn was not built with SQLite; export to csv or "
                   "jsonl, or build tarn with that library");
}
