/* SPDX-License-Identifier: MIT */
/* `tarn tune`: the best settings for recorded runs. */
#include "json_out.h"
#include "progress.h"
#include "replay_load.h"
#include "size_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tune_values {
    uint64_t device;
    uint64_t device_total;
    uint64_t memory_limit;
    uint64_t tries;
    uint64_t threads;
    uint64_t rows;
    int goal; /* enum tarn_tune_goal */
    bool no_limit;
    bool each;
    bool json;
};

static const struct tune_values tune_defaults = {.device = UINT64_MAX, .tries = 200, .rows = 5};

static const char *const goals[] = {"reserved", "device-calls", "capacity", NULL};

static const struct cli_opt tune_opts[] = {
    {.name = "goal",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct tune_values, goal),
     .choices = goals,
     .help = "what to minimize: reserved memory, device calls, or device size"},
    {.name = "limit",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct tune_values, memory_limit),
     .value = "SIZE",
     .help = "limit of reserved memory (default: that of the recorded run, if found)"},
    {.name = "no-limit",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct tune_values, no_limit),
     .help = "no limit, even if the recorded run had one"},
    {.name = "device-total",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct tune_values, device_total),
     .value = "SIZE",
     .help = "memory of the device (default: large enough)"},
    {.name = "device",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct tune_values, device),
     .value = "N",
     .help = "device whose trace to use (default: the first with a trace)"},
    {.name = "tries",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct tune_values, tries),
     .value = "N",
     .help = "maximum number of settings to try (default: 200)"},
    {.name = "threads",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct tune_values, threads),
     .value = "N",
     .help = "number of threads (default: one per processor); does not affect the result"},
    {.name = "rows",
     .letter = 'n',
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct tune_values, rows),
     .value = "N",
     .help = "number of best settings to show (default: 5)"},
    {.name = "each",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct tune_values, each),
     .help = "no search: show the effect of every option on its own"},
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct tune_values, json),
     .help = "print JSON"},
    {0},
};

struct tune {
    const struct cli_call *call;
    struct tarn_replay *replays[CLI_OPT_TEXTS_MAX];
    size_t count;
    struct tarn_tune_row *rows; /* the recorded settings, then the best */
    size_t row_count;
};

/* The recorded settings, and --rows others. */
static size_t rows_wanted(const struct tune_values *values)
{
    return (size_t)(values->each ? values->tries : values->rows) + 1;
}

/* ---- output ---- */

static void row_json(struct cli_json *json, const char *key, const struct tarn_tune_row *row,
                     bool with_capacity)
{
    cli_json_open_object(json, key);
    cli_json_text(json, "conf", row->conf);
    cli_json_number(json, "peak_reserved", row->peak_reserved);
    cli_json_number(json, "peak_allocated", row->peak_allocated);
    cli_json_number(json, "peak_requested", row->peak_requested);
    cli_json_number(json, "device_calls", row->device_calls);
    cli_json_number(json, "ooms", row->ooms);
    if (with_capacity) {
        cli_json_number(json, "capacity", row->capacity);
    }
    cli_json_close(json);
}

static void tune_json(const struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    const bool with_capacity = values->goal == TARN_TUNE_CAPACITY;
    struct cli_json json;

    cli_json_begin(&json, stdout, "tarn.tune/1", false);
    cli_json_text(&json, "goal", goals[values->goal]);
    cli_json_number(&json, "traces", tune->count);
    row_json(&json, "recorded", &tune->rows[0], with_capacity);
    cli_json_open_array(&json, values->each ? "each" : "best");
    for (size_t i = 1; i < tune->row_count; i++) {
        row_json(&json, NULL, &tune->rows[i], with_capacity);
    }
    cli_json_end(&json);
}

static void row_text(const struct tarn_tune_row *row, const char *name, bool with_capacity)
{
    (void)printf("%14s", cli_size_text(row->peak_reserved).text);
    (void)printf("%14s", cli_size_text(row->peak_allocated - row->peak_requested).text);
    (void)printf("%14" PRIu64 "%8" PRIu64, row->device_calls, row->ooms);
    if (with_capacity) {
        (void)printf("%14s", cli_size_text(row->capacity).text);
    }
    (void)printf("  %s\n", name);
}

/* "0.53 GiB (4.9 %) less" */
static void print_change(const char *what, uint64_t before, uint64_t after)
{
    const uint64_t change = before > after ? before - after : after - before;

    (void)printf("  %s: %s", what, cli_size_text(after).text);
    if (change == 0) {
        (void)printf(", the same as with the recorded settings\n");
    } else {
        (void)printf(", %s (%.1f %%) %s than with the recorded settings\n",
                     cli_size_text(change).text, 100.0 * (double)change / (double)before,
                     before > after ? "less" : "more");
    }
}

