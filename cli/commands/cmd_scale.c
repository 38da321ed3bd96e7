/* SPDX-License-Identifier: MIT */
/* `tarn scale`: an estimate of the memory of a larger run. */
#include "card.h"
#include "escape.h"
#include "json_out.h"
#include "output.h"
#include "private_pools.h"
#include "replay_load.h"
#include "reserve_opt.h"
#include "select_opt.h"
#include "size_text.h"
#include "tarn/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCALE_RULES_MAX = 16,
    SCALE_FACTORS_MAX = 16, /* per rule */
    SCALE_NAME_MAX = 200
};

struct scale_values {
    struct cli_opt_texts factors;
    struct cli_opt_texts matches;
    const char *rules;
    const char *conf;
    uint64_t memory_limit;
    bool no_limit;
    const char *card;
    uint64_t reserve;
    const char *pools;
    uint64_t device;
    bool json;
};

static const struct scale_values scale_defaults = {.device = CLI_DEVICE_ALL,
                                                   .reserve = CLI_RESERVE_DEFAULT};

static const struct cli_opt scale_opts[] = {
    {.name = "factor",
     .kind = CLI_OPT_TEXTS,
     .at = offsetof(struct scale_values, factors),
     .value = "NAME=N[,N...]",
     .help =
         "scale requests: batch (allocated and freed within the trace, not by an optimizer), all, "
         "or a category, such as activation (default: batch=1.25,1.5,2)"},
    {.name = "match",
     .kind = CLI_OPT_TEXTS,
     .at = offsetof(struct scale_values, matches),
     .value = "REGEX=N[,N...]",
     .help = "scale requests with a frame whose function or file matches; overrides --factor"},
    {.name = "rules",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct scale_values, rules),
     .value = "FILE",
     .help = "rules of categories, lines \"category: pattern\""},
    {.name = "conf",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct scale_values, conf),
     .value = "SETTINGS",
     .help = "settings to replay under (default: the recorded settings)"},
    {.name = "memory-limit",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct scale_values, memory_limit),
     .value = "SIZE",
     .help = "limit of reserved memory (default: that of the recorded run, if found)"},
    {.name = "no-limit",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct scale_values, no_limit),
     .help = "no limit, even if the recorded run had one"},
    {.name = "card",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct scale_values, card),
     .value = "CARD",
     .help = "replay on a card, such as 80GB or H200, and find the largest factor that fits"},
    CLI_RESERVE_OPT(struct scale_values),
    {.name = "pools",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct scale_values, pools),
     .value = "N[,N...]",
     .help = "estimate N private pools like those recorded, such as of 30 captured batch sizes"},
    CLI_REPLAY_DEVICE_OPT(struct scale_values),
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct scale_values, json),
     .help = "print JSON"},
    {0},
};

static const struct cli_opt_renamed scale_renamed[] = {{"of-device", "--device"}, {0}};

struct scale_factors {
    double items[SCALE_FACTORS_MAX];
    int count;
};

struct scale_row {
    char name[SCALE_NAME_MAX];
    struct tarn_replay_result result;
    struct tarn_scale_info info; /* the first row selects nothing */
};

struct category_wanted {
    const struct tarn_categories *categories;
    const char *name;
};

struct scale {
    const struct cli_call *call;
    struct tarn_snapshot *snapshot;
    struct tarn_replay *replay;
    struct tarn_replay *last; /* the last scaled one, for its notes; NULL before */
    struct tarn_replay_options options;
    struct cli_cards cards;                  /* one or none */
    struct tarn_private_pools_result *pools; /* NULL: none are known */
    struct cli_pool_counts pool_counts;
    struct tarn_rules *category_rules;  /* NULL: the default ones */
    struct tarn_categories *categories; /* NULL: no rule uses any */
    struct tarn_scale_rule rules[SCALE_RULES_MAX];
    char patterns[SCALE_RULES_MAX][SCALE_NAME_MAX];
    struct category_wanted wanted[SCALE_RULES_MAX];
    struct scale_factors factors[SCALE_RULES_MAX];
    int rule_count;
    struct scale_row rows[SCALE_FACTORS_MAX + 1]; /* the first is the recorded run */
    int row_count;
    double largest; /* factor that fits the device; only with one */
};

/* ---- options ---- */

