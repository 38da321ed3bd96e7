/* SPDX-License-Identifier: MIT */
/* What every command does that reads one snapshot and writes one result. */
#ifndef CLI_REPORT_RUN_H
#define CLI_REPORT_RUN_H

#include "command.h"
#include "tarn/report.h"
#include "tarn/snapshot.h"
#include "tarn/writer.h"

/* Writes the result; `context` is the command's own. */
typedef enum tarn_status cli_report(const struct tarn_snapshot *snapshot, const void *context,
                                    const struct tarn_writer *writer, struct tarn_error *error);

/* Loads the command's first argument and writes the report to `output` (as of -o). */
enum cli_exit cli_report_run(const struct cli_call *call, const char *output, cli_report *report,
                             const void *context);

/* Width and colour of a report into that file; NULL or "-": of standard output. */
void cli_report_style(const struct cli_call *call, const char *path,
                      struct tarn_report_options *options);

#endif
