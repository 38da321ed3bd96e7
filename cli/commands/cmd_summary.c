/* SPDX-License-Identifier: MIT */
/* `tarn summary`: one screen about a run. */
#include "device_opt.h"
#include "escape.h"
#include "json_out.h"
#include "output.h"
#include "reserve_opt.h"
#include "sheet.h"
#include "size_text.h"
#include "summary.h"

#include <inttypes.h>
#include <string.h>

struct summary_values {
    uint64_t device;
    uint64_t reserve;
    bool json;
    bool markdown;
};

static const struct summary_values summary_defaults = {.device = CLI_DEVICE_ALL,
                                                       .reserve = CLI_RESERVE_DEFAULT};

static const struct cli_opt summary_opts[] = {
    {.name = "device",
     .letter = 'd',
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct summary_values, device),
     .value = "N",
     .help = "this device (default: the one with the longest trace)"},
    CLI_RESERVE_OPT(struct summary_values),
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct summary_values, json),
     .help = "print JSON, for programs"},
    {.name = "md",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct summary_values, markdown),
     .help = "print Markdown, to paste into an issue"},
    {0},
};

/* In the order of enum tarn_oom_verdict. */
static const char *const verdicts[] = {"fragmented", "wrong pool or stream", "really full",
                                       "outside the allocator", "rounded by settings"};

struct page {
    const struct cli_call *call;
    const struct cli_summary *summary;
    struct cli_sheet sheet;
};

static bool has_trace(const struct cli_summary *summary)
{
    return summary->device->events > 0;
}

static double percent(uint64_t part, uint64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0.0;
}

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- the run ---- */

static void settings_text(const struct tarn_info_result *info, char *text, size_t size)
{
    if (info->settings_length > 0) {
        (void)snprintf(text, size, "%.*s", (int)info->settings_length, info->settings);
    } else {
        (void)snprintf(text, size, "%s", info->has_settings ? "(default)" : "(not in the file)");
    }
}

static bool has_steps(const struct cli_summary *summary)
{
    return summary->steps && (summary->steps->points_by == TARN_LEAK_POINTS_STEPS ||
                              summary->steps->points_by == TARN_LEAK_POINTS_STACK);
}

static void print_run(struct page *page)
{
    const struct cli_summary *summary = page->summary;
    const struct tarn_info_device *device = summary->device;
    char settings[TARN_TUNE_CONF_MAX];
    char steps[64] = "";

    if (has_steps(summary)) {
        (void)snprintf(steps, sizeof steps, ", %" PRIu64 " step%s", summary->steps->step_count,
                       plural(summary->steps->step_count));
    }
    cli_sheet_fact(&page->sheet, "", "%s", cli_escaped(page->call->arguments[0]).text);
    cli_sheet_fact(&page->sheet, "run",
                   "device %d of %zu, %" PRIu64 " segment%s, %" PRIu64 " event%s%s%s",
                   device->head.device, summary->info->devices_in_file, device->segments,
                   plural(device->segments), device->events, plural(device->events), steps,
                   device->blocks_before > 0 ? "; recording began late" : "");
    settings_text(summary->info, settings, sizeof settings);
    cli_sheet_fact(&page->sheet, "settings", "%s", cli_escaped(settings).text);
    if (!has_trace(summary)) {
        cli_sheet_fact(&page->sheet, "history", "none in the file: this is its state at the end");
    }
}

/* ---- the peak ---- */

/* The step of the peak, or NULL. */
static const struct tarn_step *peak_step(const struct cli_summary *summary)
{
    for (size_t i = 0; has_steps(summary) && i < summary->steps->row_count; i++) {
        const struct tarn_step *row = &summary->steps->rows[i];

        if (row->peak_event == summary->at.event && row->number != TARN_NONE) {
            return row;
        }
    }
    return NULL;
}

static void print_holders(struct page *page, const struct tarn_live_result *live)
{
    const struct tarn_holders *holders = &live->composition.holders;

    for (size_t i = 0; i < holders->row_count; i++) {
        char amount[64];

        (void)snprintf(amount, sizeof amount, "%s (%.1f %%)",
                       cli_size_text(holders->rows[i].bytes).text,
                       percent(holders->rows[i].bytes, holders->total.bytes));
        cli_sheet_row(&page->sheet, amount, holders->rows[i].group.text);
    }
}