static bool factors_read(const char *text, struct scale_factors *factors)
{
    for (factors->count = 0; factors->count < SCALE_FACTORS_MAX;) {
        char *end;
        const double factor = strtod(text, &end);

        if (end == text || (*end != ',' && *end != '\0') ||
            !(factor >= 0x1p-10 && factor <= 0x1p10)) {
            return false;
        }
        factors->items[factors->count++] = factor;
        if (*end == '\0') {
            return true;
        }
        text = end + 1;
    }
    return false;
}

static enum tarn_scale_what rule_what(const char *name)
{
    return strcmp(name, "all") == 0     ? TARN_SCALE_ALL
           : strcmp(name, "batch") == 0 ? TARN_SCALE_BATCH
                                        : TARN_SCALE_CHOSEN;
}

/* Parses NAME=FACTORS at the last '=', because a pattern may contain one. */
static bool rule_read(struct scale *scale, const char *text, bool is_pattern)
{
    const char *equals = strrchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : 0;

    if (length == 0 || length >= SCALE_NAME_MAX || scale->rule_count == SCALE_RULES_MAX ||
        !factors_read(equals + 1, &scale->factors[scale->rule_count])) {
        return false;
    }
    struct tarn_scale_rule *rule = &scale->rules[scale->rule_count];
    char *name = scale->patterns[scale->rule_count];

    memcpy(name, text, length);
    name[length] = '\0';
    *rule = (struct tarn_scale_rule){.what = is_pattern ? TARN_SCALE_MATCH : rule_what(name),
                                     .pattern = name};
    scale->rule_count++;
    return true;
}

/* The rows: one for each factor of the longest list; shorter lists must have one factor. */
static bool rows_count(struct scale *scale)
{
    int most = 1;

    for (int i = 0; i < scale->rule_count; i++) {
        most = scale->factors[i].count > most ? scale->factors[i].count : most;
    }
    for (int i = 0; i < scale->rule_count; i++) {
        if (scale->factors[i].count != most && scale->factors[i].count != 1) {
            return false;
        }
    }
    scale->row_count = most + 1;
    return true;
}

static enum cli_exit rules_read(struct scale *scale)
{
    const struct scale_values *values = scale->call->values;
    const bool is_default = values->factors.count == 0 && values->matches.count == 0;

    for (int i = 0; i < values->matches.count; i++) {
        if (!rule_read(scale, values->matches.items[i], true)) {
            return cli_fail(scale->call->command, CLI_EXIT_USAGE,
                            "--match takes REGEX=N, N from 1/1024 to 1024, not '%s'",
                            cli_escaped(values->matches.items[i]).text);
        }
    }
    for (int i = 0; i < values->factors.count; i++) {
        if (!rule_read(scale, values->factors.items[i], false)) {
            return cli_fail(scale->call->command, CLI_EXIT_USAGE,
                            "--factor takes NAME=N (batch, all or a category), N from 1/1024 to "
                            "1024, not '%s'",
                            values->factors.items[i]);
        }
    }
    if (is_default && !rule_read(scale, "batch=1.25,1.5,2", false)) {
        return CLI_EXIT_USAGE;
    }
    return rows_count(scale) ? CLI_EXIT_OK
                             : cli_fail(scale->call->command, CLI_EXIT_USAGE,
                                        "lists of factors must have equal lengths, or "
                                        "one");
}

/* ---- categories ---- */

static bool category_chooses(void *context, uint64_t entry)
{
    const struct category_wanted *wanted = context;
    const char *name = tarn_categories_get(wanted->categories, entry);

    return name && strcmp(name, wanted->name) == 0;
}

/* Connects the rules of categories to the categories. */
static enum cli_exit categories_find(struct scale *scale, int device)
{
    const struct cli_command *command = scale->call->command;
    struct tarn_error error;

    for (int i = 0; i < scale->rule_count; i++) {
        struct tarn_scale_rule *rule = &scale->rules[i];

        if (rule->what != TARN_SCALE_CHOSEN) {
            continue;
        }
        const enum tarn_status status =
            scale->categories
                ? TARN_OK
                : tarn_categories_create(scale->snapshot, device, scale->category_rules,
                                         &scale->categories, &error);

        if (status) {
            return cli_fail_status(command, status, &error, scale->call->arguments[0]);
        }
        if (!tarn_categories_have(scale->categories, rule->pattern)) {
            return cli_fail(command, CLI_EXIT_USAGE,
                            "unknown category \"%s\": --factor takes batch, all, or a category "
                            "that \"tarn top --by category\" lists",
                            cli_escaped(rule->pattern).text);
        }
        scale->wanted[i] = (struct category_wanted){scale->categories, rule->pattern};
        rule->chooses = category_chooses;
        rule->context = &scale->wanted[i];
    }
    return CLI_EXIT_OK;
}

