/* SPDX-License-Identifier: MIT */
/* Replays that answer what a report on failed requests asks: would these settings have helped, and
 * which would? */
#ifndef CLI_ANSWERING_H
#define CLI_ANSWERING_H

#include "tarn/replay.h"
#include "tarn/report.h"

enum {
    CLI_ANSWERED_EVENTS_MAX = 500 * 1000 /* of a file: some thirty replays take seconds beyond */
};

/* Set `snapshot` and `tries_all`, the rest is zero. */
struct cli_answering {
    const struct tarn_snapshot *snapshot;
    bool tries_all; /* settings on long traces as well; else a note says that they are not tried */
    struct tarn_replay *replay; /* of `device`, NULL: none; what the file does not say takes long */
    int device;
};

/* Borrowed by the options. */
void cli_answering_attach(struct cli_answering *answering, struct tarn_report_options *options);
void cli_answering_release(struct cli_answering *answering);

#endif
