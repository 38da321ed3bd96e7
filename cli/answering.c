/* SPDX-License-Identifier: MIT */
#include "answering.h"

#include "output.h"

#include <stdio.h>
#include <string.h>

enum {
    SINGLES_MAX = 64, /* more than there are single settings */
    SEARCH_TRIES = 60,
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

static const struct tarn_replay *replay_get(struct cli_answering *answering, int device)
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
static bool is_tried(const struct cli_answering *answering)
{
    const bool is_tried = answering->tries_all ||
                          tarn_snapshot_entry_count(answering->snapshot) <= CLI_ANSWERED_EVENTS_MAX;

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
    struct tarn_tune_options options = {
        .each = true, .tries = SINGLES_MAX, .stops_at_oom = true, .tries_policies = true};
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

void cli_answering_attach(struct cli_answering *answering, struct tarn_report_options *options)
{
    options->context = answering;
    options->would_fit = would_fit;
    options->find_remedies = find_remedies;
}

void cli_answering_release(struct cli_answering *answering)
{
    tarn_replay_destroy(answering->replay);
}
