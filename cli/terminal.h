/* SPDX-License-Identifier: MIT */
/*
 * Properties of the terminal. Files and pipes get no colour, no width limit and no progress.
 * Colour: --color always or never decides; otherwise NO_COLOR disables it, CLICOLOR_FORCE enables
 * it, TERM=dumb disables it; otherwise terminals get colour. Colour is never the only carrier of a
 * meaning.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

/* In the order of the words in cli_color_choices. */
enum cli_color {
    CLI_COLOR_AUTO,
    CLI_COLOR_ALWAYS,
    CLI_COLOR_NEVER
};
extern const char *const cli_color_choices[];

struct cli_terminal {
    bool out_is_terminal;
    bool err_is_terminal;
    bool out_color;
    bool err_color;
    bool out_is_utf8; /* a terminal, in a locale of UTF-8 */
    unsigned width;   /* columns of the terminal on stdout; 0 = no limit */
};

enum cli_style {
    CLI_STYLE_PLAIN,
    CLI_STYLE_BOLD,
    CLI_STYLE_RED,
    CLI_STYLE_GREEN,
    CLI_STYLE_FAINT
};

/* Inspects stdout, stderr and the environment. */
void cli_terminal_init(struct cli_terminal *terminal, enum cli_color color);

/* Columns of a line on stderr that does not wrap; 79 if stderr is not a terminal. */
unsigned cli_terminal_err_width(void);

/* Escape sequence that starts a style on stdout (PLAIN ends it); "" without colour. */
const char *cli_terminal_style(const struct cli_terminal *terminal, enum cli_style style);

/* Whether a stream gets colour: the rule above on plain values. Variables may be NULL. */
bool cli_color_decide(enum cli_color color, bool is_terminal, const char *no_color,
                      const char *clicolor_force, const char *term);

#endif
