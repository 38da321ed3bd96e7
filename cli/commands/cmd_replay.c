/* SPDX-License-Identifier: MIT */
/* `tarn replay`: a recorded run through the allocator on a simulated device. */
#include "device_opt.h"
#include "escape.h"
#include "json_out.h"
#include "measured.h"
#include "output.h"
#include "overwrite.h"
#include "page_cost.h"
#include "redirect.h"
#include "replay_load.h"
#include "size_text.h"
#include "tarn/replay.h"
#include "tarn/report.h"

#include <inttypes.h>
#include <string.h>

struct replay_values {
    struct cli_opt_texts conf;
    uint64_t device_total;
    uint64_t memory_limit;
    uint64_t base_address;
    uint64_t device;
    const char *save;
    const char *output;
    bool force;
    bool no_limit;
    const char *measured;
    const char *workload;
    uint64_t lag;
    bool json;
    bool summary;
    bool check;
};

static const struct replay_values replay_defaults = {.device = CLI_DEVICE_ALL};

static const struct cli_opt replay_opts[] = {
    {.name = "conf",
     .kind = CLI_OPT_TEXTS,
     .at = offsetof(struct replay_values, conf),
     .value = "SETTINGS",
     .help = "settings to replay under, as in PYTORCH_CUDA_ALLOC_CONF; repeat it for "
             "several runs (default: the recorded settings)"},
    {.name = "device-total",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct replay_values, device_total),
     .value = "SIZE",
     .help = "memory of the simulated device (default: large enough)"},
    {.name = "memory-limit",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct replay_values, memory_limit),
     .value = "SIZE",
     .help = "limit of reserved memory (default: that of the recorded run, if found)"},
    {.name = "no-limit",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct replay_values, no_limit),
     .help = "no limit, even if the recorded run had one"},
    {.name = "base-address",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct replay_values, base_address),
     .value = "ADDRESS",
     .help = "first address of the simulated device (default: the recorded addresses)"},
    {.name = "lag",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct replay_values, lag),
     .value = "MS",
     .help = "policy:compact: milliseconds that the device is behind the program (default: 0)"},
    {.name = "save",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct replay_values, save),
     .value = "SNAPSHOT",
     .help = "write the final state of the (last) replay as a snapshot"},
    CLI_OUTPUT_OPT(struct replay_values),
    CLI_REPLAY_DEVICE_OPT(struct replay_values),
    {.name = "summary",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct replay_values, summary),
     .help = "print the memory summary of each run in PyTorch's format"},
    {.name = "measured",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct replay_values, measured),
     .value = "FILE",
     .help = "compare with figures measured on a GPU, from a JSON list of runs"},
    {.name = "workload",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct replay_values, workload),
     .value = "NAME",
     .help = "workload in that list (default: the snapshot's file name)"},
    {.name = "check",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct replay_values, check),
     .help = "check every invariant of the allocator after every operation (slow)"},
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct replay_values, json),
     .help = "print JSON"},
    {0},
};

struct replay_runs {
    const char *path;
    const struct tarn_snapshot *snapshot;
    const struct tarn_replay *replay;
    struct tarn_replay_info info;
    const char *confs[CLI_OPT_TEXTS_MAX];
    struct tarn_replay_result results[CLI_OPT_TEXTS_MAX];
    int count;
};

static int64_t run_peak(const struct tarn_replay_result *result, enum tarn_stat_kind kind)
{
    return result->stats.by_pool[kind][TARN_STAT_ALL].peak;
}

/* ---- JSON ---- */