/* ---- replays ---- */

static double row_factor(const struct scale *scale, int rule, int row)
{
    const struct scale_factors *factors = &scale->factors[rule];

    return factors->items[factors->count == 1 ? 0 : row - 1];
}

static void row_name(const struct scale *scale, int row, char *name)
{
    char plain[SCALE_NAME_MAX] = "";
    size_t used = 0;

    for (int i = 0; i < scale->rule_count && used < SCALE_NAME_MAX; i++) {
        used += (size_t)snprintf(plain + used, SCALE_NAME_MAX - used, "%s%s=%.6g", i ? ", " : "",
                                 scale->patterns[i], row_factor(scale, i, row));
    }
    (void)tarn_text_escape(plain, strlen(plain), TARN_TEXT_PLAIN, name, SCALE_NAME_MAX);
}

static enum tarn_status row_run(struct scale *scale, int index, struct tarn_error *error)
{
    struct scale_row *row = &scale->rows[index];
    enum tarn_status status = TARN_OK;

    row->result.struct_size = sizeof row->result;
    row->info.struct_size = sizeof row->info;
    if (index == 0) {
        (void)snprintf(row->name, sizeof row->name, "as recorded");
        return tarn_replay_run(scale->replay, &scale->options, &row->result, error);
    }
    row_name(scale, index, row->name);
    for (int i = 0; i < scale->rule_count; i++) {
        scale->rules[i].factor = row_factor(scale, i, index);
    }
    tarn_replay_destroy(scale->last);
    scale->last = NULL;
    status = tarn_replay_scale(scale->replay, scale->snapshot, scale->rules,
                               (size_t)scale->rule_count, &scale->last, &row->info, error);
    return status ? status : tarn_replay_run(scale->last, &scale->options, &row->result, error);
}

static enum tarn_status scale_find(struct scale *scale, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    for (int i = 0; i < scale->row_count && status == TARN_OK; i++) {
        status = row_run(scale, i, error);
    }
    if (status == TARN_OK && scale->cards.count > 0) {
        status = tarn_replay_scale_largest(scale->replay, scale->snapshot, scale->rules,
                                           (size_t)scale->rule_count, &scale->options,
                                           &scale->largest, error);
    }
    return status;
}

/* ---- output ---- */

static uint64_t row_peak(const struct scale_row *row, enum tarn_stat_kind kind)
{
    return (uint64_t)row->result.stats.by_pool[kind][TARN_STAT_ALL].peak;
}

static void factor_json(struct cli_json *json, const char *key, double factor)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%.10g", factor);
    cli_json_text(json, key, text);
}

static void row_json(struct cli_json *json, const struct scale_row *row)
{
    cli_json_open_object(json, NULL);
    cli_json_text(json, "scale", row->name);
    cli_json_number(json, "requests_scaled", row->info.selected);
    cli_json_number(json, "bytes_scaled", row->info.bytes_selected);
    cli_json_number(json, "peak_reserved", row_peak(row, TARN_STAT_RESERVED_BYTES));
    cli_json_number(json, "peak_allocated", row_peak(row, TARN_STAT_ALLOCATED_BYTES));
    cli_json_number(json, "peak_requested", row_peak(row, TARN_STAT_REQUESTED_BYTES));
    cli_json_signed(json, "num_ooms", row->result.stats.num_ooms);
    cli_json_signed(json, "first_oom_event", row->result.first_oom);
    cli_json_close(json);
}

static void notes_json(struct cli_json *json, const struct tarn_replay *replay)
{
    const char *note;

    cli_json_open_array(json, "notes");
    for (size_t i = 0; (note = tarn_replay_get_note(replay, i)) != NULL; i++) {
        cli_json_text(json, NULL, note);
    }
    cli_json_close(json);
}

static void scale_json(const struct scale *scale)
{
    const struct scale_values *values = scale->call->values;
    struct cli_json json;

    cli_json_begin(&json, stdout, "tarn.scale/1", false);
    cli_json_bool(&json, "estimate", true);
    cli_json_text(&json, "conf", scale->options.conf);
    cli_json_open_array(&json, "rows");
    for (int i = 0; i < scale->row_count; i++) {
        row_json(&json, &scale->rows[i]);
    }
    cli_json_close(&json);
    if (scale->cards.count > 0) {
        cli_json_text(&json, "card", scale->cards.items[0].name);
        cli_json_number(&json, "card_bytes", scale->cards.items[0].bytes);
        cli_json_number(&json, "reserve", values->reserve);
        factor_json(&json, "largest_factor", scale->largest);
    }
    cli_private_pools_json(&json, scale->pools);
    if (scale->pool_counts.count > 0) {
        cli_pool_counts_json(&json, &scale->pool_counts, scale->pools);
    }
    notes_json(&json, scale->last);
    cli_json_end(&json);
}