static void print_peak(struct page *page)
{
    const struct cli_summary *summary = page->summary;
    const struct tarn_step *step = peak_step(summary);
    char when[64] = "";

    if (step) {
        (void)snprintf(when, sizeof when, ", step %" PRIu64, step->number);
    }
    if (has_trace(summary) && summary->at.event != TARN_NONE) {
        cli_sheet_fact(&page->sheet, "peak", "%s allocated; %s reserved",
                       cli_size_text(summary->device->allocated_peak).text,
                       cli_size_text(summary->reserved_peak).text);
        cli_sheet_fact(&page->sheet, "made of", "%s requested at event %" PRIu64 "%s, by category",
                       cli_size_text(summary->at.requested).text, summary->at.event, when);
    } else {
        cli_sheet_fact(&page->sheet, "memory", "%s reserved",
                       cli_size_text(summary->reserved_peak).text);
        cli_sheet_fact(&page->sheet, "made of", "%s requested, by category",
                       cli_size_text(summary->at.requested).text);
    }
    print_holders(page, summary->categories);
    cli_sheet_fact(&page->sheet, "made by", "your own lines");
    print_holders(page, summary->lines);
}

/* ---- what is stuck ---- */

static void print_stuck(struct page *page)
{
    const struct tarn_frag_result *frag = page->summary->frag;
    const struct tarn_frag_state *state = &frag->state;

    cli_sheet_fact(&page->sheet, has_trace(page->summary) ? "free at reserved peak" : "free",
                   "%s, of which %s can go back at once", cli_size_text(state->free).text,
                   cli_size_text(state->releasable).text);
    if (state->stuck + state->elsewhere == 0) {
        cli_sheet_fact(&page->sheet, "stuck", "nothing");
    } else if (frag->row_count > 0) {
        cli_sheet_fact(&page->sheet, "stuck", "%s; most beside %s",
                       cli_size_text(state->stuck + state->elsewhere).text,
                       frag->rows[0].largest_block.text);
    } else {
        char elsewhere[96] = "";

        if (state->elsewhere > 0) {
            (void)snprintf(elsewhere, sizeof elsewhere, ", %s in other streams or pools",
                           cli_size_text(state->elsewhere).text);
        }
        cli_sheet_fact(&page->sheet, "stuck", "%s beside blocks in %" PRIu64 " piece%s%s",
                       cli_size_text(state->stuck).text, state->stuck_pieces,
                       plural(state->stuck_pieces), elsewhere);
    }
}

static void print_failed(struct page *page)
{
    const struct tarn_oom_result *ooms = page->summary->ooms;

    if (!ooms || ooms->oom_count == 0) {
        return;
    }
    const struct tarn_oom_failure *first = &ooms->ooms[0];
    const uint64_t count = ooms->oom_count + ooms->later_ooms;

    cli_sheet_fact(
        &page->sheet, "failed", "%" PRIu64 " request%s, first %s at event %" PRIu64 ": %s%s", count,
        plural(count), cli_size_text(first->request).text, first->event, verdicts[first->verdict],
        first->is_limited ? ", refused by a limit of the allocator" : "");
}

/* ---- what would have helped ---- */

static void setting_amount(const struct cli_summary *summary, const struct tarn_tune_row *row,
                           char *amount, size_t size)
{
    const struct tarn_tune_row *recorded = &summary->recorded;

    if (row->ooms != recorded->ooms) {
        (void)snprintf(amount, size, "%" PRIu64 " instead of %" PRIu64 " OOMs", row->ooms,
                       recorded->ooms);
    } else {
        (void)snprintf(
            amount, size, "%s (-%.1f %%)", cli_size_text(row->peak_reserved).text,
            percent(recorded->peak_reserved - row->peak_reserved, recorded->peak_reserved));
    }
}

static void print_settings(struct page *page)
{
    const struct cli_summary *summary = page->summary;

    if (!has_trace(summary)) {
        return;
    }
    if (!summary->is_replayed) {
        cli_sheet_fact(&page->sheet, "settings that help", "not tried, %s (\"tarn tune\")",
                       summary->is_too_large ? "the trace is too long"
                                             : "the trace cannot be replayed");
        return;
    }
    if (summary->setting_count == 0) {
        cli_sheet_fact(&page->sheet, "settings that help", "none on its own saves 1 %% or more");
        return;
    }
    cli_sheet_fact(&page->sheet, "settings that help", "each alone, reserved at peak");
    for (int i = 0; i < summary->setting_count; i++) {
        const struct tarn_tune_row *row = &summary->settings[i];
        char amount[64];

        setting_amount(summary, row, amount, sizeof amount);
        cli_sheet_row(&page->sheet, amount, row->conf[0] ? row->conf : "(default)");
    }
}

/* ---- cards ---- */

static uint64_t room_of(const struct page *page, const struct cli_card *card)
{
    const struct summary_values *values = page->call->values;

    return card->bytes > values->reserve ? card->bytes - values->reserve : 0;
}

static int cards_that_fit(const struct page *page, uint64_t needed)
{
    const struct cli_cards *cards = &page->summary->cards;
    int count = 0;

    while (count < cards->count && room_of(page, &cards->items[count]) >= needed) {
        count++;
    }
    return count;
}

