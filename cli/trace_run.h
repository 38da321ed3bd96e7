/* SPDX-License-Identifier: MIT */
/* What the commands that report on traces have in common. */
#ifndef CLI_TRACE_RUN_H
#define CLI_TRACE_RUN_H

#include "command.h"
#include "overwrite.h"
#include "select_opt.h"
#include "tarn/report.h"

/* Rows of option tables; `type` has members `rows`, `json`, `output` with `force`. */
#define CLI_ROWS_OPT(type)                                                                         \
    {                                                                                              \
        .name = "rows", .letter = 'n', .kind = CLI_OPT_NUMBER, .at = offsetof(type, rows),         \
        .value = "N", .help = "rows of a table (default: 10); the rest is summed in one more row"  \
    }

#define CLI_JSON_OPT(type)                                                                         \
    {                                                                                              \
        .name = "json", .kind = CLI_OPT_FLAG, .at = offsetof(type, json),                          \
        .help = "print JSON, for programs"                                                         \
    }

/* `type` has a member `format`. */
#define CLI_FORM_OPTS(type)                                                                        \
    {.name = "jsonl",                                                                              \
     .kind = CLI_OPT_FLAG,                                                                         \
     .at = offsetof(type, format.jsonl),                                                           \
     .help = "print the rows as JSON Lines, one object per line"},                                 \
    {                                                                                              \
        .name = "csv", .kind = CLI_OPT_FLAG, .at = offsetof(type, format.csv),                     \
        .help = "print the rows as CSV, with a header line"                                        \
    }

struct cli_format_values {
    bool jsonl;
    bool csv;
};

/* Rows for `tree` and `min_share`. */
#define CLI_TREE_OPTS(type)                                                                        \
    {.name = "tree",                                                                               \
     .kind = CLI_OPT_FLAG,                                                                         \
     .at = offsetof(type, tree),                                                                   \
     .help = "show stacks as a tree of calls, callers first"},                                     \
    {                                                                                              \
        .name = "min-share", .kind = CLI_OPT_REAL, .at = offsetof(type, min_share),                \
        .value = "PERCENT",                                                                        \
        .help = "smallest share of a line of the tree (default: 1); the rest is summed"            \
    }

/* The option values of all these commands. Each takes one of the tables below, or its own. */
struct cli_trace_values {
    struct cli_select_values select;
    uint64_t device_total;
    uint64_t rows;
    const char *output;
    bool force;
    bool json;
    struct cli_format_values format;
    int order; /* enum tarn_top_order */
    bool tree;
    double min_share;
    uint64_t max_lifetime;
    uint64_t steps;
    const char *suppressions;
    bool fail;
    bool remedies;
};

extern const struct cli_trace_values cli_trace_defaults;
extern const struct cli_opt cli_trace_opts[]; /* for commands with tables */
extern const struct cli_opt cli_tree_opts[];  /* whose tables can be trees */
extern const struct cli_opt cli_oom_opts[];
extern const struct cli_opt cli_top_opts[];
extern const struct cli_opt cli_info_opts[];
extern const struct cli_opt cli_churn_opts[];
extern const struct cli_opt cli_leaks_opts[];
extern const struct cli_opt cli_steps_opts[];

typedef enum tarn_status cli_trace_report(const struct tarn_snapshot *snapshot,
                                          const struct tarn_report_options *options,
                                          const struct tarn_writer *writer,
                                          struct tarn_error *error);

/* Reads the output format; more than one is a usage error, CLI_EXIT_USAGE. */
enum cli_exit cli_format_read(const struct cli_command *command,
                              const struct cli_format_values *values, bool json,
                              enum tarn_report_format *format_out);

/* Loads the snapshot and writes the report. `would_fit` of its options runs a replay. */
enum cli_exit cli_trace_run(const struct cli_call *call, cli_trace_report *report);

/* The same; `extra` has what the report's own options give, and NULL is none. */
enum cli_exit cli_trace_run_with(const struct cli_call *call, cli_trace_report *report,
                                 const struct tarn_report_options *extra);

/* Suggests the next command on stderr, if that is a terminal and the command succeeded. */
void cli_hint(const struct cli_call *call, enum cli_exit code, const char *text);

#endif