static void run_json(struct cli_json *json, const char *conf, const struct tarn_replay_result *r)
{
    const struct tarn_stats *s = &r->stats;
    struct cli_page_cost cost = {0};

    cli_json_open_object(json, NULL);
    cli_json_text(json, "conf", conf);
    cli_json_signed(json, "peak_reserved", run_peak(r, TARN_STAT_RESERVED_BYTES));
    cli_json_signed(json, "peak_allocated", run_peak(r, TARN_STAT_ALLOCATED_BYTES));
    cli_json_signed(json, "peak_active", run_peak(r, TARN_STAT_ACTIVE_BYTES));
    cli_json_signed(json, "peak_requested", run_peak(r, TARN_STAT_REQUESTED_BYTES));
    cli_json_signed(json, "peak_segments", run_peak(r, TARN_STAT_SEGMENT));
    cli_json_signed(json, "num_device_alloc", s->num_device_alloc);
    cli_json_signed(json, "num_device_free", s->num_device_free);
    cli_json_signed(json, "num_alloc_retries", s->num_alloc_retries);
    cli_json_signed(json, "num_ooms", s->num_ooms);
    cli_json_signed(json, "first_oom_entry", r->first_oom);
    cli_json_bool(json, "start_fits", !r->start_failed);
    cli_json_number(json, "allocations", r->allocations);
    cli_json_number(json, "same_address", r->same_address);
    cli_json_signed(json, "first_other_entry", r->first_other);
    cli_page_cost_add(&cost, r);
    cli_page_cost_json(json, &cost);
    cli_json_number(json, "retired_pages_peak", r->retired_most);
    cli_json_number(json, "wall_ns", r->wall_ns);
    cli_json_close(json);
}

static enum cli_exit print_json(const struct replay_runs *runs)
{
    struct cli_json json;
    const char *note;

    cli_json_begin_flat(&json, stdout, "tarn.replay/1");
    cli_json_open_array(&json, "runs");
    for (int i = 0; i < runs->count; i++) {
        run_json(&json, runs->confs[i], &runs->results[i]);
    }
    cli_json_close(&json);
    cli_json_signed(&json, "device", runs->info.device);
    cli_json_number(&json, "entries", runs->info.entries);
    cli_json_number(&json, "memory_limit", runs->info.memory_limit);
    cli_json_bool(&json, "memory_limit_is_the_devices", runs->info.limit_is_device);
    cli_json_bool(&json, "complete", runs->info.complete);
    cli_json_open_array(&json, "notes");
    for (size_t i = 0; (note = tarn_replay_get_note(runs->replay, i)) != NULL; i++) {
        cli_json_text(&json, NULL, note);
    }
    cli_json_close(&json);
    cli_json_end(&json);
    return ferror(stdout) ? CLI_EXIT_IO : CLI_EXIT_OK;
}

/* ---- text ---- */

enum {
    ROW_COLUMNS = 110 /* of a row without the settings */
};

static void print_size(int64_t bytes)
{
    (void)printf("%17s", cli_size_text((uint64_t)bytes).text);
}

static int conf_width(const struct replay_runs *runs)
{
    int width = 9;

    for (int i = 0; i < runs->count; i++) {
        const int length = (int)strlen(cli_conf_name(runs->confs[i]));

        width = length > width ? length : width;
    }
    return width;
}

/* For terminals on which a whole row has no room: settings last, which may be folded. */
static void print_narrow_row(const char *conf, const struct tarn_replay_result *result)
{
    (void)printf("%15s", cli_size_text((uint64_t)run_peak(result, TARN_STAT_RESERVED_BYTES)).text);
    (void)printf("%16s", cli_size_text((uint64_t)run_peak(result, TARN_STAT_ALLOCATED_BYTES)).text);
    (void)printf("%8" PRId64 "%7" PRId64 "%6" PRId64 "  %s\n", result->stats.num_device_alloc,
                 result->stats.num_device_free, result->stats.num_ooms, cli_conf_name(conf));
}

static void print_narrow_rows(const struct replay_runs *runs, const struct cli_terminal *terminal)
{
    (void)printf("%s%15s%16s%8s%7s%6s  %s%s\n", cli_terminal_style(terminal, CLI_STYLE_BOLD),
                 "peak reserved", "peak allocated", "allocs", "frees", "OOMs", "settings",
                 cli_terminal_style(terminal, CLI_STYLE_PLAIN));
    for (int i = 0; i < runs->count; i++) {
        print_narrow_row(runs->confs[i], &runs->results[i]);
    }
}

