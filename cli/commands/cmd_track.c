/* SPDX-License-Identifier: MIT */
/* `tarn track`: replays a log of the memory tracker and shows memory by module. */
#include "command.h"
#include "output.h"
#include "overwrite.h"
#include "tarn/tracker.h"

#include <inttypes.h>
#include <stdio.h>

enum track_display {
    DISPLAY_NONE,
    DISPLAY_CURRENT,
    DISPLAY_PEAK,
    DISPLAY_MOMENT
};

enum {
    BAR_WIDTH = 40,
    DEPTH_DEFAULT = 2 /* as PyTorch's */
};

struct track_values {
    bool json;
    bool everything;
    int display;
    bool modulewise;
    uint64_t depth; /* UINT64_MAX = not given */
    int units;
    bool tabulate;
    bool tree;
    bool iterations;
    bool after;
    const char *output;
    bool force;
};

static const char *const display_choices[] = {"none", "current", "peak", "moment", NULL};
static const char *const units_choices[] = {"B", "KiB", "MiB", "GiB", NULL};

enum {
    UNITS_B,
    UNITS_MIB = 2
};

static const struct track_values track_defaults = {.units = -1, .depth = UINT64_MAX};

static const struct cli_opt track_opts[] = {
    {.name = "display",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct track_values, display),
     .choices = display_choices,
     .help = "print bytes by device and category, as display_snapshot"},
    {.name = "modulewise",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct track_values, modulewise),
     .help = "print them for each module in each state, as display_modulewise_snapshots"},
    {.name = "tree",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct track_values, tree),
     .help = "print the tree of modules with the memory of each at the peak (default)"},
    {.name = "iterations",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct track_values, iterations),
     .help = "print one line per iteration: start, peak, end, and categories that grew"},
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct track_values, json),
     .help = "print peak, current and all modules as one line of JSON"},
    {.name = "everything",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct track_values, everything),
     .help = "with --json: add the combined peak, iterations, and bytes by module"},
    {.name = "after",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct track_values, after),
     .help = "print the state after each event, one line of JSON each"},
    {.name = "units",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct track_values, units),
     .choices = units_choices,
     .help = "unit of bytes; MiB for --tree and --iterations, else B"},
    {.name = "depth",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct track_values, depth),
     .value = "N",
     .help = "levels of modules to show (default: 2 with --modulewise, else all)"},
    {.name = "tabulate",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct track_values, tabulate),
     .help = "print tables instead of lists"},
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct track_values, output),
     .value = "FILE",
     .help = "output file (default: standard output)"},
    CLI_FORCE_OPT(struct track_values),
    {0},
};

static enum tarn_units units_of(const struct track_values *values, int otherwise)
{
    static const enum tarn_units units[] = {TARN_UNITS_BYTES, TARN_UNITS_KIB, TARN_UNITS_MIB,
                                            TARN_UNITS_GIB};

    return units[values->units >= 0 ? values->units : otherwise];
}

static uint32_t depth_of(const struct track_values *values, uint32_t otherwise)
{
    if (values->depth == UINT64_MAX) {
        return otherwise;
    }
    return values->depth < UINT32_MAX ? (uint32_t)values->depth : UINT32_MAX;
}

static enum tarn_status write_display(struct tarn_tracker *tracker,
                                      const struct track_values *values,
                                      const struct tarn_writer *writer, struct tarn_error *error)
{
    static const enum tarn_track_point points[] = {
        [DISPLAY_CURRENT] = TARN_TRACK_AT_END,
        [DISPLAY_PEAK] = TARN_TRACK_PEAKS,
        [DISPLAY_MOMENT] = TARN_TRACK_TOTAL_PEAK,
    };

    return tarn_tracker_write_rows(tracker, points[values->display], units_of(values, UNITS_B),
                                   values->tabulate ? TARN_TRACK_TABLE : TARN_TRACK_TEXT, writer,
                                   error);
}

/* Writes all requested outputs in this order, or the tree by default. */
static enum tarn_status write_all(struct tarn_tracker *tracker, const struct track_values *values,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    const bool asked = values->display || values->modulewise || values->iterations ||
                       values->json || values->after;
    enum tarn_status st = TARN_OK;

    if (values->display) {
        st = write_display(tracker, values, writer, error);
    }
    if (!st && values->modulewise) {
        st = tarn_tracker_write_modules(
            tracker, depth_of(values, DEPTH_DEFAULT), units_of(values, UNITS_B),
            values->tabulate ? TARN_TRACK_TABLE : TARN_TRACK_TEXT, writer, error);
    }
    if (!st && (values->tree || !asked)) {
        st = tarn_tracker_write_tree(tracker, TARN_TRACK_TOTAL_PEAK, depth_of(values, 0),
                                     units_of(values, UNITS_MIB), BAR_WIDTH, writer, error);
    }
    if (!st && values->iterations) {
        st = tarn_tracker_write_iterations(tracker, units_of(values, UNITS_MIB), writer, error);
    }
    if (!st && values->json) {
        st = tarn_tracker_write_json(tracker, values->everything, writer, error);
    }
    return st;
}

static enum tarn_status replay_and_write(struct tarn_tracker *tracker, const struct cli_call *call,
                                         const struct tarn_writer *writer,
                                         struct tarn_track_replay *replay, struct tarn_error *error)
{
    const struct track_values *values = call->values;
    const enum tarn_status st = tarn_tracker_replay_log(
        tracker, call->arguments[0], values->after ? writer : NULL, replay, error);

    return st ? st : write_all(tracker, values, writer, error);
}

static enum cli_exit track_run(const struct cli_call *call)
{
    const struct track_values *values = call->values;
    struct tarn_track_replay replay = {.struct_size = sizeof replay};
    struct tarn_tracker *tracker = NULL;
    struct cli_output output;
    struct tarn_error error = {.offset = -1};
    int code = (int)cli_overwrite_check(call->command, values->output, values->force);

    if (code) {
        return (enum cli_exit)code;
    }
    enum tarn_status status = tarn_tracker_create(NULL, &tracker, &error);

    if (status) {
        return cli_fail_status(call->command, status, &error, NULL);
    }
    code = cli_output_open(&output, call->command, values->output);
    if (code == CLI_EXIT_OK) {
        status = replay_and_write(tracker, call, &output.writer, &replay, &error);
        code = cli_output_close(&output, call->command, status, &error, code);
    }
    if (code == CLI_EXIT_OK && replay.differing > 0) {
        code = (int)cli_fail(call->command, CLI_EXIT_GATE,
                             "%" PRIu64 " of %" PRIu64 " recorded snapshots differ: %s",
                             replay.differing, replay.compared, replay.first);
    }
    tarn_tracker_destroy(tracker);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_track = {
    .name = "track",
    .arguments = "LOG",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "show which modules of a training run held memory, and when",
    .details = "LOG contains the events of a memory tracker (docs/tracker.md) as JSON lines,\n"
               "plain, gzip or zstd; - is standard input. Every snapshot recorded in it is\n"
               "compared; the command exits with 1, after printing the results, if one differs.\n",
    .examples = "tarn track model.jsonl.gz\n"
                "tarn track --modulewise --depth 2 --units MiB --tabulate model.jsonl.gz",
    .opts = track_opts,
    .values_size = sizeof(struct track_values),
    .defaults = &track_defaults,
    .run = track_run,
};
