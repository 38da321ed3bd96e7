/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include <string.h>

enum {
    ROWS_MAX = 64, /* more than there are single settings */
    GAIN_MIN = 100 /* a setting helps when it saves this part */
};

/* ---- reports ---- */

static struct tarn_report_options options_of(const struct cli_summary *summary)
{
    return (struct tarn_report_options){.struct_size = sizeof(struct tarn_report_options),
                                        .one_device = true,
                                        .device = summary->device->head.device,
                                        .rows = CLI_SUMMARY_ROWS};
}

/* The named device, else the one with the most events, else with the most memory. */
static const struct tarn_info_device *device_find(const struct tarn_info_result *info)
{
    const struct tarn_info_device *best = NULL;

    for (size_t i = 0; i < info->device_count; i++) {
        const struct tarn_info_device *device = &info->devices[i];

        if (!best || device->events > best->events ||
            (device->events == best->events && device->reserved > best->reserved)) {
            best = device;
        }
    }
    return best;
}

static enum tarn_status file_read(struct cli_summary *summary, const struct tarn_snapshot *snapshot,
                                  bool one_device, int device, struct tarn_error *error)
{
    const struct tarn_report_options options = {
        .struct_size = sizeof options, .one_device = one_device, .device = device};
    const enum tarn_status status = tarn_info_compute(snapshot, &options, &summary->info, error);

    summary->device = status == TARN_OK ? device_find(summary->info) : NULL;
    return status;
}

/* Who holds memory at the summary's time point. */
static enum tarn_status composition_read(struct cli_summary *summary,
                                         const struct tarn_snapshot *snapshot,
                                         struct tarn_error *error)
{
    struct tarn_selection selection = {
        .struct_size = sizeof selection,
        .at = {.kind = summary->device->events > 0 ? TARN_AT_PEAK : TARN_AT_END}};
    struct tarn_report_options options = options_of(summary);
    size_t count;

    options.selection = &selection;
    options.by = TARN_BY_CATEGORY;
    enum tarn_status status =
        tarn_live_compute(snapshot, &options, &summary->categories, &count, error);

    if (status) {
        return status;
    }
    summary->at = summary->categories->composition.at;
    selection.frames = TARN_FRAMES_OWN;
    options.by = TARN_BY_FRAME;
    return tarn_live_compute(snapshot, &options, &summary->lines, &count, error);
}

static enum tarn_status trace_read(struct cli_summary *summary,
                                   const struct tarn_snapshot *snapshot, struct tarn_error *error)
{
    const struct tarn_report_options options = options_of(summary);
    size_t count;
    enum tarn_status status =
        tarn_leaks_compute(snapshot, &options, &summary->leaks, &count, error);

    if (status == TARN_OK) {
        status = tarn_steps_compute(snapshot, &options, &summary->steps, &count, error);
    }
    if (status == TARN_OK) {
        status = tarn_oom_compute(snapshot, &options, &summary->ooms, &count, error);
    }
    return status;
}

static enum tarn_status reports_read(struct cli_summary *summary,
                                     const struct tarn_snapshot *snapshot, struct tarn_error *error)
{
    const struct tarn_report_options options = options_of(summary);
    size_t count;
    enum tarn_status status = composition_read(summary, snapshot, error);

    if (status == TARN_OK) {
        status = tarn_frag_compute(snapshot, &options, &summary->frag, &count, error);
    }
    if (status == TARN_OK && summary->device->events > 0) {
        status = trace_read(summary, snapshot, error);
    }
    if (status == TARN_OK) {
        summary->reserved_peak = summary->frag->at.reserved;
    }
    return status;
}

/* ---- replays ---- */

/* Fewer failures, or less memory by 1 % or more. */
static bool is_better(const struct tarn_tune_row *row, const struct tarn_tune_row *than)
{
    if (row->ooms != than->ooms) {
        return row->ooms < than->ooms;
    }
    return row->peak_reserved < than->peak_reserved &&
           than->peak_reserved - row->peak_reserved >= than->peak_reserved / GAIN_MIN;
}

static bool is_less(const struct tarn_tune_row *row, const struct tarn_tune_row *than)
{
    return row->ooms != than->ooms ? row->ooms < than->ooms
                                   : row->peak_reserved < than->peak_reserved;
}

static void setting_add(struct cli_summary *summary, const struct tarn_tune_row *row)
{
    int at = summary->setting_count;

    while (at > 0 && is_less(row, &summary->settings[at - 1])) {
        at--;
    }
    if (at >= CLI_SUMMARY_SETTINGS) {
        return;
    }
    if (summary->setting_count == CLI_SUMMARY_SETTINGS) {
        summary->setting_count--;
    }
    memmove(&summary->settings[at + 1], &summary->settings[at],
            (size_t)(summary->setting_count - at) * sizeof *row);
    summary->settings[at] = *row;
    summary->setting_count++;
}

static enum tarn_status settings_try(struct cli_summary *summary, const struct tarn_replay *replay,
                                     struct tarn_error *error)
{
    static struct tarn_tune_row rows[ROWS_MAX]; /* large */
    const struct tarn_tune_options options = {
        .struct_size = sizeof options, .tries = ROWS_MAX, .each = true};
    size_t count = 0;
    enum tarn_status status = tarn_replay_tune(&replay, 1, &options, rows, ROWS_MAX, &count, error);

    if (status) {
        return status;
    }
    summary->recorded = rows[0];
    for (size_t i = 1; i < count; i++) {
        if (is_better(&rows[i], &rows[0])) {
            setting_add(summary, &rows[i]);
        }
    }
    status = tarn_replay_fit(replay, NULL, &summary->needed, error);
    if (status == TARN_OK && summary->setting_count > 0) {
        status = tarn_replay_fit(replay, summary->settings[0].conf, &summary->needed_best, error);
    }
    return status;
}

static enum tarn_status replays_run(struct cli_summary *summary,
                                    const struct tarn_snapshot *snapshot, struct tarn_error *error)
{
    struct tarn_replay *replay = NULL;
    enum tarn_status status;

    summary->is_too_large = summary->device->events > CLI_ANSWERED_EVENTS_MAX;
    if (summary->device->events == 0 || summary->is_too_large) {
        return TARN_OK;
    }
    status = tarn_replay_create(snapshot, summary->device->head.device, &replay, error);
    if (status == TARN_OK) {
        status = settings_try(summary, replay, error);
        tarn_replay_destroy(replay);
    }
    summary->is_replayed = status == TARN_OK;
    return status == TARN_ERR_HOST_MEMORY ? status : TARN_OK; /* what cannot be replayed is not */
}

/* ---- all of it ---- */

enum tarn_status cli_summary_gather(struct cli_summary *summary,
                                    const struct tarn_snapshot *snapshot, bool one_device,
                                    int device, struct tarn_error *error)
{
    *summary = (struct cli_summary){.info = NULL};
    cli_cards_known(&summary->cards);
    enum tarn_status status = file_read(summary, snapshot, one_device, device, error);

    if (status == TARN_OK && summary->device) {
        status = reports_read(summary, snapshot, error);
        status = status ? status : replays_run(summary, snapshot, error);
    }
    return status;
}

void cli_summary_release(struct cli_summary *summary)
{
    tarn_report_destroy(summary->ooms);
    tarn_report_destroy(summary->steps);
    tarn_report_destroy(summary->leaks);
    tarn_report_destroy(summary->frag);
    tarn_report_destroy(summary->lines);
    tarn_report_destroy(summary->categories);
    tarn_report_destroy(summary->info);
}