static void row_text(const struct scale *scale, int index, int width)
{
    const struct scale_row *row = &scale->rows[index];
    const uint64_t reserved = row_peak(row, TARN_STAT_RESERVED_BYTES);
    const uint64_t recorded = row_peak(&scale->rows[0], TARN_STAT_RESERVED_BYTES);

    (void)printf("%-*s%10" PRIu64, width, row->name, row->info.selected);
    (void)printf("%15s", cli_size_text(reserved).text);
    (void)printf("%16s", cli_size_text(row_peak(row, TARN_STAT_ALLOCATED_BYTES)).text);
    (void)printf("%9.2f%6" PRId64, recorded ? (double)reserved / (double)recorded : 1.0,
                 row->result.stats.num_ooms);
    if (row->result.first_oom >= 0) {
        (void)printf("  first at event %" PRId64, row->result.first_oom);
    }
    (void)putchar('\n');
}

static void print_largest(const struct scale *scale)
{
    const struct scale_values *values = scale->call->values;

    const struct cli_card *card = &scale->cards.items[0];

    (void)printf("\n%s", card->name);
    if (card->is_known) {
        (void)printf(" (%s)", cli_size_text(card->bytes).text);
    }
    (void)printf(", of which CUDA, its libraries and NCCL take %s (--reserve):\n",
                 cli_size_text(values->reserve).text);
    if (scale->largest == 0) {
        (void)printf("the run does not fit, however small the scaled requests are\n");
    } else if (scale->largest >= 0x1p10) {
        (void)printf("the run fits, however large the scaled requests are\n");
    } else {
        (void)printf("the largest factor that fits is about %.2f\n", scale->largest);
    }
}

static void scale_text(const struct scale *scale)
{
    int width = 13;

    for (int i = 0; i < scale->row_count; i++) {
        const int length = (int)strlen(scale->rows[i].name);

        width = length + 2 > width ? length + 2 : width;
    }
    cli_put_escaped(stdout, scale->call->arguments[0]);
    (void)fputs(": an ESTIMATE of a larger run, with settings ", stdout);
    cli_put_escaped(stdout, cli_conf_name(scale->options.conf));
    (void)fputs("\n\n", stdout);
    (void)printf("%s%-*s%10s%15s%16s%9s%6s%s\n",
                 cli_terminal_style(scale->call->terminal, CLI_STYLE_BOLD), width, "requests",
                 "scaled", "peak reserved", "peak allocated", "times", "OOMs",
                 cli_terminal_style(scale->call->terminal, CLI_STYLE_PLAIN));
    for (int i = 0; i < scale->row_count; i++) {
        row_text(scale, i, width);
    }
    if (scale->cards.count > 0) {
        print_largest(scale);
    }
    cli_private_pools_print(scale->pools);
    if (scale->pool_counts.count > 0) {
        cli_pool_counts_print(&scale->pool_counts, scale->pools, scale->options.device_total);
    }
    (void)putchar('\n');
    cli_replay_print_notes(scale->last);
}

/* ---- running ---- */

static enum cli_exit card_read(struct scale *scale)
{
    const struct scale_values *values = scale->call->values;
    char error[CLI_OPT_ERROR_MAX];

    if (!values->card) {
        return CLI_EXIT_OK;
    }
    if (!cli_cards_read(&scale->cards, values->card, error, (int)sizeof error)) {
        return cli_fail(scale->call->command, CLI_EXIT_USAGE, "option --card: %s", error);
    }
    if (scale->cards.count > 1) {
        return cli_fail(scale->call->command, CLI_EXIT_USAGE,
                        "--card takes one card here; \"tarn fit\" compares several");
    }
    return scale->cards.items[0].bytes > values->reserve
               ? CLI_EXIT_OK
               : cli_fail(scale->call->command, CLI_EXIT_USAGE,
                          "--reserve leaves nothing of --card");
}

static void scale_options(struct scale *scale, const struct tarn_replay_info *info)
{
    const struct scale_values *values = scale->call->values;

    scale->options = (struct tarn_replay_options){
        .struct_size = sizeof scale->options,
        .conf = values->conf ? values->conf : info->conf,
        .memory_limit = values->no_limit ? UINT64_MAX : values->memory_limit,
        .device_total = scale->cards.count > 0 ? scale->cards.items[0].bytes - values->reserve : 0,
    };
}

