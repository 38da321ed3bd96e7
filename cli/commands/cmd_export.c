/* SPDX-License-Identifier: MIT */
/* `tarn export`: a snapshot for other programs. */
#include "tarn/export.h"

#include "device_opt.h"
#include "overwrite.h"
#include "report_run.h"

struct export_values {
    uint64_t device;
    const char *output;
    int format; /* enum tarn_export_format */
    int table;  /* enum tarn_export_table */
    bool force;
};

/* In the order of enum tarn_export_format. */
static const char *const formats[] = {"json",       "jsonl",  "csv",    "sqlite", "perfetto",
                                      "speedscope", "folded", "pickle", NULL};

/* In the order of enum tarn_export_table. */
static const char *const tables[] = {"all",    "events", "allocations", "segments",
                                     "blocks", "stacks", "annotations", NULL};

static const struct export_values export_defaults = {.device = CLI_DEVICE_ALL, .format = -1};

static const struct cli_opt export_opts[] = {
    {.name = "to",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct export_values, format),
     .choices = formats,
     .help = "output format; required"},
    {.name = "table",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct export_values, table),
     .choices = tables,
     .help = "table of jsonl or csv (default: all for jsonl, events for csv)"},
    CLI_DEVICE_OPT(struct export_values),
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct export_values, output),
     .value = "FILE",
     .help = "output file (default: -, standard output)"},
    CLI_FORCE_OPT(struct export_values),
    {0},
};

static enum tarn_status export_write(const struct tarn_snapshot *snapshot, const void *context,
                                     const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct export_values *values = context;
    struct tarn_export_options options = {.struct_size = sizeof options,
                                          .table = (enum tarn_export_table)values->table};

    options.one_device = cli_device_is_given(values->device, &options.device);
    return tarn_export(snapshot, (enum tarn_export_format)values->format, &options, writer, error);
}

static enum cli_exit export_run(const struct cli_call *call)
{
    const struct export_values *values = call->values;

    if (values->format < 0) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "--to is required; \"tarn help export\" lists the formats");
    }
    if (values->table != TARN_TABLE_ALL && values->format != TARN_EXPORT_CSV &&
        values->format != TARN_EXPORT_JSONL) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "--table is only for csv and jsonl");
    }
    const enum cli_exit code = cli_overwrite_check(call->command, values->output, values->force);

    return code ? code : cli_report_run(call, values->output, export_write, values);
}

const struct cli_command cli_command_export = {
    .name = "export",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "convert a snapshot for databases, spreadsheets and trace viewers",
    .details = "json, pickle   the snapshot itself, with PyTorch's keys\n"
               "jsonl          rows of events, allocations, segments, blocks, stacks and\n"
               "               annotations\n"
               "csv            one of these tables; no cell can act as a formula\n"
               "sqlite         a database of all tables, with views such as live_by_stack\n"
               "perfetto       a Chrome trace for ui.perfetto.dev: bytes over time, and one\n"
               "               slice per block\n"
               "speedscope     stacks by bytes, for speedscope.app\n"
               "folded         stacks by bytes, one line per stack, for flame graph tools\n",
    .examples = "tarn export --to sqlite dump.pickle -o dump.db\n"
                "tarn export --to csv --table blocks dump.pickle\n"
                "tarn export --to perfetto dump.pickle -o trace.json",
    .opts = export_opts,
    .values_size = sizeof(struct export_values),
    .defaults = &export_defaults,
    .is_unpaged = true,
    .run = export_run,
};
