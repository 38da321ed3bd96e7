/* SPDX-License-Identifier: MIT */
/*
 * `tarn watch` as lines of text, for a terminal or a file; and as JSON. All texts of other
 * processes are escaped here.
 */
#ifndef CLI_WATCH_TEXT_H
#define CLI_WATCH_TEXT_H

#include "json_out.h"
#include "terminal.h"
#include "watch_model.h"

enum {
    CLI_WATCH_LINE_MAX = 512
};

/* Where lines go, one after the other. */
struct cli_watch_lines {
    void *context;
    void (*put)(void *context, enum cli_style style, const char *text);
    unsigned width; /* columns */
    bool is_utf8;
    uint64_t now_ns; /* since 1970 */
};

/* The headings of the table of processes, and the row of one. */
void cli_watch_put_headings(const struct cli_watch_lines *lines);
void cli_watch_put_process(const struct cli_watch_lines *lines,
                           const struct cli_watch_process *process);

/* All that is known of a process: alerts, allocators, streams and pools, a timeline. */
void cli_watch_put_details(const struct cli_watch_lines *lines,
                           const struct cli_watch_process *process);

/* All processes. */
void cli_watch_print_json(const struct cli_watch *watch, FILE *file);

#endif
