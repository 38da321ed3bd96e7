/* SPDX-License-Identifier: MIT */
/*
 * A terminal that is drawn on with ncurses: beginning and ending, signals, keys. Only in builds
 * with ncurses.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/* Whether stdout is a terminal that can be drawn on. */
bool cli_screen_is_possible(void);

#ifdef TARN_HAVE_NCURSES

enum {
    CLI_SCREEN_SIGNALS = 4, /* that end the program */
    CLI_SCREEN_GONE = -1,   /* a signal came, or the terminal is gone */
    CLI_SCREEN_NO_KEY = -2, /* the time is over */
    CLI_SCREEN_RESIZED = -3
};

/* Pairs of colours. */
enum cli_screen_pair {
    CLI_PAIR_NONE,
    CLI_PAIR_BAR,
    CLI_PAIR_HOT,
    CLI_PAIR_MESSAGE
};

struct cli_screen {
    FILE *keyboard;
    void *terminal;
    bool is_utf8;
    struct sigaction actions[CLI_SCREEN_SIGNALS]; /* what was there before */
    sigset_t mask;
};

/* False, with the reason, when the terminal cannot be drawn on. */
bool cli_screen_begin(struct cli_screen *screen, bool has_color, const char **why_out);

/* Gives the terminal back, and dies of the signal that came. */
void cli_screen_end(struct cli_screen *screen);

/* The next key, a byte of text or enum cli_tree_key, 0 for an unknown one; waits for it at most
 * `timeout_ms` milliseconds, for ever if that is negative. */
int cli_screen_key(const struct cli_screen *screen, int timeout_ms);

/* Draws a line of text, cut at the right edge, which is at `width`. */
void cli_screen_put(unsigned width, int line, unsigned column, int attributes, const char *text);

#endif

#endif
