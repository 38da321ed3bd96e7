/* SPDX-License-Identifier: MIT */
/* `tarn watch` on a whole terminal. Without ncurses at build time it does not exist. */
#ifndef CLI_WATCH_SCREEN_H
#define CLI_WATCH_SCREEN_H

#include "watch_model.h"

bool cli_watch_screen_is_built(void);

/* Shows it, with new numbers every `interval_ms` milliseconds, until the user leaves;
 * `takes_holders`: begins with those of the first process. False, with the reason, when the
 * terminal cannot be drawn on. */
bool cli_watch_screen_run(struct cli_watch *watch, int interval_ms, bool has_color,
                          bool takes_holders, const char **why_out);

#endif
