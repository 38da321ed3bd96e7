/* SPDX-License-Identifier: MIT */
/* `tarn export`: a snapshot, or the summaries of many ranks, for other programs. */
#include "tarn/export.h"

#include "device_opt.h"
#include "fleet_gather.h"
#include "output.h"
#include "overwrite.h"
#include "report_run.h"

struct export_values {
    uint64_t device;
    const char *labels;
    const char *output;
    int format; /* enum tarn_export_format */
    int table;  /* enum tarn_export_table */
    bool force;
};

/* In the order of enum tarn_export_format. */
static const char *const formats[] = {"json",       "jsonl",  "csv",    "sqlite", "perfetto",
                                      "speedscope", "folded", "pickle", NULL};

/* In the order of enum tarn_export_table. */
static const char *const tables[] = {"all",      "events",      "allocations", "segments", "blocks",
                                     "stacks",   "annotations", "ranks",       "holders",  "steps",
                                     "timeline", "ooms",        NULL};

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
     .value = "NAME",
     .help = "table of jsonl or csv: events, allocations, segments, blocks, stacks, annotations; "
             "of many ranks ranks, holders, steps, timeline, ooms, stacks (default: all for jsonl; "
             "events or ranks for csv)"},
    CLI_DEVICE_OPT(struct export_values),
    {.name = "labels",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct export_values, labels),
     .value = "FILE",
     .help = "CSV with more labels of ranks, as for \"tarn ranks\""},
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct export_values, output),
     .value = "FILE",
     .help = "output file (default: -, standard output)"},
    CLI_FORCE_OPT(struct export_values),
    {0},
};

static struct tarn_export_options options_of(const struct export_values *values)
{
    struct tarn_export_options options = {.struct_size = sizeof options,
                                          .table = (enum tarn_export_table)values->table};

    options.one_device = cli_device_is_given(values->device, &options.device);
    return options;
}

static enum tarn_status export_write(const struct tarn_snapshot *snapshot, const void *context,
                                     const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct export_values *values = context;
    const struct tarn_export_options options = options_of(values);

    return tarn_export(snapshot, (enum tarn_export_format)values->format, &options, writer, error);
}

/* ---- many ranks ---- */

/* Several files, a folder, a list, a summary, or a table that only ranks have. */
static bool is_fleet(const struct cli_call *call)
{
    const struct export_values *values = call->values;

    return call->argument_count > 1 || values->labels || values->table >= TARN_TABLE_RANKS ||
           cli_fleet_is_many(call->arguments[0]);
}

static int ranks_write(const struct cli_call *call, struct tarn_fleet *fleet, int code)
{
    const struct export_values *values = call->values;
    const struct tarn_export_options options = options_of(values);
    struct tarn_error error = {.offset = -1};
    struct cli_output output;
    const int opened = cli_output_open(&output, call->command, values->output);

    if (opened) {
        return opened;
    }
    const enum tarn_status status = tarn_export_fleet(
        fleet, (enum tarn_export_format)values->format, &options, &output.writer, &error);

    return cli_output_close(&output, call->command, status, &error, code);
}

static int ranks_gather(const struct cli_call *call, struct tarn_fleet *fleet)
{
    const struct export_values *values = call->values;
    const struct cli_fleet_gather gather = {.call = call, .labels = values->labels};
    int code = CLI_EXIT_OK;

    if (!cli_fleet_gather(&gather, fleet, &code)) {
        return code;
    }
    return ranks_write(call, fleet, code);
}

static enum cli_exit ranks_export(const struct cli_call *call)
{
    const struct export_values *values = call->values;
    const bool is_known = values->table == TARN_TABLE_ALL || values->table == TARN_TABLE_STACKS ||
                          values->table >= TARN_TABLE_RANKS;
    struct tarn_error error = {.offset = -1};
    struct tarn_fleet *fleet;

    if (!is_known) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "--table %s is of one snapshot; many ranks have ranks, holders, steps, "
                        "timeline, ooms and stacks",
                        tables[values->table]);
    }
    if (values->format != TARN_EXPORT_CSV && values->format != TARN_EXPORT_JSONL &&
        values->format != TARN_EXPORT_SQLITE) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "many ranks are exported to csv, jsonl or sqlite, one snapshot to %s",
                        formats[values->format]);
    }
    const enum tarn_status status = tarn_fleet_create(&fleet, &error);
    const int code = status ? (int)cli_fail_status(call->command, status, &error, NULL)
                            : ranks_gather(call, fleet);

    tarn_fleet_destroy(fleet);
    return (enum cli_exit)code;
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

    if (code) {
        return code;
    }
    return is_fleet(call) ? ranks_export(call)
                          : cli_report_run(call, values->output, export_write, values);
}

const struct cli_command cli_command_export = {
    .name = "export",
    .arguments = "SNAPSHOT...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "convert snapshots for databases, spreadsheets and trace viewers",
    .details = "json, pickle   the snapshot itself, with PyTorch's keys\n"
               "jsonl          rows of events, allocations, segments, blocks, stacks and\n"
               "               annotations\n"
               "csv            one of these tables; no cell can act as a formula\n"
               "sqlite         a database of all tables, with views such as live_by_stack\n"
               "perfetto       a Chrome trace for ui.perfetto.dev: bytes over time, and one\n"
               "               slice per block\n"
               "speedscope     stacks by bytes, for speedscope.app\n"
               "folded         stacks by bytes, one line per stack, for flame graph tools\n"
               "\n"
               "Summaries, or several snapshots, become tables of ranks: jsonl, csv or "
               "sqlite.\n" CLI_FLEET_DETAILS,
    .examples = "tarn export --to sqlite dump.pickle -o dump.db\n"
                "tarn export --to csv --table blocks dump.pickle\n"
                "tarn export --to perfetto dump.pickle -o trace.json\n"
                "tarn export --to sqlite a.tsum b.tsum -o ranks.db",
    .opts = export_opts,
    .values_size = sizeof(struct export_values),
    .defaults = &export_defaults,
    .is_unpaged = true,
    .run = export_run,
};
