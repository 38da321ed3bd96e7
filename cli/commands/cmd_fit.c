/* SPDX-License-Identifier: MIT */
/* `tarn fit`: the smallest device that fits a recorded run. */
#include "card.h"
#include "device_opt.h"
#include "escape.h"
#include "json_out.h"
#include "page_cost.h"
#include "private_pools.h"
#include "replay_load.h"
#include "reserve_opt.h"
#include "size_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct fit_values {
    struct cli_opt_texts conf;
    struct cli_opt_texts cards;
    uint64_t device;
    uint64_t reserve;
    bool json;
};

static const struct fit_values fit_defaults = {.device = CLI_DEVICE_ALL,
                                               .reserve = CLI_RESERVE_DEFAULT};

static const struct cli_opt fit_opts[] = {
    {.name = "card",
     .kind = CLI_OPT_TEXTS,
     .at = offsetof(struct fit_values, cards),
     .value = "CARD[,CARD...]",
     .help = "check whether the run fits: sizes, such as 24G or 80GB, or GPUs, such as H200, "
             "A100-80GB or RTX 4090"},
    CLI_RESERVE_OPT(struct fit_values),
    {.name = "conf",
     .kind = CLI_OPT_TEXTS,
     .at = offsetof(struct fit_values, conf),
     .value = "SETTINGS",
     .help = "settings to try besides the recorded ones, the defaults, expandable segments and "
             "policy:compact"},
    CLI_REPLAY_DEVICE_OPT(struct fit_values),
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct fit_values, json),
     .help = "print JSON"},
    {0},
};

static const struct cli_opt_renamed fit_renamed[] = {{"of-device", "--device"}, {0}};

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
    struct tarn_replay *replay;
    struct tarn_replay_info info;
    struct tarn_private_pools_result *pools; /* NULL: none are known */
    struct cli_cards cards;
    uint64_t floor; /* peak requested bytes */
    struct fit_row rows[FIT_ROWS_MAX];
    int count;
    struct cli_compact_run compact; /* on the smallest device for that policy */
    uint64_t compact_capacity;
    bool searched; /* the last row was found by a search */
};

/* Bytes of the card that the allocator can have. */
static uint64_t card_room(const struct fit *fit, const struct cli_card *card)
{
    const struct fit_values *values = fit->call->values;

    return card->bytes > values->reserve ? card->bytes - values->reserve : 0;
}

/* The first settings that fit the card, else those that need least. */
static const struct fit_row *row_for(const struct fit *fit, const struct cli_card *card)
{
    const struct fit_row *least = &fit->rows[0];

    for (int i = 0; i < fit->count; i++) {
        if (fit->rows[i].capacity <= card_room(fit, card)) {
            return &fit->rows[i];
        }
        least = fit->rows[i].capacity < least->capacity ? &fit->rows[i] : least;
    }
    return least;
}

static bool card_fits(const struct fit *fit, const struct cli_card *card)
{
    return row_for(fit, card)->capacity <= card_room(fit, card);
}

static int cards_that_fit(const struct fit *fit)
{
    int count = 0;

    for (int i = 0; i < fit->cards.count; i++) {
        count += card_fits(fit, &fit->cards.items[i]);
    }
    return count;
}

/* ---- search ---- */

/* The row of these settings; NULL if there is none. */
static const struct fit_row *fit_row_of(const struct fit *fit, const char *conf)
{
    for (int i = 0; i < fit->count; i++) {
        if (strcmp(fit->rows[i].conf, conf) == 0) {
            return &fit->rows[i];
        }
    }
    return NULL;
}

static enum tarn_status fit_add(struct fit *fit, const char *conf, struct tarn_error *error)
{
    struct fit_row *row = &fit->rows[fit->count];