/* Bytes of a device that are enough under the recorded settings. */
static uint64_t needed_of(const struct cli_summary *summary)
{
    return summary->needed > 0 ? summary->needed : summary->reserved_peak;
}

static void print_fit(struct page *page, const char *label, uint64_t needed)
{
    const struct cli_cards *cards = &page->summary->cards;
    const struct summary_values *values = page->call->values;
    const int count = cards_that_fit(page, needed);
    char least[128] = "fits no card that is known";
    char first_not[64] = "";

    if (count > 0) {
        (void)snprintf(least, sizeof least, "fits %s%s", cards->items[count - 1].name,
                       count > 1 ? " and larger" : "");
    }
    if (count > 0 && count < cards->count) {
        (void)snprintf(first_not, sizeof first_not, ", not %s", cards->items[count].name);
    }
    cli_sheet_fact(&page->sheet, label, "%s, and %s for CUDA: %s%s", cli_size_text(needed).text,
                   cli_size_text(values->reserve).text, least, first_not);
}

static void print_cards(struct page *page)
{
    const struct cli_summary *summary = page->summary;
    const uint64_t needed = needed_of(summary);

    print_fit(page, "needs", needed);
    if (summary->needed_best > 0 &&
        cards_that_fit(page, summary->needed_best) > cards_that_fit(page, needed)) {
        print_fit(page, "with the first setting", summary->needed_best);
    }
}

/* ---- over time ---- */

static void print_steps(struct page *page)
{
    const struct tarn_steps_result *steps = page->summary->steps;

    if (!steps || steps->outlier_count == 0) {
        return;
    }
    const bool is_above = steps->outlier.peak > steps->median_peak;

    cli_sheet_fact(&page->sheet, "outlier",
                   "step %" PRIu64 ", whose peak is %s %s the median of %s", steps->outlier.number,
                   cli_size_text(is_above ? steps->outlier.peak - steps->median_peak
                                          : steps->median_peak - steps->outlier.peak)
                       .text,
                   is_above ? "above" : "below", cli_size_text(steps->median_peak).text);
}

static void print_growth(struct page *page)
{
    const struct tarn_leaks_result *leaks = page->summary->leaks;

    if (!leaks) {
        return;
    }
    if (leaks->point_count < TARN_LEAK_POINTS_MIN) {
        cli_sheet_fact(&page->sheet, "growth", "unknown: too few steps");
    } else if (leaks->leak_count == 0) {
        cli_sheet_fact(&page->sheet, "growth", "none found");
    } else {
        const bool has = has_steps(page->summary);

        cli_sheet_fact(&page->sheet, "growth", "%zu stack%s; most %s a %s: %s", leaks->leak_count,
                       plural(leaks->leak_count),
                       cli_size_text((uint64_t)leaks->rows[0].growth).text,
                       has ? "step" : "tenth of the trace", leaks->rows[0].group.text);
    }
}

static void print_page(struct page *page)
{
    print_run(page);
    print_peak(page);
    print_stuck(page);
    print_failed(page);
    print_settings(page);
    print_cards(page);
    print_steps(page);
    print_growth(page);
}

/* ---- JSON ---- */

static void holders_json(struct cli_json *json, const char *key,
                         const struct tarn_live_result *live)
{
    const struct tarn_holders *holders = &live->composition.holders;

    cli_json_open_array(json, key);
    for (size_t i = 0; i < holders->row_count; i++) {
        cli_json_open_object(json, NULL);
        cli_json_text(json, "name", holders->rows[i].group.text);
        cli_json_number(json, "requested_bytes", holders->rows[i].bytes);
        cli_json_number(json, "blocks", holders->rows[i].blocks);
        cli_json_close(json);
    }
    cli_json_close(json);
}

static void run_json(struct cli_json *json, const struct cli_summary *summary)
{
    char settings[TARN_TUNE_CONF_MAX];

    settings_text(summary->info, settings, sizeof settings);
    cli_json_signed(json, "device", summary->device->head.device);
    cli_json_number(json, "devices_in_file", summary->info->devices_in_file);
    cli_json_text(json, "settings", summary->info->has_settings ? settings : NULL);
    cli_json_number(json, "segments", summary->device->segments);
    cli_json_number(json, "events", summary->device->events);
    cli_json_number(json, "steps", has_steps(summary) ? summary->steps->step_count : 0);
    cli_json_bool(json, "has_history", has_trace(summary));
    cli_json_number(json, "requested_bytes", summary->at.requested);
    cli_json_number(json, "peak_reserved_bytes", summary->reserved_peak);
    holders_json(json, "categories", summary->categories);
    holders_json(json, "own_lines", summary->lines);
}

