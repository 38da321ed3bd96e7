/* SPDX-License-Identifier: MIT */
/*
 * Who holds most in a process that runs: the table of `tarn top --sort end`, by the same report, of
 * a snapshot that the process is asked for. Where that is not to be had: one sentence.
 */
#ifndef CLI_WATCH_HOLDERS_H
#define CLI_WATCH_HOLDERS_H

#include "watch_text.h"

/* Zero bytes: nothing was taken yet. */
struct cli_watch_holders {
    int64_t process;  /* whose memory it is; 0: nobody's */
    uint64_t time_ns; /* when the snapshot was taken, since 1970 */
    bool was_taken;   /* false: `trouble` says why not */
    char *table;      /* lines; NULL: there is none, for a reason in `trouble` */
    char trouble[2 + TARN_ERROR_TEXT_MAX + 64];
};

/* Takes a snapshot and keeps its table, for lines of the width of `lines` (0: no limit). What was
 * there before is forgotten. Waits at most ten seconds for the process, one if it did not answer
 * the last time. */
void cli_watch_holders_take(struct cli_watch_holders *holders, const struct cli_watch *watch,
                            const struct cli_watch_process *process,
                            const struct cli_watch_lines *lines);

/* When it was taken, and the table or the sentence. */
void cli_watch_put_holders(const struct cli_watch_lines *lines,
                           const struct cli_watch_holders *holders);

void cli_watch_holders_fini(struct cli_watch_holders *holders);

#endif