static void print_row(const char *conf, int width, const struct tarn_replay_result *result)
{
    const int64_t reserved = run_peak(result, TARN_STAT_RESERVED_BYTES);
    const int64_t active = run_peak(result, TARN_STAT_ACTIVE_BYTES);

    (void)printf("%-*s", width, cli_conf_name(conf));
    print_size(reserved);
    print_size(run_peak(result, TARN_STAT_ALLOCATED_BYTES));
    print_size(active);
    print_size(run_peak(result, TARN_STAT_REQUESTED_BYTES));
    (void)printf("%9.4f%8" PRId64 "%7" PRId64 "%6" PRId64 "%9.2f ms\n",
                 active ? (double)reserved / (double)active : 1.0, result->stats.num_device_alloc,
                 result->stats.num_device_free, result->stats.num_ooms,
                 (double)result->wall_ns / 1e6);
}

/* Compares the addresses of a run with the recorded ones; only under the same settings. */
static void print_faith(const struct replay_runs *runs, int index)
{
    const struct tarn_replay_result *result = &runs->results[index];
    const char *conf = runs->confs[index];

    if (strcmp(conf, runs->info.conf) != 0) {
        return;
    }
    if (result->first_other < 0 && result->allocations > 0) {
        (void)printf("%s: all %" PRIu64 " allocations are at the recorded addresses\n",
                     cli_conf_name(conf), result->allocations);
    } else if (result->allocations > 0) {
        (void)printf("%s: %" PRIu64 " of %" PRIu64 " allocations are at the recorded addresses; "
                     "event %" PRId64 " is the first that is not\n",
                     cli_conf_name(conf), result->same_address, result->allocations,
                     result->first_other);
    }
}

/* What the compact policy did with its pages. */
static void print_pages(const struct replay_runs *runs, int index, uint64_t lag)
{
    struct cli_page_cost cost = {0};

    cli_page_cost_add(&cost, &runs->results[index]);
    if (cost.created + cost.moved == 0) {
        return;
    }
    (void)printf("%s: ", cli_conf_name(runs->confs[index]));
    cli_page_cost_print(&cost);
    if (lag < runs->info.lag_ms) {
        (void)printf("    recorded frees show the device %" PRIu32 " ms behind the program: see "
                     "--lag %" PRIu32 "\n",
                     runs->info.lag_ms, runs->info.lag_ms);
    }
}

/* Prints where memory runs out; false on a write error. */
static bool print_oom(const struct replay_runs *runs, int index)
{
    const struct tarn_writer writer = cli_output_writer();
    const int64_t entry = runs->results[index].first_oom;

    if (entry < 0) {
        return true;
    }
    if (runs->results[index].start_failed) {
        (void)printf("%s: the blocks from before the trace do not fit; nothing was replayed\n",
                     cli_conf_name(runs->confs[index]));
        return true;
    }
    (void)printf("%s: memory first runs out at event %" PRId64 ", requested by ",
                 cli_conf_name(runs->confs[index]), entry);
    const bool written =
        tarn_report_stack(runs->snapshot, runs->info.device, (uint64_t)entry, &writer) == TARN_OK;
    (void)putchar('\n');
    return written;
}

static void print_wide_rows(const struct replay_runs *runs, const struct cli_terminal *terminal,
                            int width)
{
    (void)printf("%s%-*s%17s%17s%17s%17s%9s%8s%7s%6s%12s\n",
                 cli_terminal_style(terminal, CLI_STYLE_BOLD), width, "", "", "", "", "",
                 "reserved", "device", "device", "", "replay");
    (void)printf("%-*s%17s%17s%17s%17s%9s%8s%7s%6s%12s%s\n", width, "settings", "peak reserved",
                 "peak allocated", "peak active", "peak requested", "/active", "allocs", "frees",
                 "OOMs", "time", cli_terminal_style(terminal, CLI_STYLE_PLAIN));
    for (int i = 0; i < runs->count; i++) {
        print_row(runs->confs[i], width, &runs->results[i]);
    }
}

