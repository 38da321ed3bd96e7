/* SPDX-License-Identifier: MIT */
/* `tarn fit`: the smallest device that fits a recorded run. */
#include "escape.h"
#include "json_out.h"
#include "replay_load.h"
#include "size_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct fit_values {
    struct cli_opt_texts conf;
    uint64_t device;
    uint64_t card;
    uint64_t reserve;
    bool json;
};

static const struct fit_values fit_defaults = {.device = UINT64_MAX, .reserve = (uint64_t)1 << 30};

static const struct cli_opt fit_opts[] = {
    {.name = "device",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct fit_values, card),
     .value = "SIZE",
     .help = "check whether the run fits a device of this size, such as 80GB or 80GiB"},
    {.name = "reserve",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct fit_values, reserve),
     .value = "SIZE",
     .help = "memory used by CUDA and others (default: 1 GiB)"},
    {.name = "conf",
     .kind = CLI_OPT_TEXTS,
     .at = offsetof(struct fit_values, conf),
     .value = "SETTINGS",
     .help = "settings to try besides the recorded ones, the defaults and expandable segments"},
    {.name = "of-device",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct fit_values, device),
     .value = "N",
     .help = "device whose trace to use (default: the first with a trace)"},
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct fit_values, json),
     .help = "print JSON"},
    {0},
};

enum {
    FIT_ROWS_MAX = CLI_OPT_TEXTS_MAX + 4,
    FIT_SEARCH_TRIES = 60
};

struct fit_row {
    char conf[TARN_TUNE_CONF_MAX];
    uint64_t capacity;
};

struct fit {
    const struct cli_call *call;
    const struct tarn_replay *replay;
    struct tarn_replay_info info;
    uint64_t floor; /* peak requested bytes */
    struct fit_row rows[FIT_ROWS_MAX];
    int count;
    bool searched; /* the last row was found by a search */
};

static bool fits(const struct fit *fit, const struct fit_row *row)
{
    const struct fit_values *values = fit->call->values;

    return values->card >= values->reserve && row->capacity <= values->card - values->reserve;
}

static bool any_fits(const struct fit *fit)
{
    for (int i = 0; i < fit->count; i++) {
        if (fits(fit, &fit->rows[i])) {
            return true;
        }
    }
    return false;
}

/* ---- search ---- */

static enum tarn_status fit_add(struct fit *fit, const char *conf, struct tarn_error *error)
{
    struct fit_row *row = &fit->rows[fit->count];

    for (int i = 0; i < fit->count; i++) {
        if (strcmp(fit->rows[i].conf, conf) == 0) {
            return TARN_OK;
        }
    }
    (void)snprintf(row->conf, sizeof row->conf, "%s", conf);
    const enum tarn_status status = tarn_replay_fit(fit->replay, row->conf, &row->capacity, error);

    fit->count += status == TARN_OK;
    return status;
}

/* Lower bound: no settings need less than the peak of requested bytes. */
static enum tarn_status fit_floor(struct fit *fit, struct tarn_error *error)
{
    const struct tarn_replay_options options = {.struct_size = sizeof options,
                                                .memory_limit = UINT64_MAX};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    const enum tarn_status status = tarn_replay_run(fit->replay, &options, &result, error);

    fit->floor = (uint64_t)result.stats.by_pool[TARN_STAT_REQUESTED_BYTES][TARN_STAT_ALL].peak;
    return status;
}

/* If none of the given settings fit the device, searches for others. */
static enum tarn_status fit_search(struct fit *fit, struct tarn_error *error)
{
    const struct tarn_tune_options options = {
        .struct_size = sizeof options, .goal = TARN_TUNE_CAPACITY, .tries = FIT_SEARCH_TRIES};
    static struct tarn_tune_row rows[2];
    size_t count = 0;
    const enum tarn_status status =
        tarn_replay_tune(&fit->replay, 1, &options, rows, 2, &count, error);

    if (status == TARN_OK && count == 2) {
        const int before = fit->count;
        const enum tarn_status added = fit_add(fit, rows[1].conf, error);

        fit->searched = fit->count > before;
        return added;
    }
    return status;
}

static enum tarn_status fit_find(struct fit *fit, struct tarn_error *error)
{
    const struct fit_values *values = fit->call->values;
    enum tarn_status status = fit_floor(fit, error);

    status = status ? status : fit_add(fit, fit->info.conf, error);
    status = status ? status : fit_add(fit, "", error);
    status = status ? status : fit_add(fit, "expandable_segments:True", error);
    for (int i = 0; i < values->conf.count && status == TARN_OK; i++) {
        status = fit_add(fit, values->conf.items[i], error);
    }
    return status == TARN_OK && values->card > 0 && !any_fits(fit) ? fit_search(fit, error)
                                                                   : status;
}

/* ---- output ---- */

