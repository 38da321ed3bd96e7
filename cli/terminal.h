/* SPDX-License-Identifier: MIT */
/*
 * What the program may assume about where its output goes. On a file or pipe: no colour, no width
 * limit, no progress. Colour: --color always or never decides; else NO_COLOR turns it off,
 * CLICOLOR_FORCE on, TERM=dumb off; else it follows the terminal. Colour never carries meaning
 * alone.
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
    unsigned width; /* columns of the terminal on stdout; 0 = no limit */
};

enum cli_style {
    CLI_STYLE_PLAIN,
    CLI_STYLE_BOLD,
    CLI_STYLE_RED,
    CLI_STYLE_GREEN,
    CLI_STYLE_FAINT
};

/* Looks at stdout, stderr and the environment. */
void cli_terminal_init(struct cli_terminal *terminal, enum cli_color color);

/* Columns of a line on stderr that does not wrap; 79 where that is no terminal. */
unsigned cli_terminal_err_width(void);

/* What to print on stdout to begin a style (PLAIN ends it); "" without colour. */
const char *cli_terminal_style(const struct cli_terminal *terminal, enum cli_style style);

/* Whether colour is on for a stream: the rule above on plain values. Variables may be NULL. */
bool cli_color_decide(enum cli_color color, bool is_terminal, const char *no_color,
                      const char *clicolor_force, const char *term);

#endif
