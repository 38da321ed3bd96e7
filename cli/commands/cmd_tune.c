/* SPDX-License-Identifier: MIT */
/* `tarn tune`: the best settings for recorded runs, or for the ranks that summaries are of. */
#include "device_opt.h"
#include "escape.h"
#include "fleet_gather.h"
#include "json_out.h"
#include "output.h"
#include "page_cost.h"
#include "progress.h"
#include "replay_load.h"
#include "size_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tune_values {
    uint64_t device;
    uint64_t device_total;
    uint64_t memory_limit;
    uint64_t tries;
    uint64_t threads;
    uint64_t rows;
    int goal; /* enum tarn_tune_goal */
    const char *dumps;
    bool no_limit;
    bool each;
    bool json;
};

static const struct tune_values tune_defaults = {.device = CLI_DEVICE_ALL, .tries = 200, .rows = 5};

static const char *const goals[] = {"reserved", "device-calls", "capacity", NULL};

static const struct cli_opt tune_opts[] = {
    {.name = "goal",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct tune_values, goal),
     .choices = goals,
     .help = "what to minimize: reserved memory, device calls, or device size"},
    {.name = "memory-limit",
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
    CLI_REPLAY_DEVICE_OPT(struct tune_values),
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
    {.name = "dumps",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct tune_values, dumps),
     .value = "FOLDER",
     .help = "where the snapshots of summaries are (default: where they were summarised)"},
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct tune_values, json),
     .help = "print JSON"},
    {0},
};

static const struct cli_opt_renamed tune_renamed[] = {{"limit", "--memory-limit"}, {0}};

struct tune {
    const struct cli_call *call;
    struct tarn_replay *replays[CLI_OPT_TEXTS_MAX];
    size_t count;
    struct tarn_fleet *fleet; /* of which the traces are the extremes; NULL: of their own */
    struct tarn_fleet_extreme extremes[TARN_FLEET_EXTREMES];
    size_t extreme_count;
    struct tarn_tune_row *rows; /* the recorded settings, then the best */
    size_t row_count;
    struct cli_compact_run compact; /* the policy that is libtarn's alone */
};

/* The recorded settings, --rows others, and one without a harmful option. */
static size_t rows_wanted(const struct tune_values *values)
{
    return (size_t)(values->each ? values->tries : values->rows + 1) + 1;
}

/* What is minimized. */
static uint64_t figure(const struct tune *tune, const struct tarn_tune_row *row)
{
    const struct tune_values *values = tune->call->values;

    return values->goal == TARN_TUNE_CAPACITY       ? row->capacity
           : values->goal == TARN_TUNE_DEVICE_CALLS ? row->device_calls
                                                    : row->peak_reserved;
}

/* What to remove from the recorded settings; NULL if nothing does harm. */
static const struct tarn_tune_row *removal_find(const struct tune *tune)
{
    for (size_t i = 1; i < tune->row_count && i < 3; i++) {
        if (tune->rows[i].removed[0]) {
            return &tune->rows[i];
        }
    }
    return NULL;
}

/* The first row of the table after the recorded and the recommended settings. */
static size_t others_begin(const struct tune *tune)
{
    return tune->row_count > 2 && tune->rows[2].removed[0] && !tune->rows[1].removed[0] ? 3 : 2;
}

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

static void others_json(struct cli_json *json, const struct tune *tune, const char *key,
                        size_t first)
{
    const struct tune_values *values = tune->call->values;

    cli_json_open_array(json, key);
    for (size_t i = first; i < tune->row_count; i++) {
        row_json(json, NULL, &tune->rows[i], values->goal == TARN_TUNE_CAPACITY);
    }
    cli_json_close(json);
}