static void fit_json(const struct fit *fit)
{
    const struct fit_values *values = fit->call->values;
    struct cli_json json;
    const char *note;

    cli_json_begin(&json, stdout, "tarn.fit/1", false);
    cli_json_number(&json, "floor", fit->floor);
    cli_json_open_array(&json, "settings");
    for (int i = 0; i < fit->count; i++) {
        cli_json_open_object(&json, NULL);
        cli_json_text(&json, "conf", fit->rows[i].conf);
        cli_json_number(&json, "capacity", fit->rows[i].capacity);
        if (values->card > 0) {
            cli_json_bool(&json, "fits", fits(fit, &fit->rows[i]));
        }
        cli_json_close(&json);
    }
    cli_json_close(&json);
    cli_json_number(&json, "reserve", values->reserve);
    if (values->card > 0) {
        cli_json_number(&json, "device", values->card);
        cli_json_bool(&json, "fits", any_fits(fit));
    }
    cli_json_open_array(&json, "notes");
    for (size_t i = 0; (note = tarn_replay_get_note(fit->replay, i)) != NULL; i++) {
        cli_json_text(&json, NULL, note);
    }
    cli_json_end(&json);
}

static void print_row(const struct fit *fit, const struct fit_row *row, const char *what)
{
    const struct fit_values *values = fit->call->values;

    (void)printf("%14s", cli_size_text(row->capacity).text);
    (void)printf("%14s",
                 cli_size_text(row->capacity > fit->floor ? row->capacity - fit->floor : 0).text);
    if (values->card > 0) {
        (void)printf("%6s", fits(fit, row) ? "yes" : "no");
    }
    (void)printf("  %s%s\n", cli_conf_name(row->conf), what);
}

static void print_verdict(const struct fit *fit)
{
    const struct fit_values *values = fit->call->values;

    (void)printf("\na device of %s, ", cli_size_text(values->card).text);
    (void)printf("of which CUDA and others use %s: ", cli_size_text(values->reserve).text);
    for (int i = 0; i < fit->count; i++) {
        if (fits(fit, &fit->rows[i])) {
            (void)printf("the run fits with settings %s\n", cli_conf_name(fit->rows[i].conf));
            return;
        }
    }
    (void)printf("the run does not fit under any settings tried\n");
}

static void fit_text(const struct fit *fit)
{
    const struct fit_values *values = fit->call->values;

    cli_put_escaped(stdout, fit->call->arguments[0]);
    (void)printf(": %" PRIu64 " events of device %d; smallest device memory that fits the whole "
                 "trace\n\n",
                 fit->info.entries, fit->info.device);
    (void)printf("%14s%14s%s\n", "needed", "above floor", values->card > 0 ? "  fits" : "");
    for (int i = 0; i < fit->count; i++) {
        const bool found = fit->searched && i + 1 == fit->count;

        print_row(fit, &fit->rows[i], i == 0 ? "  (as recorded)" : found ? "  (searched)" : "");
    }
    (void)printf("%14s%14s%s  peak of requested bytes: no settings can need less\n",
                 cli_size_text(fit->floor).text, "", values->card > 0 ? "      " : "");
    if (values->card > 0) {
        print_verdict(fit);
    }
    if (tarn_replay_get_note(fit->replay, 0)) {
        (void)putchar('\n');
    }
    cli_replay_print_notes(fit->replay);
}

static enum cli_exit fit_run(const struct cli_call *call)
{
    const struct fit_values *values = call->values;
    const int device = values->device == UINT64_MAX ? -1 : (int)(values->device & INT32_MAX);
    static struct fit fit; /* large */
    struct tarn_error error;
    int code;
    struct tarn_replay *replay = cli_replay_load(call->command, call->arguments[0], device, &code);

    if (!replay) {
        return (enum cli_exit)code;
    }
    fit = (struct fit){.call = call, .replay = replay, .info.struct_size = sizeof fit.info};
    tarn_replay_get_info(replay, &fit.info);
    const enum tarn_status status = fit_find(&fit, &error);

    if (status) {
        code = (int)cli_fail_status(call->command, status, &error,
                                    status == TARN_ERR_CONFIG ? "--conf" : call->arguments[0]);
    } else {
        (values->json ? fit_json : fit_text)(&fit);
        code = code == CLI_EXIT_OK && values->card > 0 && !any_fits(&fit) ? CLI_EXIT_GATE : code;
    }
    tarn_replay_destroy(replay);
    return ferror(stdout) ? CLI_EXIT_IO : (enum cli_exit)code;
}

const struct cli_command cli_command_fit = {
    .name = "fit",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "find the smallest device that fits a recorded run",
    .details = "Replays the trace on devices of different sizes. If the run does not fit the\n"
               "device of --device, searches for settings under which it does, and exits with 1\n"
               "if there are none.\n",
    .examples = "tarn fit dump.pickle --device 80GB",
    .prints_sizes = true,
    .is_redirected = true,
    .opts = fit_opts,
    .values_size = sizeof(struct fit_values),
    .defaults = &fit_defaults,
    .run = fit_run,
};
