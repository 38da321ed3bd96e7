/* SPDX-License-Identifier: MIT */
/* What the commands that report on traces have in common. */
#ifndef CLI_TRACE_RUN_H
#define CLI_TRACE_RUN_H

#include "command.h"
#include "select_opt.h"
#include "tarn/report.h"

struct cli_trace_values {
    struct cli_select_values select;
    uint64_t device_total;
    uint64_t rows;
    const char *output;
    bool json;
    int order; /* enum tarn_top_order */
};

extern const struct cli_trace_values cli_trace_defaults;
extern const struct cli_opt cli_trace_opts[]; /* for commands with tables */
extern const struct cli_opt cli_oom_opts[];
extern const struct cli_opt cli_top_opts[];
extern const struct cli_opt cli_info_opts[];

typedef enum tarn_status cli_trace_report(const struct tarn_snapshot *snapshot,
                                          const struct tarn_report_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error);

/* Loads the snapshot and writes the report. It may ask whether a run fits: replays tell. */
enum cli_exit cli_trace_run(const struct cli_call *call, cli_trace_report *report);

/* Says on stderr what to type next, when people read there: "tarn oom FILE says why". */
void cli_hint(const struct cli_call *call, const char *text);

#endif