static void extremes_json(struct cli_json *json, const struct tune *tune)
{
    if (!tune->fleet) {
        return;
    }
    cli_json_number(json, "ranks", tarn_fleet_rank_count(tune->fleet));
    cli_json_open_array(json, "extremes");
    for (size_t i = 0; i < tune->extreme_count; i++) {
        cli_json_open_object(json, NULL);
        cli_json_text(json, "file", tune->extremes[i].file);
        cli_json_number(json, "device", (uint64_t)tune->extremes[i].device);
        cli_json_text(json, "why", tune->extremes[i].why);
        cli_json_close(json);
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
    extremes_json(&json, tune);
    row_json(&json, "recorded", &tune->rows[0], with_capacity);
    if (values->each) {
        others_json(&json, tune, "each", 1);
    } else {
        const struct tarn_tune_row *removal = removal_find(tune);

        row_json(&json, "recommended", &tune->rows[1], with_capacity);
        if (removal) {
            cli_json_text(&json, "remove", removal->removed);
            row_json(&json, "removed", removal, with_capacity);
        }
        others_json(&json, tune, "others", others_begin(tune));
    }
    cli_compact_run_json(&json, &tune->compact);
    cli_json_end(&json);
}

/* How much less than the recommended settings need. */
static void print_gain(const struct tune *tune, const struct tarn_tune_row *row)
{
    const uint64_t needs = figure(tune, row);
    const uint64_t others = figure(tune, &tune->rows[1]);

    if (needs < others && row->ooms <= tune->rows[1].ooms) {
        (void)printf("%7.2f %%", 100.0 * (double)(others - needs) / (double)others);
    } else {
        (void)printf("%9s", "");
    }
}

static void row_text(const struct tune *tune, const struct tarn_tune_row *row, const char *name)
{
    const struct tune_values *values = tune->call->values;

    (void)printf("%14s", cli_size_text(row->peak_reserved).text);
    (void)printf("%14s", cli_size_text(row->peak_allocated - row->peak_requested).text);
    (void)printf("%14" PRIu64 "%6" PRIu64, row->device_calls, row->ooms);
    if (values->goal == TARN_TUNE_CAPACITY) {
        (void)printf("%15s", cli_size_text(row->capacity).text);
    }
    if (!values->each) {
        print_gain(tune, row);
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

static bool is_as_recorded(const struct tune *tune)
{
    return tune->count == 1 && strcmp(tune->rows[0].conf, tune->rows[1].conf) == 0;
}

static void print_export(const struct tune *tune)
{
    const struct tarn_tune_row *row = &tune->rows[1];
    const char *comment = "";

    if (is_as_recorded(tune)) {
        comment = row->conf[0] ? "   # as recorded" : "   # the defaults, as recorded";
    } else if (!row->conf[0]) {
        comment = "   # the defaults";
    }
    (void)printf("export PYTORCH_CUDA_ALLOC_CONF=%s%s\n\n", row->conf[0] ? row->conf : "\"\"",
                 comment);
}

/* "remove max_split_size_mb: 7.79 GiB instead of 9.06 GiB" */
static void print_removal(const struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    const struct tarn_tune_row *row = removal_find(tune);

    if (!row) {
        return;
    }
    (void)printf("  remove %s: ", row->removed);
    if (row->ooms != tune->rows[0].ooms) {
        (void)printf("%" PRIu64 " requests fail instead of %" PRIu64 "\n", row->ooms,
                     tune->rows[0].ooms);
    } else if (values->goal == TARN_TUNE_DEVICE_CALLS) {
        (void)printf("%" PRIu64 " device calls instead of %" PRIu64 "\n", row->device_calls,
                     tune->rows[0].device_calls);
    } else {
        (void)printf("%s instead of ", cli_size_text(figure(tune, row)).text);
        (void)printf("%s\n", cli_size_text(figure(tune, &tune->rows[0])).text);
    }
}

static void print_recommended(const struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    const struct tarn_tune_row *recorded = &tune->rows[0];
    const struct tarn_tune_row *row = &tune->rows[1];

    print_export(tune);
    if (is_as_recorded(tune)) {
        (void)printf("  no other settings gain more than 1 %%\n");
    }
    print_change("reserved at peak", recorded->peak_reserved, row->peak_reserved);
    if (values->goal == TARN_TUNE_CAPACITY) {
        print_change("device needed", recorded->capacity, row->capacity);
    }
    (void)printf("  device calls: %" PRIu64 ", recorded settings %" PRIu64 "\n", row->device_calls,
                 recorded->device_calls);
    (void)printf("  lost to rounding at peak: %s",
                 cli_size_text(row->peak_allocated - row->peak_requested).text);
    (void)printf(", recorded settings %s\n",
                 cli_size_text(recorded->peak_allocated - recorded->peak_requested).text);
    print_removal(tune);
    if (strstr(row->conf, "large_segment_size_mb")) {
        (void)printf("  large_segment_size_mb needs PyTorch 2.11 or newer\n");
    }
    if (row->ooms > 0 || recorded->ooms > 0) {
        (void)printf("  requests that fail: %" PRIu64 ", recorded settings %" PRIu64 "\n",
                     row->ooms, recorded->ooms);
    }
}

static void print_table(const struct tune *tune)
{
    const struct tune_values *values = tune->call->values;
    char name[TARN_TUNE_CONF_MAX + 16];

    (void)printf(
        "%s%14s%14s%14s%6s%s%s%s\n", cli_terminal_style(tune->call->terminal, CLI_STYLE_BOLD),
        "peak reserved", "rounding", "device calls", "OOMs",
        values->goal == TARN_TUNE_CAPACITY ? "  device needed" : "",
        values->each ? "" : "     gain", cli_terminal_style(tune->call->terminal, CLI_STYLE_PLAIN));
    (void)snprintf(name, sizeof name, "recorded: %s", cli_conf_name(tune->rows[0].conf));
    row_text(tune, &tune->rows[0], name);
    if (!values->each) {
        (void)snprintf(name, sizeof name, "recommended: %s", cli_conf_name(tune->rows[1].conf));
        row_text(tune, &tune->rows[1], name);
    }
    for (size_t i = values->each ? 1 : others_begin(tune); i < tune->row_count; i++) {
        row_text(tune, &tune->rows[i], cli_conf_name(tune->rows[i].conf));
    }
}

static void print_compact(const struct tune *tune)
{
    (void)printf("%s in libtarn: %s reserved at peak", CLI_COMPACT,
                 cli_size_text(tune->compact.reserved).text);
    if (tune->compact.ooms > 0) {
        (void)printf(", %" PRIu64 " requests fail", tune->compact.ooms);
    }
    (void)printf(",\n    ");
    cli_page_cost_print(&tune->compact.cost);
}

static void print_extremes(const struct tune *tune)
{
    (void)printf("for %zu ranks, by the traces of\n", tarn_fleet_rank_count(tune->fleet));
    for (size_t i = 0; i < tune->extreme_count; i++) {
        (void)fputs("  ", stdout);
        cli_put_escaped(stdout, tune->extremes[i].file);
        (void)printf(", device %d: %s\n", tune->extremes[i].device, tune->extremes[i].why);
    }
}

static void tune_text(const struct tune *tune)
{
    const struct tune_values *values = tune->call->values;

    if (!values->each) {
        print_recommended(tune);
        (void)putchar('\n');
    }
    print_table(tune);
    (void)putchar('\n');
    print_compact(tune);
    if (tune->count > 1) {
        (void)printf("totals of %zu traces\n", tune->count);
    }
    if (tune->fleet) {
        print_extremes(tune);
    }
    for (size_t i = 0; i < tune->count; i++) {
        cli_replay_print_notes(tune->replays[i]);
    }
}

/* ---- running ---- */

static enum tarn_status tune_compact(struct tune *tune, const struct tarn_tune_options *options,
                                     struct tarn_error *error)
{
    const struct tarn_replay_options same = {.memory_limit = options->memory_limit,
                                             .device_total = options->device_total};
    enum tarn_status status = TARN_OK;

    for (size_t i = 0; status == TARN_OK && i < tune->count; i++) {
        status = cli_compact_run_add(&tune->compact, tune->replays[i], &same, error);
    }
    return status;
}

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
        .recommends = true,
        .progress = cli_progress_begin(&progress, "trying settings", NULL, false),
    };
    struct tarn_error error;
    enum tarn_status status =
        tarn_replay_tune((const struct tarn_replay *const *)tune->replays, tune->count, &options,
                         tune->rows, rows_wanted(values), &tune->row_count, &error);

    status = status ? status : tune_compact(tune, &options, &error);
    cli_progress_end(&progress);
    if (status) {
        return cli_fail_status(tune->call->command, status, &error, NULL);
    }
    if (!values->each && others_begin(tune) == 2 && tune->row_count > values->rows + 1) {
        tune->row_count--; /* room for what to remove */
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
    int worst = CLI_EXIT_OK;

    for (int i = 0; i < tune->call->argument_count; i++) {
        int code;
        struct tarn_replay *replay =
            cli_replay_load(tune->call->command, tune->call->arguments[i], values->device, &code);

        if (!replay) {
            return code;
        }
        tune->replays[tune->count++] = replay;
        worst = code != CLI_EXIT_OK ? code : worst;
    }
    return worst;
}

/* ---- ranks ---- */

/* Where the snapshot of a rank is: at its own path, or in --dumps. */
static bool snapshot_path(const struct tune *tune, const char *file, char *path, size_t size)
{
    const struct tune_values *values = tune->call->values;
    const char *slash = strrchr(file, '/');
    const int length = values->dumps
                           ? snprintf(path, size, "%s/%s", values->dumps, slash ? slash + 1 : file)
                           : snprintf(path, size, "%s", file);

    return length >= 0 && (size_t)length < size && access(path, R_OK) == 0;
}

static int extreme_load(struct tune *tune, const struct tarn_fleet_extreme *extreme)
{
    char path[4096];
    int code;

    if (!snapshot_path(tune, extreme->file, path, sizeof path)) {
        return (int)cli_fail(tune->call->command, CLI_EXIT_IO,
                             "settings are tried on traces, and the snapshot %s cannot be read: "
                             "give its folder with --dumps",
                             extreme->file);
    }
    struct tarn_replay *replay =
        cli_replay_load(tune->call->command, path, (uint64_t)extreme->device, &code);

    if (replay) {
        tune->replays[tune->count++] = replay;
    }
    return code;
}

/* Loads the traces of the extreme ranks; the exit code of the first file that failed. */
static int extremes_load(struct tune *tune)
{
    const struct cli_fleet_gather gather = {.call = tune->call};
    struct tarn_error error = {.offset = -1};
    int code = CLI_EXIT_OK;
    enum tarn_status status = tarn_fleet_create(&tune->fleet, &error);

    if (status) {
        return (int)cli_fail_status(tune->call->command, status, &error, NULL);
    }
    if (!cli_fleet_gather(&gather, tune->fleet, &code)) {
        return code;
    }
    status = tarn_fleet_find_extremes(tune->fleet, tune->extremes, TARN_FLEET_EXTREMES,
                                      &tune->extreme_count, &error);
    if (status) {
        return (int)cli_fail_status(tune->call->command, status, &error, NULL);
    }
    for (size_t i = 0; i < tune->extreme_count && tune->count == i; i++) {
        const int loaded = extreme_load(tune, &tune->extremes[i]);

        code = tune->count == i || (loaded && !code) ? loaded : code;
    }
    return code;
}

/* A summary, a folder or a list; snapshots that are named are all replayed. */
static bool is_fleet(const struct cli_call *call)
{
    bool found = false;

    for (int i = 0; i < call->argument_count && !found; i++) {
        found = cli_fleet_is_many(call->arguments[i]);
    }
    return found;
}

static void tune_release(struct tune *tune)
{
    for (size_t i = 0; i < tune->count; i++) {
        tarn_replay_destroy(tune->replays[i]);
    }
    tarn_fleet_destroy(tune->fleet);
    free(tune->rows);
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
    const bool ranks = is_fleet(call);

    if (ranks && values->device != CLI_DEVICE_ALL) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "--device is for snapshots: ranks of summaries have devices of their own");
    }
    if (!ranks && values->dumps) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "--dumps is for summaries");
    }
    if (!ranks && call->argument_count > CLI_OPT_TEXTS_MAX) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "at most %d traces at once",
                        (int)CLI_OPT_TEXTS_MAX);
    }
    tune.rows = calloc(rows_wanted(values), sizeof *tune.rows);
    if (!tune.rows) {
        return cli_fail(call->command, CLI_EXIT_LIMIT, "out of memory");
    }
    int code = ranks ? extremes_load(&tune) : tune_load(&tune);
    const size_t wanted = ranks ? tune.extreme_count : (size_t)call->argument_count;

    if (wanted > 0 && tune.count == wanted) {
        const enum cli_exit searched = tune_search(&tune);

        code = searched != CLI_EXIT_OK ? (int)searched : code;
    }
    tune_release(&tune);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_tune = {
    .name = "tune",
    .arguments = "SNAPSHOT...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "find the best allocator settings for recorded runs",
    .details = "Replays the traces under many settings: each option on its own, then\n"
               "combinations, starting from the best, and the recorded settings without each of\n"
               "their options. The line to export is the simplest within 1 % of the best: the\n"
               "recorded settings if they are, else the fewest options. Others follow, best\n"
               "first, those that need less with their gain. The result is deterministic.\n"
               "Several traces are judged by their sum. Of a summary, a folder or @LIST up to\n"
               "eight ranks are replayed, which stand for all: those with most requested,\n"
               "reserved, lost and failed, the one nearest to the median, and the largest of\n"
               "groups of like ranks.\n",
    .examples = "tarn tune dump.pickle\n"
                "tarn tune --each dump.pickle\n"
                "tarn tune --goal capacity --memory-limit 78GiB rank*.pickle\n"
                "tarn tune --dumps . a.tsum b.tsum",
    .prints_sizes = true,
    .folds_lines = true,
    .is_redirected = true,
    .opts = tune_opts,
    .renamed = tune_renamed,
    .values_size = sizeof(struct tune_values),
    .defaults = &tune_defaults,
    .run = tune_run,
};