static bool print_table(const struct replay_runs *runs, const struct cli_terminal *terminal,
                        uint64_t lag)
{
    bool written = true;
    const int width = conf_width(runs);

    cli_put_escaped(stdout, runs->path);
    (void)printf(": %" PRIu64 " events of device %d, recorded with settings ", runs->info.entries,
                 runs->info.device);
    cli_put_escaped(stdout, cli_conf_name(runs->info.conf));
    (void)fputs("\n\n", stdout);
    if (terminal->width > 0 && terminal->width < (unsigned)width + ROW_COLUMNS) {
        print_narrow_rows(runs, terminal);
    } else {
        print_wide_rows(runs, terminal, width);
    }
    (void)putchar('\n');
    for (int i = 0; i < runs->count; i++) {
        print_faith(runs, i);
        print_pages(runs, i, lag);
        written = print_oom(runs, i) && written;
    }
    cli_replay_print_notes(runs->replay);
    return written;
}

/* File name without directories and extensions: the workload in a list of measured runs. */
static void workload_name(const char *path, char *name, size_t size)
{
    const char *base = strrchr(path, '/');

    (void)snprintf(name, size, "%s", base ? base + 1 : path);
    name[strcspn(name, ".")] = '\0';
}

/* Prints the comparison of one run; CLI_EXIT_GATE when a figure differs. */
static enum cli_exit print_measured(const struct cli_call *call, const struct replay_runs *runs,
                                    int index)
{
    const struct replay_values *values = call->values;
    struct cli_measured measured;
    char name[128];
    struct tarn_error error;
    int differing = 0;

    workload_name(values->workload ? values->workload : runs->path, name, sizeof name);
    const enum tarn_status status = cli_measured_read(
        values->measured, name, runs->confs[index], &runs->results[index].stats, &measured, &error);

    if (status) {
        return cli_fail_status(call->command, status, &error, NULL);
    }
    (void)printf("\n%-26s%20s%20s\n", cli_conf_name(runs->confs[index]), "measured on the GPU",
                 "replayed");
    for (int i = 0; i < measured.count; i++) {
        const struct cli_measured_figure *figure = &measured.figures[i];
        const bool same = figure->measured == figure->replayed;

        (void)printf("%-26s%20" PRId64 "%20" PRId64 "  %s\n", figure->name, figure->measured,
                     figure->replayed, same ? "equal" : "DIFFERS");
        differing += !same;
    }
    return differing ? CLI_EXIT_GATE : CLI_EXIT_OK;
}

static enum cli_exit print_text(const struct cli_call *call, const struct replay_runs *runs)
{
    const struct replay_values *values = call->values;
    const struct tarn_writer writer = cli_output_writer();
    enum cli_exit code = CLI_EXIT_OK;

    code = print_table(runs, call->terminal, values->lag) ? CLI_EXIT_OK : CLI_EXIT_IO;
    for (int i = 0; i < runs->count; i++) {
        if (values->measured) {
            const enum cli_exit measured = print_measured(call, runs, i);

            code = measured ? measured : code;
        }
        if (values->summary) {
            (void)putchar('\n');
            if (tarn_report_summary(&runs->results[i].stats, runs->info.device, false, &writer)) {
                code = CLI_EXIT_IO;
            }
        }
    }
    return code;
}

/* ---- running ---- */

static enum tarn_status run_and_save(const struct replay_values *values, struct replay_runs *runs,
                                     const struct tarn_replay_options *options,
                                     struct tarn_replay_result *result, struct tarn_error *error)
{
    struct tarn_snapshot *made = NULL;
    enum tarn_status status =
        tarn_replay_capture(runs->replay, runs->snapshot, options, result, &made, error);

    if (status == TARN_OK) {
        status = cli_snapshot_save(made, values->save, error);
        tarn_snapshot_destroy(made);
    }
    return status;
}

