/* SPDX-License-Identifier: MIT */
/*
 * How far long work is, in one line on stderr that is written over and erased at the end. Nothing
 * is shown of what takes less than 300 ms, nor where stderr is a file, so logs stay clean. SIGUSR1
 * asks for a line at any time.
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

/* Whether it is shown: always and never decide; else stderr must be a terminal that can move back
 * (`term` as TERM, may be NULL), and the user want to hear of more than errors. */
bool cli_progress_decide(enum cli_progress_when when, bool is_terminal, const char *term,
                         bool is_quiet);

/* Counts for all work that begins afterwards. `width`: columns that a line may take. */
void cli_progress_configure(bool is_shown, unsigned width);

/* Work in progress; at most one at a time. */
struct cli_progress {
    const char *what; /* "reading"; not NULL */
    const char *name; /* of a file, or NULL */
    bool is_bytes;    /* what is counted */
    double begin;     /* seconds */
    double shown;     /* when the line was written last, 0: it is not there */
    int length;       /* of the line */
};

/* Begins; the result is for the call that works, until cli_progress_end. Borrows all. */
struct tarn_progress cli_progress_begin(struct cli_progress *progress, const char *what,
                                        const char *name, bool is_bytes);

/* Erases the line. */
void cli_progress_end(struct cli_progress *progress);

/* From signal handlers: SIGUSR1; and the end of the program, which leaves the line. */
void cli_progress_ask(int signal_number);
void cli_progress_interrupted(void);

enum {
    CLI_PROGRESS_LINE_MAX = 256
};

/* The line: "reading dump.pickle: 25 %, 1.00 GiB of 4.00 GiB, 512 MB/s, 6 s left". What is not
 * known (total 0) is left out, as is a rate of no time. Longer ones are cut off at `width`. */
int cli_progress_text(char line[CLI_PROGRESS_LINE_MAX], const struct cli_progress *progress,
                      uint64_t done, uint64_t total, double seconds, unsigned width);

#endif
