/* SPDX-License-Identifier: MIT */
#include "trace_run.h"

#include "line_fold.h"
#include "output.h"
#include "report_run.h"
#include "size_text.h"
#include "tarn/replay.h"

#include <string.h>

const struct cli_trace_values cli_trace_defaults = {.select = CLI_SELECT_DEFAULTS, .min_share = 1};

#define ROWS_OPT   CLI_ROWS_OPT(struct cli_trace_values)
#define JSON_OPT   CLI_JSON_OPT(struct cli_trace_values)
#define FORM_OPTS  CLI_FORM_OPTS(struct cli_trace_values)
#define OUTPUT_OPT CLI_OUTPUT_OPT(struct cli_trace_values)

/* Of reports on a whole trace. */
#define RUN_OPTS                                                                                   \
    CLI_SELECT_WHICH_OPTS(struct cli_trace_values),                                                \
        CLI_SELECT_FRAME_OPTS(struct cli_trace_values),                                            \
        CLI_SELECT_BY_OPT(struct cli_trace_values), CLI_SELECT_RULES_OPT(struct cli_trace_values)

/* In the order of enum tarn_top_order. */
static const char *const orders[] = {"peak", "end", "requested", "count", NULL};

const struct cli_opt cli_trace_opts[] = {
    CLI_SELECT_OPTS(struct cli_trace_values), ROWS_OPT, JSON_OPT, FORM_OPTS, OUTPUT_OPT, {0}};

const struct cli_opt cli_tree_opts[] = {CLI_SELECT_OPTS(struct cli_trace_values),
                                        CLI_TREE_OPTS(struct cli_trace_values),
                                        ROWS_OPT,
                                        JSON_OPT,
                                        FORM_OPTS,
                                        OUTPUT_OPT,
                                        {0}};

const struct cli_opt cli_info_opts[] = {CLI_SELECT_WHICH_OPTS(struct cli_trace_values),
                                        CLI_SELECT_FRAME_OPTS(struct cli_trace_values),
                                        CLI_SELECT_RULES_OPT(struct cli_trace_values),
                                        JSON_OPT,
                                        OUTPUT_OPT,
                                        {0}};

const struct cli_opt cli_churn_opts[] = {
    RUN_OPTS,
    {.name = "max-lifetime",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, max_lifetime),
     .value = "N",
     .help = "longest lifetime to count, in events (default: 64)"},
    ROWS_OPT,
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_leaks_opts[] = {
    RUN_OPTS,
    {.name = "steps",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, steps),
     .value = "N",
     .help = "compare at the ends of N equal parts of the trace"},
    {.name = "suppressions",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_trace_values, suppressions),
     .value = "FILE",
     .help = "stacks to ignore, lines \"leak:pattern\""},
    {.name = "fail",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_trace_values, fail),
     .help = "exit with 1 if something leaks"},
    ROWS_OPT,
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_steps_opts[] = {
    CLI_SELECT_WHICH_OPTS(struct cli_trace_values),
    CLI_SELECT_FRAME_OPTS(struct cli_trace_values),
    CLI_SELECT_RULES_OPT(struct cli_trace_values),
    {.name = "parts",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, steps),
     .value = "N",
     .help = "show N equal parts of the trace instead of steps"},
    {.name = "rows",
     .letter = 'n',
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, rows),
     .value = "N",
     .help = "only the N steps of highest peak (default: all); the rest is summed in one more row"},
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_oom_opts[] = {
    CLI_SELECT_OPTS(struct cli_trace_values),
    {.name = "device-total",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct cli_trace_values, device_total),
     .value = "SIZE",
     .help = "memory of the device, which snapshots do not record"},
    {.name = "remedies",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_trace_values, remedies),
     .help = "try settings also on a trace of more than 500,000 events"},
    ROWS_OPT,
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_top_opts[] = {CLI_SELECT_OPTS(struct cli_trace_values),
                                       {.name = "sort",
                                        .kind = CLI_OPT_CHOICE,
                                        .at = offsetof(struct cli_trace_values, order),
                                        .choices = orders,
                                        .help = "sort order of the rows (default: peak)"},
                                       CLI_TREE_OPTS(struct cli_trace_values),
                                       ROWS_OPT,
                                       JSON_OPT,
                                       FORM_OPTS,
                                       OUTPUT_OPT,
                                       {0}};

enum {
    HINT_MAX = 512,
    CONF_MAX = 4096
};