static enum cli_exit pools_find(struct scale *scale, int device)
{
    const struct cli_call *call = scale->call;
    const struct scale_values *values = call->values;
    struct tarn_error error;
    const enum tarn_status status =
        cli_private_pools_find(scale->snapshot, device, &scale->pools, &error);

    if (status) {
        return cli_fail_status(call->command, status, &error, NULL);
    }
    if (!values->pools || (scale->pools && scale->pools->pool_count > 0)) {
        return CLI_EXIT_OK;
    }
    return cli_fail(call->command, CLI_EXIT_USAGE,
                    "--pools: %s shows no private pool of device %d; take a snapshot while the "
                    "captured graphs are alive",
                    cli_escaped(call->arguments[0]).text, device);
}

static enum cli_exit scale_snapshot(struct scale *scale)
{
    const struct cli_call *call = scale->call;
    const struct scale_values *values = call->values;
    struct tarn_replay_info info = {.struct_size = sizeof info};
    struct tarn_error error;
    int failed;

    scale->replay = cli_replay_create(call->command, scale->snapshot, call->arguments[0],
                                      values->device, &failed);
    if (!scale->replay) {
        return (enum cli_exit)failed;
    }
    tarn_replay_get_info(scale->replay, &info);
    scale_options(scale, &info);
    enum cli_exit code = categories_find(scale, info.device);

    code = code == CLI_EXIT_OK ? pools_find(scale, info.device) : code;
    if (code == CLI_EXIT_OK) {
        const enum tarn_status status = scale_find(scale, &error);

        if (status) {
            code = cli_fail_status(call->command, status, &error,
                                   status == TARN_ERR_CONFIG ? "--conf" : NULL);
        } else {
            (values->json ? scale_json : scale_text)(scale);
        }
    }
    tarn_replay_destroy(scale->last);
    tarn_replay_destroy(scale->replay);
    return code;
}

static enum cli_exit scale_run(const struct cli_call *call)
{
    static struct scale scale; /* large */
    const struct scale_values *values = call->values;
    int code = CLI_EXIT_OK;

    scale = (struct scale){.call = call};
    enum cli_exit found = cli_rules_load(call->command, values->rules, &scale.category_rules);

    found = found == CLI_EXIT_OK ? rules_read(&scale) : found;
    found = found == CLI_EXIT_OK ? card_read(&scale) : found;
    if (found == CLI_EXIT_OK && values->pools &&
        !cli_pool_counts_read(&scale.pool_counts, values->pools)) {
        found = cli_fail(call->command, CLI_EXIT_USAGE,
                         "--pools takes N[,N...], at most %d numbers from 1 to %d, not '%s'",
                         CLI_POOL_COUNTS_MAX, CLI_POOL_COUNT_MAX, cli_escaped(values->pools).text);
    }
    if (found == CLI_EXIT_OK) {
        scale.snapshot = cli_load_recording(call->command, call->arguments[0], &code);
        found = scale.snapshot ? scale_snapshot(&scale) : CLI_EXIT_OK;
    }
    tarn_report_destroy(scale.pools);
    tarn_categories_destroy(scale.categories);
    tarn_rules_destroy(scale.category_rules);
    tarn_snapshot_destroy(scale.snapshot);
    found = found == CLI_EXIT_OK && ferror(stdout) ? CLI_EXIT_IO : found;
    return code != CLI_EXIT_OK ? (enum cli_exit)code : found;
}

const struct cli_command cli_command_scale = {
    .name = "scale",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "estimate the memory of a recorded run with a larger batch",
    .details = "Multiplies the sizes of selected requests and replays the trace. The result is\n"
               "an estimate: a larger run may use other algorithms and workspaces.\n"
               "--pools multiplies private pools instead, as captured CUDA graphs have them.\n",
    .examples = "tarn scale dump.pickle --factor batch=1.5,2,4\n"
                "tarn scale dump.pickle --factor activation=2\n"
                "tarn scale dump.pickle --match 'attention=2' --card 80GB\n"
                "tarn scale dump.pickle --pools 30 --card 80GB",
    .prints_sizes = true,
    .folds_lines = true,
    .is_redirected = true,
    .opts = scale_opts,
    .renamed = scale_renamed,
    .values_size = sizeof(struct scale_values),
    .defaults = &scale_defaults,
    .run = scale_run,
};