static void state_json(struct cli_json *json, const struct cli_summary *summary)
{
    const struct tarn_frag_state *state = &summary->frag->state;

    cli_json_number(json, "free_bytes", state->free);
    cli_json_number(json, "releasable_bytes", state->releasable);
    cli_json_number(json, "stuck_bytes", state->stuck);
    cli_json_number(json, "held_elsewhere_bytes", state->elsewhere);
    cli_json_number(json, "ooms",
                    summary->ooms ? summary->ooms->oom_count + summary->ooms->later_ooms : 0);
    cli_json_text(json, "verdict",
                  summary->ooms && summary->ooms->oom_count > 0
                      ? verdicts[summary->ooms->ooms[0].verdict]
                      : NULL);
}

static void settings_json(struct cli_json *json, const struct cli_summary *summary)
{
    cli_json_bool(json, "is_replayed", summary->is_replayed);
    cli_json_open_array(json, "helpful_settings");
    for (int i = 0; i < summary->setting_count; i++) {
        cli_json_open_object(json, NULL);
        cli_json_text(json, "conf", summary->settings[i].conf);
        cli_json_number(json, "peak_reserved", summary->settings[i].peak_reserved);
        cli_json_number(json, "ooms", summary->settings[i].ooms);
        cli_json_close(json);
    }
    cli_json_close(json);
}

static void cards_json(struct cli_json *json, const struct page *page)
{
    const struct cli_summary *summary = page->summary;

    cli_json_number(json, "needed_bytes", needed_of(summary));
    cli_json_open_array(json, "cards");
    for (int i = 0; i < summary->cards.count; i++) {
        const struct cli_card *card = &summary->cards.items[i];

        cli_json_open_object(json, NULL);
        cli_json_text(json, "card", card->name);
        cli_json_number(json, "bytes", card->bytes);
        cli_json_bool(json, "fits", room_of(page, card) >= needed_of(summary));
        cli_json_close(json);
    }
    cli_json_close(json);
}

static void time_json(struct cli_json *json, const struct cli_summary *summary)
{
    const struct tarn_steps_result *steps = summary->steps;
    const struct tarn_leaks_result *leaks = summary->leaks;

    cli_json_number(json, "outlier_steps", steps ? steps->outlier_count : 0);
    cli_json_open_array(json, "growing");
    for (size_t i = 0; leaks && i < leaks->row_count; i++) {
        cli_json_open_object(json, NULL);
        cli_json_text(json, "name", leaks->rows[i].group.text);
        cli_json_signed(json, "bytes_per_step", leaks->rows[i].growth);
        cli_json_close(json);
    }
    cli_json_close(json);
}

static void page_json(const struct page *page)
{
    struct cli_json json;

    cli_json_begin(&json, stdout, "tarn.summary/1", false);
    run_json(&json, page->summary);
    state_json(&json, page->summary);
    settings_json(&json, page->summary);
    cards_json(&json, page);
    time_json(&json, page->summary);
    cli_json_end(&json);
}

/* ---- running ---- */

static enum cli_exit summary_print(const struct cli_call *call, const struct cli_summary *summary)
{
    const struct summary_values *values = call->values;
    struct page page = {call, summary, {stdout, values->markdown, call->terminal->width}};

    if (values->json) {
        page_json(&page);
    } else {
        print_page(&page);
    }
    return ferror(stdout) ? CLI_EXIT_IO : CLI_EXIT_OK;
}

static enum cli_exit summary_run(const struct cli_call *call)
{
    const struct summary_values *values = call->values;
    struct cli_summary summary;
    struct tarn_error error = {.offset = -1};
    int number;
    int code;

    if (values->json && values->markdown) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "give one of --json and --md");
    }
    const bool is_given = cli_device_is_given(values->device, &number);
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status =
        cli_summary_gather(&summary, snapshot, is_given, is_given ? number : 0, &error);

    if (status) {
        code = (int)cli_fail_status(call->command, status, &error, call->arguments[0]);
    } else if (!summary.device) {
        code = (int)cli_fail(call->command, CLI_EXIT_FORMAT, "%s: the file has no device",
                             call->arguments[0]);
    } else {
        const enum cli_exit printed = summary_print(call, &summary);

        code = printed ? (int)printed : code;
    }
    cli_summary_release(&summary);
    tarn_snapshot_destroy(snapshot);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_summary = {
    .name = "summary",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "show what matters of a run on one screen, as tarn SNAPSHOT does",
    .details = "The run, its peak and what it is made of, what is stuck, which requests failed,\n"
               "which single settings would have helped, which GPUs it fits, and what grew; the\n"
               "figures of peak, frag, oom, tune, fit, steps and leaks. A trace of more than\n"
               "500000 events is not replayed; what it needs is then its reserved peak.\n",
    .examples = "tarn summary dump.pickle\n"
                "tarn summary --md dump.pickle",
    .prints_sizes = true,
    .is_redirected = true,
    .opts = summary_opts,
    .values_size = sizeof(struct summary_values),
    .defaults = &summary_defaults,
    .run = summary_run,
};
