/* SPDX-License-Identifier: MIT */
/*
 * What is worth knowing first about one device of a snapshot, gathered from the reports and from
 * replays: each part is what its own command shows.
 */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include "answering.h"
#include "card.h"
#include "command.h"
#include "tarn/replay.h"
#include "tarn/report.h"

enum {
    CLI_SUMMARY_ROWS = 3,    /* of each table */
    CLI_SUMMARY_SETTINGS = 2 /* that help */
};

struct cli_summary {
    struct tarn_info_result *info;
    const struct tarn_info_device *device;
    struct tarn_time_point at; /* the peak of requested bytes; without a trace, the end */
    uint64_t reserved_peak;
    struct tarn_live_result *categories; /* at that time point */
    struct tarn_live_result *lines;      /* the same by the innermost line of the user's own code */
    struct tarn_frag_result *frag;       /* at the reserved peak; without a trace, the end */

    /* Without a trace NULL and 0. */
    struct tarn_leaks_result *leaks;
    struct tarn_steps_result *steps;
    struct tarn_oom_result *ooms;

    bool is_replayed;
    bool is_too_large;             /* to be replayed */
    struct tarn_tune_row recorded; /* the replay under the recorded settings */
    struct tarn_tune_row settings[CLI_SUMMARY_SETTINGS]; /* single ones that help, best first */
    int setting_count;
    uint64_t needed;      /* device bytes under the recorded settings; 0: unknown */
    uint64_t needed_best; /* the same under the first of `settings`; 0: there is none */
    struct cli_cards cards;
};

/* Gathers it for a device, or for the one with the longest trace, else the most memory, if
 * `one_device` is not set. The caller calls cli_summary_release in any case. */
enum tarn_status cli_summary_gather(struct cli_summary *summary,
                                    const struct tarn_snapshot *snapshot, bool one_device,
                                    int device, struct tarn_error *error);
void cli_summary_release(struct cli_summary *summary);

#endif
