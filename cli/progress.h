/* SPDX-License-Identifier: MIT */
/*
 * Progress of long work: one line on stderr that is overwritten and finally erased. Nothing appears
 * for work of less than 300 ms, nor when stderr is a file, so logs stay clean. SIGUSR1 requests a
 * line at any time.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "tarn/status.h"

/* In the order of the words in cli_progress_choices. */
enum cli_progress_when {
    CLI_PROGRESS_AUTO,
    CLI_PROGRESS_ALWAYS,
    CLI_PROGRESS_NEVER
};
extern const char *const cli_progress_choices[];

/* Whether to show progress: `always` and `never` decide; otherwise stderr must be a terminal with
 * cursor movement (`term` is TERM, may be NULL) and --quiet not given. */
bool cli_progress_decide(enum cli_progress_when when, bool is_terminal, const char *term,
                         bool is_quiet);

/* Applies to all later work. `width`: columns available for a line. */
void cli_progress_configure(bool is_shown, unsigned width);

/* Work in progress; at most one at a time. */
struct cli_progress {
    const char *what; /* "reading"; not NULL */
    const char *name; /* of a file, or NULL */
    bool is_bytes;    /* unit of progress */
    double begin;     /* seconds */
    double shown;     /* time of the last update, 0: no line yet */
    int length;       /* of the line */
};

/* Starts; pass the result to the library call. All arguments are borrowed until
 * cli_progress_end. */
struct tarn_progress cli_progress_begin(struct cli_progress *progress, const char *what,
                                        const char *name, bool is_bytes);

/* Erases the line. */
void cli_progress_end(struct cli_progress *progress);

/* From signal handlers: SIGUSR1, and fatal signals, which leave the line. */
void cli_progress_ask(int signal_number);
void cli_progress_interrupted(void);

enum {
    CLI_PROGRESS_LINE_MAX = 256
};

/* The line: "reading dump.pickle: 25 %, 1.00 GiB of 4.00 GiB, 512 MB/s, 6 s left". Unknown values
 * (total 0) are omitted, as is the rate when no time has passed. Truncated at `width`. */
int cli_progress_text(char line[CLI_PROGRESS_LINE_MAX], const struct cli_progress *progress,
                      uint64_t done, uint64_t total, double seconds, unsigned width);

#endif
