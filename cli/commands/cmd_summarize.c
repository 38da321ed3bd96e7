/* SPDX-License-Identifier: MIT */
/* `tarn summarize`: snapshots as summaries, which merge. */
#include "fleet_files.h"
#include "output.h"
#include "overwrite.h"

#include <string.h>

enum {
    KEY_MAX = 65
};

struct summarize_values {
    struct cli_opt_texts labels;
    const char *name;
    const char *output;
    bool force;
};

static const struct cli_opt summarize_opts[] = {
    {.name = "label",
     .kind = CLI_OPT_TEXTS,
     .at = offsetof(struct summarize_values, labels),
     .value = "KEY=VALUE",
     .help = "a label beside those in the file's name; may be repeated"},
    {.name = "name",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct summarize_values, name),
     .value = "NAME",
     .help = "what reports call the snapshot (default: its path)"},
    CLI_OUTPUT_OPT(struct summarize_values),
    {0},
};

/* The labels of the options; keys are copied. */
struct labels {
    char keys[TARN_LABELS_MAX][KEY_MAX + 1];
    struct tarn_label items[TARN_LABELS_MAX];
    size_t count;
};

static enum cli_exit labels_read(const struct cli_command *command,
                                 const struct cli_opt_texts *texts, struct labels *labels)
{
    labels->count = 0;
    for (int i = 0; i < texts->count; i++) {
        const char *text = texts->items[i];
        const char *equals = strchr(text, '=');
        const size_t length = equals ? (size_t)(equals - text) : 0;

        if (length == 0 || length > KEY_MAX || labels->count == TARN_LABELS_MAX) {
            return cli_fail(command, CLI_EXIT_USAGE,
                            "--label %s: at most %d labels KEY=VALUE are possible", text,
                            TARN_LABELS_MAX);
        }
        char *key = labels->keys[labels->count];

        memcpy(key, text, length);
        key[length] = '\0';
        labels->items[labels->count++] = (struct tarn_label){key, equals + 1};
    }
    return CLI_EXIT_OK;
}

/* Writes what was added; without any rank there is nothing to write. */
static int fleet_write(const struct cli_call *call, struct tarn_fleet *fleet, const char *path,
                       int code)
{
    struct tarn_error error = {.offset = -1};
    struct cli_output output;

    if (tarn_fleet_rank_count(fleet) == 0) {
        return code;
    }
    const int opened = cli_output_open(&output, call->command, path);

    if (opened) {
        return opened;
    }
    const enum tarn_status status = tarn_fleet_write(fleet, &output.writer, &error);

    return cli_output_close(&output, call->command, status, &error, code);
}

static int files_add(const struct cli_call *call, struct tarn_fleet *fleet,
                     const struct tarn_summary_options *options)
{
    const struct summarize_values *values = call->values;
    struct cli_fleet_files files;
    int code = CLI_EXIT_OK;

    if (!cli_fleet_files_collect(&files, call, &code)) {
        code = (int)cli_fail(call->command, CLI_EXIT_LIMIT, "host out of memory");
    } else if (values->name && files.count > 1) {
        code = (int)cli_fail(call->command, CLI_EXIT_USAGE, "--name is for one snapshot");
    } else {
        for (size_t i = 0; i < files.count; i++) {
            cli_fleet_add_file(call->command, fleet, files.paths[i], values->name, options, false,
                               &code);
        }
        code = fleet_write(call, fleet, values->output, code);
    }
    cli_fleet_files_release(&files);
    return code;
}

static enum cli_exit summarize_run(const struct cli_call *call)
{
    const struct summarize_values *values = call->values;
    struct labels labels;
    struct tarn_fleet *fleet;
    struct tarn_error error = {.offset = -1};
    int code = (int)cli_overwrite_check(call->command, values->output, values->force);

    code = code ? code : (int)labels_read(call->command, &values->labels, &labels);
    if (code) {
        return (enum cli_exit)code;
    }
    const struct tarn_summary_options options = {
        .struct_size = sizeof options, .label_count = labels.count, .labels = labels.items};
    const enum tarn_status status = tarn_fleet_create(&fleet, &error);

    code = status ? (int)cli_fail_status(call->command, status, &error, NULL)
                  : files_add(call, fleet, &options);
    tarn_fleet_destroy(fleet);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_summarize = {
    .name = "summarize",
    .arguments = "SNAPSHOT...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "reduce snapshots to small summaries, which merge exactly",
    .details = "A summary has the peaks with their stacks and categories, counters, steps,\n"
               "growth, sizes, fragmentation, failed requests and a sketch of the timeline of\n"
               "each rank, and its labels: those in the file's name, such as rank12, host-3,\n"
               "pp_1 or KEY=VALUE, and those of --label. It is a file of JSON lines, compressed\n"
               "if its name ends in .gz or .zst.\n" CLI_FLEET_DETAILS,
    .examples = "tarn summarize dump.pickle -o dump.tsum\n"
                "tarn summarize rank*.pickle --label host=n7 -o n7.tsum",
    .opts = summarize_opts,
    .values_size = sizeof(struct summarize_values),
    .is_unpaged = true,
    .run = summarize_run,
};