/* Replays the run with these settings added, on a device of `capacity` bytes. */
static enum tarn_answer replay_answer(const struct tarn_replay *replay, uint64_t entry,
                                      uint64_t capacity, const char *settings)
{
    struct tarn_replay_info info = {.struct_size = sizeof info};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay_options options = {.struct_size = sizeof options, .entries = entry + 1};
    char conf[CONF_MAX];

    tarn_replay_get_info(replay, &info);
    if (info.memory_limit == 0) { /* else it has what the recorded run had */
        options.device_total = capacity;
    }
    const int length =
        snprintf(conf, sizeof conf, "%s%s%s", info.conf, info.conf[0] ? "," : "", settings);

    options.conf = conf;
    if (length >= CONF_MAX || (capacity == 0 && info.memory_limit == 0) ||
        tarn_replay_run(replay, &options, &result, NULL)) {
        return TARN_ANSWER_UNKNOWN;
    }
    return result.first_oom < 0 || (uint64_t)result.first_oom > entry ? TARN_ANSWER_YES
                                                                      : TARN_ANSWER_NO;
}

/* The replay that answers questions of a report; finding what the file does not say takes long. */
struct answering {
    const struct tarn_snapshot *snapshot;
    struct tarn_replay *replay; /* of `device`, NULL: none */
    int device;
    bool tries_all; /* settings on long traces as well */
};

static const struct tarn_replay *replay_get(struct answering *answering, int device)
{
    if (answering->replay && answering->device == device) {
        return answering->replay;
    }
    tarn_replay_destroy(answering->replay);
    answering->replay = NULL;
    answering->device = device;
    return tarn_replay_create(answering->snapshot, device, &answering->replay, NULL)
               ? NULL
               : answering->replay;
}

static enum tarn_answer would_fit(void *context, int device, uint64_t entry, uint64_t capacity,
                                  const char *settings)
{
    const struct tarn_replay *replay = replay_get(context, device);

    return replay ? replay_answer(replay, entry, capacity, settings) : TARN_ANSWER_UNKNOWN;
}

/* ---- what would have helped ---- */

enum {
    SINGLES_MAX = 64, /* more than there are single settings */
    SEARCH_TRIES = 60,
    TRIED_EVENTS_MAX = 500 * 1000
};

/* Whether both set the same option, to whatever value. */
static bool is_same_option(const char *left, const char *right)
{
    const size_t length = strcspn(left, ":");

    return length == strcspn(right, ":") && memcmp(left, right, length) == 0;
}

/* Adds settings under which nothing fails, least memory first, the best value of each option. */
static size_t remedy_add(struct tarn_oom_remedy *remedies, size_t count, size_t most,
                         const struct tarn_tune_row *row, uint64_t memory)
{
    size_t at = 0;

    if (row->ooms > 0 || strlen(row->conf) >= TARN_OOM_CONF_MAX) {
        return count;
    }
    while (at < count && remedies[at].peak_reserved <= row->peak_reserved &&
           !is_same_option(remedies[at].conf, row->conf)) {
        at++;
    }
    if (at < count && remedies[at].peak_reserved <= row->peak_reserved) {
        return count;
    }
    size_t end = at; /* what goes: a worse value of the option, or the last one */

    while (end < count && !is_same_option(remedies[end].conf, row->conf)) {
        end++;
    }
    if (end == most) {
        end--;
    }
    if (at >= most) {
        return count;
    }
    memmove(&remedies[at + 1], &remedies[at], (end - at) * sizeof *remedies);
    remedies[at] = (struct tarn_oom_remedy){.memory = memory, .peak_reserved = row->peak_reserved};
    memcpy(remedies[at].conf, row->conf, strlen(row->conf));
    return end == count ? count + 1 : count;
}

static size_t settings_try(const struct tarn_replay *replay, struct tarn_tune_options options,
                           uint64_t memory, struct tarn_oom_remedy *remedies, size_t most)
{
    static struct tarn_tune_row rows[SINGLES_MAX]; /* large */
    size_t row_count = 0;
    size_t count = 0;

    options.struct_size = sizeof options;
    if (tarn_replay_tune(&replay, 1, &options, rows, options.each ? SINGLES_MAX : 2, &row_count,
                         NULL) ||
        rows[0].ooms == 0) { /* the replay does not fail as the run did */
        return SIZE_MAX;
    }
    for (size_t i = 1; i < row_count; i++) {
        count = remedy_add(remedies, count, most, &rows[i], memory);
    }
    return count;
}

/* Some thirty replays of a long trace take seconds. */
static bool is_tried(const struct answering *answering)
{
    const bool is_tried =
        answering->tries_all || tarn_snapshot_entry_count(answering->snapshot) <= TRIED_EVENTS_MAX;

    if (!is_tried) {
        cli_note("note: the trace is long, so settings that would have let the run finish are not "
                 "tried; --remedies tries them");
    }
    return is_tried;
}