static enum tarn_status run_all(const struct replay_values *values, struct replay_runs *runs,
                                struct tarn_error *error)
{
    runs->count = values->conf.count ? values->conf.count : 1;
    for (int i = 0; i < runs->count; i++) {
        const struct tarn_replay_options options = {
            .struct_size = sizeof options,
            .conf = values->conf.count ? values->conf.items[i] : runs->info.conf,
            .device_total = values->device_total,
            .check = values->check,
            .memory_limit = values->no_limit ? UINT64_MAX : values->memory_limit,
            .base_address = values->base_address,
            .lag_ms = (uint32_t)(values->lag < UINT32_MAX ? values->lag : UINT32_MAX),
        };
        const bool saves = values->save && i + 1 == runs->count;

        runs->confs[i] = options.conf;
        runs->results[i].struct_size = sizeof runs->results[i];
        const enum tarn_status status =
            saves ? run_and_save(values, runs, &options, &runs->results[i], error)
                  : tarn_replay_run(runs->replay, &options, &runs->results[i], error);

        if (status) {
            return status;
        }
    }
    return TARN_OK;
}

static enum cli_exit replay_snapshot(const struct cli_call *call,
                                     const struct tarn_snapshot *snapshot)
{
    const struct replay_values *values = call->values;
    static struct replay_runs runs; /* large */
    struct tarn_error error;
    int failed;
    enum cli_exit code;
    struct tarn_replay *replay =
        cli_replay_create(call->command, snapshot, call->arguments[0], values->device, &failed);

    if (!replay) {
        return (enum cli_exit)failed;
    }
    runs.path = call->arguments[0];
    runs.snapshot = snapshot;
    runs.replay = replay;
    runs.info.struct_size = sizeof runs.info;
    tarn_replay_get_info(replay, &runs.info);
    const enum tarn_status status = run_all(values, &runs, &error);

    if (status) {
        code = cli_fail_status(call->command, status, &error,
                               status == TARN_ERR_CONFIG ? "--conf" : call->arguments[0]);
    } else {
        code = values->json ? print_json(&runs) : print_text(call, &runs);
    }
    tarn_replay_destroy(replay);
    return code;
}

static enum cli_exit replay_load(const struct cli_call *call)
{
    int code;
    struct tarn_snapshot *snapshot = cli_load_recording(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const enum cli_exit replayed = replay_snapshot(call, snapshot);

    tarn_snapshot_destroy(snapshot);
    return code != CLI_EXIT_OK ? (enum cli_exit)code : replayed;
}

/* What -o wrote before --save existed. */
static bool is_pickle(const char *path)
{
    return path && strstr(path, ".pickle");
}

static enum cli_exit replay_run(const struct cli_call *call)
{
    const struct replay_values *values = call->values;
    struct cli_redirect redirect;
    enum cli_exit code = cli_overwrite_check(call->command, values->save, values->force);

    if (code == CLI_EXIT_OK && is_pickle(values->output)) {
        code = cli_fail(call->command, CLI_EXIT_USAGE,
                        "-o writes the report; the snapshot of the replay is --save %s",
                        values->output);
    }
    if (code == CLI_EXIT_OK) {
        code = cli_redirect_begin(&redirect, call->command, values->output, values->force);
    }
    return code ? code : cli_redirect_end(&redirect, call->command, replay_load(call));
}

const struct cli_command cli_command_replay = {
    .name = "replay",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "replay a recorded trace in the allocator, under any settings",
    .details = "Replays the allocations and frees of the trace on a simulated device. Under the\n"
               "recorded settings every block gets its recorded address. A snapshot does not\n"
               "contain the memory limit of the recorded run; it is inferred and kept. --conf ''\n"
               "replays under PyTorch's defaults.\n",
    .examples = "tarn replay dump.pickle --conf '' --conf expandable_segments:True\n"
                "tarn replay dump.pickle --conf expandable_segments:True --save then.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = replay_opts,
    .values_size = sizeof(struct replay_values),
    .defaults = &replay_defaults,
    .run = replay_run,
};