    if (fit_row_of(fit, conf)) {
        return TARN_OK;
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

/* What moving pages costs where it counts most: on the smallest device that it makes enough. */
static enum tarn_status fit_compact(struct fit *fit, struct tarn_error *error)
{
    const enum tarn_status status = fit_add(fit, CLI_COMPACT, error);
    const struct fit_row *row = fit_row_of(fit, CLI_COMPACT);

    if (status || !row) {
        return status;
    }
    fit->compact_capacity = row->capacity;
    const struct tarn_replay_options options = {.memory_limit = UINT64_MAX,
                                                .device_total = fit->compact_capacity};

    return cli_compact_run_add(&fit->compact, fit->replay, &options, error);
}

/* If none of the given settings fit a card, searches for others. */
static enum tarn_status fit_search(struct fit *fit, struct tarn_error *error)
{
    const struct tarn_tune_options options = {
        .struct_size = sizeof options, .goal = TARN_TUNE_CAPACITY, .tries = FIT_SEARCH_TRIES};
    static struct tarn_tune_row rows[2];
    const struct tarn_replay *replay = fit->replay;
    size_t count = 0;
    const enum tarn_status status = tarn_replay_tune(&replay, 1, &options, rows, 2, &count, error);

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
    status = status ? status : fit_compact(fit, error);
    for (int i = 0; i < values->conf.count && status == TARN_OK; i++) {
        status = fit_add(fit, values->conf.items[i], error);
    }
    return status == TARN_OK && cards_that_fit(fit) < fit->cards.count ? fit_search(fit, error)
                                                                       : status;
}

/* ---- JSON ---- */

static void row_json(struct cli_json *json, const struct fit *fit, const struct fit_row *row)
{
    cli_json_open_object(json, NULL);
    cli_json_text(json, "conf", row->conf);
    cli_json_number(json, "capacity", row->capacity);
    cli_json_open_array(json, "fits");
    for (int i = 0; i < fit->cards.count; i++) {
        cli_json_bool(json, NULL, row->capacity <= card_room(fit, &fit->cards.items[i]));
    }
    cli_json_close(json);
    cli_json_close(json);
}

static void card_json(struct cli_json *json, const struct fit *fit, const struct cli_card *card)
{
    const struct fit_row *row = row_for(fit, card);
    const uint64_t room = card_room(fit, card);

    cli_json_open_object(json, NULL);
    cli_json_text(json, "card", card->name);
    cli_json_number(json, "bytes", card->bytes);
    cli_json_bool(json, "fits", row->capacity <= room);
    cli_json_text(json, "conf", row->conf);
    cli_json_number(json, "free", row->capacity <= room ? room - row->capacity : 0);
    cli_json_number(json, "missing", row->capacity <= room ? 0 : row->capacity - room);
    cli_json_close(json);
}

static void fit_json(const struct fit *fit)
{
    const struct fit_values *values = fit->call->values;
    struct cli_json json;
    const char *note;

    cli_json_begin(&json, stdout, "tarn.fit/1", false);
    cli_json_number(&json, "floor", fit->floor);
    cli_json_open_array(&json, "settings");
    for (int i = 0; i < fit->count; i++) {
        row_json(&json, fit, &fit->rows[i]);
    }
    cli_json_close(&json);
    cli_compact_run_json(&json, &fit->compact);
    cli_json_number(&json, "reserve", values->reserve);
    cli_json_open_array(&json, "cards");
    for (int i = 0; i < fit->cards.count; i++) {
        card_json(&json, fit, &fit->cards.items[i]);
    }
    cli_json_close(&json);
    cli_private_pools_json(&json, fit->pools);
    cli_json_open_array(&json, "notes");
    for (size_t i = 0; (note = tarn_replay_get_note(fit->replay, i)) != NULL; i++) {
        cli_json_text(&json, NULL, note);
    }
    cli_json_end(&json);
}

/* ---- text ---- */

/* Width of a card's column: its name after two blanks. */
static int card_width(const struct cli_card *card)
{
    const int length = (int)strlen(card->name);

    return 2 + (length > 3 ? length : 3);
}

static void print_row(const struct fit *fit, const struct fit_row *row, const char *what)
{
    (void)printf("%14s", cli_size_text(row->capacity).text);
    (void)printf("%14s",
                 cli_size_text(row->capacity > fit->floor ? row->capacity - fit->floor : 0).text);
    for (int i = 0; i < fit->cards.count; i++) {
        const struct cli_card *card = &fit->cards.items[i];

        (void)printf("%*s", card_width(card), row->capacity <= card_room(fit, card) ? "yes" : "no");
    }
    (void)printf("  %s%s\n", cli_conf_name(row->conf), what);
}

static void print_card(const struct fit *fit, const struct cli_card *card)
{
    const struct fit_row *row = row_for(fit, card);
    const uint64_t room = card_room(fit, card);

    (void)printf("%s", card->name);
    if (card->is_known) {
        (void)printf(" (%s)", cli_size_text(card->bytes).text);
    }
    if (row->capacity <= room) {
        (void)printf(": yes, and %s stay free", cli_size_text(room - row->capacity).text);
    } else {
        (void)printf(": no, %s are missing", cli_size_text(row->capacity - room).text);
    }
    (void)printf(", with settings %s\n", cli_conf_name(row->conf));
}

static void print_cards(const struct fit *fit)
{
    const struct fit_values *values = fit->call->values;

    (void)putchar('\n');
    for (int i = 0; i < fit->cards.count; i++) {
        print_card(fit, &fit->cards.items[i]);
    }
    (void)printf("of %s %s are taken off for CUDA, its libraries and NCCL (--reserve)\n",
                 fit->cards.count == 1 ? "the card" : "each card",
                 cli_size_text(values->reserve).text);
}

static void fit_text(const struct fit *fit)
{
    int width = 0;

    cli_put_escaped(stdout, fit->call->arguments[0]);
    (void)printf(": %" PRIu64 " events of device %d; smallest device memory that fits the whole "
                 "trace\n\n",
                 fit->info.entries, fit->info.device);
    (void)printf("%s%14s%14s", cli_terminal_style(fit->call->terminal, CLI_STYLE_BOLD), "needed",
                 "above floor");
    for (int i = 0; i < fit->cards.count; i++) {
        const struct cli_card *card = &fit->cards.items[i];

        (void)printf("%*s", card_width(card), card->name);
        width += card_width(card);
    }
    (void)printf("%s\n", cli_terminal_style(fit->call->terminal, CLI_STYLE_PLAIN));
    for (int i = 0; i < fit->count; i++) {
        const bool found = fit->searched && i + 1 == fit->count;

        print_row(fit, &fit->rows[i], i == 0 ? "  (as recorded)" : found ? "  (searched)" : "");
    }
    (void)printf("%14s%*s  peak of requested bytes: no settings can need less\n",
                 cli_size_text(fit->floor).text, 14 + width, "");
    (void)printf("\n%s on %s: ", CLI_COMPACT, cli_size_text(fit->compact_capacity).text);
    cli_page_cost_print(&fit->compact.cost);
    if (fit->cards.count > 0) {
        print_cards(fit);
    }
    cli_private_pools_print(fit->pools);
    if (tarn_replay_get_note(fit->replay, 0)) {
        (void)putchar('\n');
    }
    cli_replay_print_notes(fit->replay);
}

/* ---- running ---- */

static enum cli_exit cards_read(const struct cli_call *call, struct cli_cards *cards)
{
    const struct fit_values *values = call->values;
    char error[CLI_OPT_ERROR_MAX];

    *cards = (struct cli_cards){.count = 0};
    for (int i = 0; i < values->cards.count; i++) {
        if (!cli_cards_read(cards, values->cards.items[i], error, (int)sizeof error)) {
            return cli_fail(call->command, CLI_EXIT_USAGE, "option --card: %s", error);
        }
    }
    return CLI_EXIT_OK;
}

/* Both of the file: its replay, and its private pools. */
static enum cli_exit fit_load(struct fit *fit)
{
    const struct cli_call *call = fit->call;
    const struct fit_values *values = call->values;
    struct tarn_error error;
    int code = CLI_EXIT_OK;
    struct tarn_snapshot *snapshot = cli_load_recording(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    fit->replay =
        cli_replay_create(call->command, snapshot, call->arguments[0], values->device, &code);
    if (fit->replay) {
        tarn_replay_get_info(fit->replay, &fit->info);
        const enum tarn_status status =
            cli_private_pools_find(snapshot, fit->info.device, &fit->pools, &error);

        code = status ? (int)cli_fail_status(call->command, status, &error, NULL) : code;
    }
    tarn_snapshot_destroy(snapshot);
    return (enum cli_exit)code;
}

static enum cli_exit fit_run(const struct cli_call *call)
{
    const struct fit_values *values = call->values;
    static struct fit fit; /* large */
    struct tarn_error error;

    fit = (struct fit){.call = call, .info.struct_size = sizeof fit.info};
    int code = (int)cards_read(call, &fit.cards);

    if (code) {
        return (enum cli_exit)code;
    }
    code = (int)fit_load(&fit);
    if (!fit.replay || (code != CLI_EXIT_OK && code != CLI_EXIT_TRUNCATED)) {
        goto out;
    }
    const enum tarn_status status = fit_find(&fit, &error);

    if (status) {
        code = (int)cli_fail_status(call->command, status, &error,
                                    status == TARN_ERR_CONFIG ? "--conf" : call->arguments[0]);
    } else {
        (values->json ? fit_json : fit_text)(&fit);
        code = code == CLI_EXIT_OK && fit.cards.count > 0 && cards_that_fit(&fit) == 0
                   ? CLI_EXIT_GATE
                   : code;
    }
out:
    tarn_report_destroy(fit.pools);
    tarn_replay_destroy(fit.replay);
    return ferror(stdout) ? CLI_EXIT_IO : (enum cli_exit)code;
}

const struct cli_command cli_command_fit = {
    .name = "fit",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "find the smallest device that fits a recorded run",
    .details = "Replays the trace on devices of different sizes. If the run does not fit a card\n"
               "of --card, searches for settings under which it does; if it fits none of the\n"
               "cards, exits with 1. Of a card 1.25 GiB are taken off: PyTorch 2.11 on an H200\n"
               "used 0.69 GiB for CUDA and its libraries, and 0.54 GiB more with NCCL.\n"
               "Private pools, of CUDA graphs and MemPools, are listed with what they hold.\n",
    .examples = "tarn fit dump.pickle --card 80GB\n"
                "tarn fit dump.pickle --card 24G,A100-40GB,H200",
    .prints_sizes = true,
    .folds_lines = true,
    .is_redirected = true,
    .opts = fit_opts,
    .renamed = fit_renamed,
    .values_size = sizeof(struct fit_values),
    .defaults = &fit_defaults,
    .run = fit_run,
};