/* Each setting on its own, else combinations; and the memory that the run needs as it was. */
static size_t find_remedies(void *context, int device, uint64_t *memory,
                            struct tarn_oom_remedy *remedies, size_t most)
{
    const struct tarn_replay *replay = replay_get(context, device);
    struct tarn_replay_info info = {.struct_size = sizeof info};
    struct tarn_tune_options options = {.each = true, .tries = SINGLES_MAX, .stops_at_oom = true};
    uint64_t needed;

    if (!replay || !is_tried(context)) {
        return SIZE_MAX;
    }
    tarn_replay_get_info(replay, &info);
    *memory = info.memory_limit ? info.memory_limit : *memory;
    options.device_total = info.memory_limit ? 0 : *memory;
    size_t count = settings_try(replay, options, *memory, remedies, most / 2);

    if (count == 0) {
        options.each = false;
        options.tries = SEARCH_TRIES;
        count = settings_try(replay, options, *memory, remedies, 1);
    }
    if (count != SIZE_MAX && count < most &&
        tarn_replay_fit(replay, NULL, &needed, NULL) == TARN_OK && needed > *memory) {
        remedies[count] = (struct tarn_oom_remedy){.memory = needed};
        (void)snprintf(remedies[count].conf, sizeof remedies[count].conf, "%s", info.conf);
        count++;
    }
    return count;
}

struct trace_run {
    cli_trace_report *report;
    struct tarn_report_options options;
    bool tries_all;
};

enum cli_exit cli_format_read(const struct cli_command *command,
                              const struct cli_format_values *values, bool json,
                              enum tarn_report_format *format_out)
{
    *format_out = values->jsonl ? TARN_REPORT_JSONL
                  : values->csv ? TARN_REPORT_CSV
                  : json        ? TARN_REPORT_JSON
                                : TARN_REPORT_TEXT;
    if (json + values->jsonl + values->csv > 1) {
        return cli_fail(command, CLI_EXIT_USAGE, "give one of --json, --jsonl and --csv");
    }
    return CLI_EXIT_OK;
}

static enum tarn_status trace_write(const struct tarn_snapshot *snapshot, const void *context,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct trace_run *run = context;
    struct tarn_report_options options = run->options;
    struct answering answering = {.snapshot = snapshot, .tries_all = run->tries_all};

    options.context = &answering;
    const enum tarn_status status = run->report(snapshot, &options, writer, error);

    tarn_replay_destroy(answering.replay);
    return status;
}

void cli_hint(const struct cli_call *call, enum cli_exit code, const char *text)
{
    if (code == CLI_EXIT_OK && call->terminal->err_is_terminal) {
        char line[HINT_MAX];
        cli_line_fold_end(); /* the hint comes after the output */
        const int length = snprintf(line, sizeof line, "tarn: next: %s", text);

        cli_line_fold_put(stderr, line, (size_t)length, cli_terminal_err_width());
    }
}

enum cli_exit cli_trace_run(const struct cli_call *call, cli_trace_report *report)
{
    return cli_trace_run_with(call, report, NULL);
}

enum cli_exit cli_trace_run_with(const struct cli_call *call, cli_trace_report *report,
                                 const struct tarn_report_options *extra)
{
    const struct cli_trace_values *values = call->values;
    struct cli_selected selected;
    struct trace_run run = {
        .report = report, .options = extra ? *extra : (struct tarn_report_options){.tree = false}};

    run.options.struct_size = sizeof run.options;
    run.options.rows = values->rows;
    run.options.device_total = values->device_total;
    run.options.would_fit = would_fit;
    run.options.find_remedies = find_remedies;
    run.options.order = (enum tarn_top_order)values->order;
    run.options.lifetime_max = values->max_lifetime;
    run.options.parts = values->steps;
    run.options.units = cli_units();
    run.options.tree = values->tree;
    run.options.min_share = values->min_share;
    run.tries_all = values->remedies;
    enum cli_exit code =
        cli_format_read(call->command, &values->format, values->json, &run.options.format);

    if (code == CLI_EXIT_OK) {
        code = cli_overwrite_check(call->command, values->output, values->force);
    }
    if (code == CLI_EXIT_OK) {
        code = cli_select_read(call->command, &values->select, &selected);
    }
    if (code) {
        return code;
    }
    cli_select_apply(&selected, &values->select, &run.options);
    cli_report_style(call, values->output, &run.options);
    code = cli_report_run(call, values->output, trace_write, &run);
    cli_select_release(&selected);
    return code;
}