static void print_best(const struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    const struct tarn_tune_row *recorded = &tune->rows[0];
    const struct tarn_tune_row *best = &tune->rows[1];

    (void)printf("export PYTORCH_CUDA_ALLOC_CONF=%s%s%s\n\n", best->conf[0] ? "" : "\"\"",
                 best->conf, best->conf[0] ? "" : "   # the defaults");
    print_change("reserved at peak", recorded->peak_reserved, best->peak_reserved);
    if (values->goal == TARN_TUNE_CAPACITY) {
        print_change("device needed", recorded->capacity, best->capacity);
    }
    (void)printf("  device calls: %" PRIu64 ", recorded settings %" PRIu64 "\n", best->device_calls,
                 recorded->device_calls);
    (void)printf("  lost to rounding at peak: %s",
                 cli_size_text(best->peak_allocated - best->peak_requested).text);
    (void)printf(", recorded settings %s\n",
                 cli_size_text(recorded->peak_allocated - recorded->peak_requested).text);
    if (strstr(best->conf, "large_segment_size_mb")) {
        (void)printf("  large_segment_size_mb needs PyTorch 2.11 or newer\n");
    }
    if (best->ooms > 0 || recorded->ooms > 0) {
        (void)printf("  requests that fail: %" PRIu64 ", recorded settings %" PRIu64 "\n",
                     best->ooms, recorded->ooms);
    }
}

static void tune_text(const struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    const bool with_capacity = values->goal == TARN_TUNE_CAPACITY;
    char name[TARN_TUNE_CONF_MAX + 16];

    if (!values->each) {
        print_best(tune);
        (void)putchar('\n');
    }
    (void)printf("%14s%14s%14s%8s%s\n", "peak reserved", "rounding", "device calls", "OOMs",
                 with_capacity ? "  device needed" : "");
    (void)snprintf(name, sizeof name, "recorded: %s", cli_conf_name(tune->rows[0].conf));
    row_text(&tune->rows[0], name, with_capacity);
    for (size_t i = 1; i < tune->row_count; i++) {
        row_text(&tune->rows[i], cli_conf_name(tune->rows[i].conf), with_capacity);
    }
    (void)putchar('\n');
    if (tune->count > 1) {
        (void)printf("totals of %zu traces\n", tune->count);
    }
    for (size_t i = 0; i < tune->count; i++) {
        cli_replay_print_notes(tune->replays[i]);
    }
}

/* ---- running ---- */

static enum cli_exit tune_search(struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    struct cli_progress progress;
    const struct tarn_tune_options options = {
        .struct_size = sizeof options,
        .goal = (enum tarn_tune_goal)values->goal,
        .tries = (uint32_t)values->tries,
        .threads = (uint32_t)values->threads,
        .memory_limit = values->no_limit ? UINT64_MAX : values->memory_limit,
        .device_total = values->device_total,
        .each = values->each,
        .progress = cli_progress_begin(&progress, "trying settings", NULL, false),
    };
    struct tarn_error error;
    const enum tarn_status status =
        tarn_replay_tune((const struct tarn_replay *const *)tune->replays, tune->count, &options,
                         tune->rows, rows_wanted(values), &tune->row_count, &error);

    cli_progress_end(&progress);
    if (status) {
        return cli_fail_status(tune->call->command, status, &error, NULL);
    }
    if (values->json) {
        tune_json(tune);
    } else {
        tune_text(tune);
    }
    return ferror(stdout) ? CLI_EXIT_IO : CLI_EXIT_OK;
}

/* Loads every file; returns CLI_EXIT_OK or the exit code. */
static int tune_load(struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    const int device = values->device == UINT64_MAX ? -1 : (int)(values->device & INT32_MAX);
    int worst = CLI_EXIT_OK;

    for (int i = 0; i < tune->call->argument_count; i++) {
        int code;
        struct tarn_replay *replay =
            cli_replay_load(tune->call->command, tune->call->arguments[i], device, &code);

        if (!replay) {
            return code;
        }
        tune->replays[tune->count++] = replay;
        worst = code != CLI_EXIT_OK ? code : worst;
    }
    return worst;
}

static enum cli_exit tune_run(const struct cli_call *call)
{
    const struct tune_values *values = call->values;
    struct tune tune = {.call = call};
    const uint64_t most = 100000;

    if (values->rows == 0 || values->rows > most || values->tries == 0 || values->tries > most ||
        values->threads > most) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "--rows, --tries and --threads take numbers from 1 to %" PRIu64, most);
    }
    if (call->argument_count > CLI_OPT_TEXTS_MAX) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "at most %d traces at once",
                        (int)CLI_OPT_TEXTS_MAX);
    }
    tune.rows = calloc(rows_wanted(values), sizeof *tune.rows);
    if (!tune.rows) {
        return cli_fail(call->command, CLI_EXIT_LIMIT, "out of memory");
    }
    int code = tune_load(&tune);

    if (tune.count == (size_t)call->argument_count) {
        const enum cli_exit searched = tune_search(&tune);

        code = searched != CLI_EXIT_OK ? (int)searched : code;
    }
    for (size_t i = 0; i < tune.count; i++) {
        tarn_replay_destroy(tune.replays[i]);
    }
    free(tune.rows);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_tune = {
    .name = "tune",
    .arguments = "SNAPSHOT...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "find the best allocator settings for recorded runs",
    .details = "Replays the traces under many settings: each option on its own, then\n"
               "combinations, starting from the best. The result is deterministic. Several\n"
               "traces are judged by their sum.\n",
    .examples = "tarn tune dump.pickle\n"
                "tarn tune --each dump.pickle\n"
                "tarn tune --goal capacity --limit 78GiB rank*.pickle",
    .prints_sizes = true,
    .is_redirected = true,
    .opts = tune_opts,
    .values_size = sizeof(struct tune_values),
    .defaults = &tune_defaults,
    .run = tune_run,
};
