/* SPDX-License-Identifier: MIT */
/* `tarn trim`: a part of a snapshot, as a snapshot. */
#include "tarn/trim.h"

#include "device_opt.h"
#include "escape.h"
#include "output.h"
#include "overwrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct trim_values {
    uint64_t device;
    const char *events;
    const char *time;
    bool drop_cpp;
    bool anonymize;
    bool drop_freed;
    bool force;
};

static const struct trim_values trim_defaults = {.device = CLI_DEVICE_ALL};

static const struct cli_opt trim_opts[] = {
    CLI_DEVICE_OPT(struct trim_values),
    {.name = "events",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct trim_values, events),
     .value = "A..B",
     .help = "only these events of each trace, from 0; either end may be omitted"},
    {.name = "time",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct trim_values, time),
     .value = "A..B",
     .help = "only this time, in seconds from the start of the trace"},
    {.name = "drop-cpp",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct trim_values, drop_cpp),
     .help = "drop frames outside Python"},
    {.name = "drop-freed",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct trim_values, drop_freed),
     .help = "drop events about blocks that the part both allocates and frees"},
    {.name = "anonymize",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct trim_values, anonymize),
     .help = "replace names of functions, files and annotations, except PyTorch's"},
    CLI_FORCE_OPT(struct trim_values),
    {0},
};

/* The number in these characters; `otherwise` if there are none. */
static bool end_read(const char *text, size_t length, double otherwise, double *number_out)
{
    char copy[32];
    char *end = NULL;

    *number_out = otherwise;
    if (length == 0) {
        return true;
    }
    if (length >= sizeof copy || text[0] < '.' || text[0] > '9') {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    *number_out = strtod(copy, &end);
    return *end == '\0' && isfinite(*number_out);
}

/* Parses "A..B", "A.." or "..B", numbers from 0 to `most`; false for anything else. */
static bool range_read(const char *text, double most, double *first_out, double *last_out)
{
    const char *dots = strstr(text, "..");

    return dots && end_read(text, (size_t)(dots - text), 0, first_out) &&
           end_read(dots + 2, strlen(dots + 2), most, last_out) && *first_out <= *last_out &&
           *last_out <= most;
}

static enum cli_exit range_fail(const struct cli_call *call, const char *name, const char *text)
{
    return cli_fail(call->command, CLI_EXIT_USAGE,
                    "option --%s: \"%s\" is not a range; allowed: A..B, A.. or ..B, from 0", name,
                    cli_escaped(text).text);
}

static enum cli_exit options_read(const struct cli_call *call, struct tarn_trim_options *options)
{
    const struct trim_values *values = call->values;
    double first;
    double last;

    options->one_device = cli_device_is_given(values->device, &options->device);
    options->drop_cpp = values->drop_cpp;
    options->anonymize = values->anonymize;
    options->drop_freed = values->drop_freed;
    if (values->events) {
        if (!range_read(values->events, 9e15, &first, &last)) {
            return range_fail(call, "events", values->events);
        }
        options->has_events = true;
        options->first_event = (uint64_t)first;
        options->last_event = (uint64_t)last;
    }
    if (values->time) {
        if (!range_read(values->time, 9e12, &first, &last)) {
            return range_fail(call, "time", values->time);
        }
        options->has_time = true;
        options->from_us = (int64_t)(first * 1e6);
        options->to_us = (int64_t)(last * 1e6);
    }
    return CLI_EXIT_OK;
}

static enum tarn_status trimmed_save(const struct tarn_snapshot *snapshot,
                                     const struct tarn_trim_options *options, const char *path,
                                     struct tarn_error *error)
{
    struct tarn_snapshot *trimmed;
    enum tarn_status status = tarn_snapshot_trim(snapshot, options, &trimmed, error);

    if (status == TARN_OK) {
        status = cli_snapshot_save(trimmed, path, error);
        tarn_snapshot_destroy(trimmed);
    }
    return status;
}

static enum cli_exit trim_run(const struct cli_call *call)
{
    const struct trim_values *values = call->values;
    const char *path = call->arguments[1];
    struct tarn_trim_options options = {.struct_size = sizeof options};
    struct tarn_error error = {.offset = -1};
    enum cli_exit checked = options_read(call, &options);
    int code;

    if (checked == CLI_EXIT_OK) {
        checked = cli_overwrite_check(call->command, path, values->force);
    }
    if (checked) {
        return checked;
    }
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status = trimmed_save(snapshot, &options, path, &error);

    tarn_snapshot_destroy(snapshot);
    return status ? cli_fail_status(call->command, status, &error, NULL) : (enum cli_exit)code;
}

const struct cli_command cli_command_trim = {
    .name = "trim",
    .arguments = "SNAPSHOT OUTPUT",
    .arguments_min = 2,
    .arguments_max = 2,
    .help = "write a part of a snapshot, or anonymize it",
    .details = "OUTPUT is JSON if its name ends in .json, otherwise a pickle; - is standard\n"
               "output. If the end of a trace is cut off, segments and blocks are those right\n"
               "after the last event. With --anonymize names become function1, file1.py, note1;\n"
               "PyTorch's own names, sizes, addresses and settings stay, and times start at 0.\n",
    .examples = "tarn trim --anonymize --drop-cpp dump.pickle public.pickle\n"
                "tarn trim --events ..500 dump.pickle start.pickle\n"
                "tarn trim -d 0 --time 0..0.5 dump.pickle half.json",
    .opts = trim_opts,
    .values_size = sizeof(struct trim_values),
    .defaults = &trim_defaults,
    .is_unpaged = true,
    .run = trim_run,
};
