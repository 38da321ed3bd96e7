/* SPDX-License-Identifier: MIT */
/*
 * `tarn tree` on a terminal, with ncurses; without ncurses in the build there is no screen. The
 * terminal is as before when cli_tree_screen_run returns, and when a signal ends the program.
 */
#ifndef CLI_TREE_SCREEN_H
#define CLI_TREE_SCREEN_H

#include "tree_row.h"

/* Whether the program was built with it. */
bool cli_tree_screen_is_built(void);

struct cli_tree_screen {
    struct cli_tree_source *source;
    struct cli_tree_view *view;
    struct cli_tree_place *place;
    const char *name; /* of the file */
    bool has_color;
};

/* Runs until q. False, changing nothing, if the terminal cannot be used; then why_out tells why. */
bool cli_tree_screen_run(struct cli_tree_screen *screen, const char **why_out);

#endif
