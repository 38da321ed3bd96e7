/* SPDX-License-Identifier: MIT */
#include "page_answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SETTINGS_MAX = 64, /* more than there are single ones */
    DEVICES_MAX = 16   /* that are replayed */
};

struct cli_page_settings {
    struct tarn_tune_row rows[SETTINGS_MAX];
    struct tarn_error error; /* why there are none */
};

static struct tarn_report_options options_of(bool one_device, int device)
{
    return (struct tarn_report_options){.struct_size = sizeof(struct tarn_report_options),
                                        .one_device = one_device,
                                        .device = device};
}

/* A report that has nothing to say is left out. */
static enum tarn_status unless_memory(enum tarn_status status)
{
    return status == TARN_ERR_HOST_MEMORY ? status : TARN_OK;
}

static enum tarn_status reports_compute(struct cli_page_answers *answers,
                                        const struct tarn_snapshot *snapshot, bool one_device,
                                        int device, struct tarn_error *error)
{
    struct tarn_report_options options = options_of(one_device, device);
    struct tarn_view_answers *view = &answers->view;
    enum tarn_status status =
        tarn_frag_compute(snapshot, &options, &answers->frag, &view->frag_count, error);

    if (unless_memory(status) == TARN_OK) {
        status = tarn_steps_compute(snapshot, &options, &answers->steps, &view->step_count, error);
    }
    if (unless_memory(status) == TARN_OK) {
        cli_answering_attach(&answers->answering, &options);
        status = tarn_oom_compute(snapshot, &options, &answers->ooms, &view->oom_count, error);
    }
    if (unless_memory(status) == TARN_OK) {
        status = tarn_snapshot_check(snapshot, &answers->findings, error);
        view->findings = status == TARN_OK ? &answers->findings : NULL;
    }
    view->frag = answers->frag;
    view->steps = answers->steps;
    view->ooms = answers->ooms;
    return unless_memory(status);
}

/* ---- settings ---- */

/* What is unknown about the replay of one device is said instead of its rows. */
static enum tarn_status device_try(struct cli_page_settings *device,
                                   struct tarn_view_settings *settings,
                                   const struct tarn_snapshot *snapshot)
{
    const struct tarn_tune_options options = {
        .struct_size = sizeof options, .tries = SETTINGS_MAX, .each = true, .tries_policies = true};
    struct tarn_replay *replay = NULL;
    enum tarn_status status =
        tarn_replay_create(snapshot, settings->device, &replay, &device->error);

    if (status == TARN_OK) {
        const struct tarn_replay *const one = replay;

        status = tarn_replay_tune(&one, 1, &options, device->rows, SETTINGS_MAX, &settings->count,
                                  &device->error);
        tarn_replay_destroy(replay);
    }
    if (status) {
        settings->count = 0;
        settings->missing = device->error.text;
    }
    settings->rows = device->rows;
    return unless_memory(status);
}

static bool is_replayed(const struct tarn_snapshot *snapshot, size_t device, bool one_device,
                        int wanted)
{
    return (!one_device || (size_t)wanted == device) &&
           tarn_snapshot_trace_length(snapshot, device) > 0;
}

static enum tarn_status settings_try(struct cli_page_answers *answers,
                                     const struct tarn_snapshot *snapshot, bool one_device,
                                     int wanted)
{
    enum tarn_status status = TARN_OK;
    size_t count = 0;

    for (size_t i = 0; i < tarn_snapshot_device_count(snapshot); i++) {
        count += is_replayed(snapshot, i, one_device, wanted);
    }
    count = count < DEVICES_MAX ? count : DEVICES_MAX;
    answers->devices = calloc(count + 1, sizeof *answers->devices);
    answers->settings = calloc(count + 1, sizeof *answers->settings);
    if (!answers->devices || !answers->settings) {
        return TARN_ERR_HOST_MEMORY;
    }
    for (size_t i = 0; answers->device_count < count && status == TARN_OK; i++) {
        if (is_replayed(snapshot, i, one_device, wanted)) {
            const size_t number = answers->device_count++;

            answers->settings[number].device = (int)i;
            status = device_try(&answers->devices[number], &answers->settings[number], snapshot);
        }
    }
    answers->view.settings = answers->settings;
    answers->view.settings_count = answers->device_count;
    return status;
}

/* ---- all of it ---- */

/* Why nothing is computed; NULL: it is. */
static const char *reason_of(struct cli_page_answers *answers, const struct tarn_snapshot *snapshot,
                             enum cli_page_answers_wanted wanted)
{
    const uint64_t events = tarn_snapshot_entry_count(snapshot);

    if (wanted == CLI_PAGE_ANSWERS_NEVER) {
        return "the page was written with --no-answers";
    }
    if (wanted == CLI_PAGE_ANSWERS_ALWAYS || events <= CLI_ANSWERED_EVENTS_MAX) {
        return NULL;
    }
    (void)snprintf(answers->reason, sizeof answers->reason,
                   "the recording has %" PRIu64 " events; of more than %d, \"tarn view "
                   "--answers\" computes them",
                   events, (int)CLI_ANSWERED_EVENTS_MAX);
    return answers->reason;
}

enum tarn_status cli_page_answers_gather(struct cli_page_answers *answers,
                                         const struct tarn_snapshot *snapshot, bool one_device,
                                         int device, enum cli_page_answers_wanted wanted,
                                         struct tarn_error *error)
{
    *answers = (struct cli_page_answers){
        .view = {.struct_size = sizeof answers->view},
        .answering = {.snapshot = snapshot, .tries_all = true},
    };
    answers->view.missing = reason_of(answers, snapshot, wanted);
    if (answers->view.missing) {
        return TARN_OK;
    }
    const enum tarn_status status = reports_compute(answers, snapshot, one_device, device, error);

    return status ? status : settings_try(answers, snapshot, one_device, device);
}

void cli_page_answers_release(struct cli_page_answers *answers)
{
    cli_answering_release(&answers->answering);
    tarn_report_destroy(answers->ooms);
    tarn_report_destroy(answers->frag);
    tarn_report_destroy(answers->steps);
    free(answers->devices);
    free(answers->settings);
}
