/* SPDX-License-Identifier: MIT */
#include "terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WIDTH_DEFAULT = 80,
    WIDTH_MIN = 40,
    WIDTH_MAX = 1000
};

const char *const cli_color_choices[] = {"auto", "always", "never", NULL};

bool cli_color_decide(enum cli_color color, bool is_terminal, const char *no_color,
                      const char *clicolor_force, const char *term)
{
    if (color != CLI_COLOR_AUTO) {
        return color == CLI_COLOR_ALWAYS;
    }
    if (no_color && no_color[0] != '\0') {
        return false;
    }
    if (clicolor_force && clicolor_force[0] != '\0' && strcmp(clicolor_force, "0") != 0) {
        return true;
    }
    return is_terminal && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static unsigned terminal_width(void)
{
    struct winsize size = {0};
    const char *columns = getenv("COLUMNS");
    unsigned long width = 0;

    if (columns) {
        width = strtoul(columns, NULL, 10);
    }
    if (width == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        width = size.ws_col;
    }
    if (width == 0) {
        return WIDTH_DEFAULT;
    }
    if (width > WIDTH_MAX) {
        return WIDTH_MAX;
    }
    return width < WIDTH_MIN ? WIDTH_MIN : (unsigned)width;
}

unsigned cli_terminal_err_width(void)
{
    struct winsize size = {0};

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return WIDTH_DEFAULT - 1;
    }
    return size.ws_col - 1U;
}

/* The program itself stays in the C locale. */
static bool locale_is_utf8(void)
{
    (void)setlocale(LC_CTYPE, "");
    const bool is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;

    (void)setlocale(LC_CTYPE, "C");
    return is_utf8;
}

/* mpirun may give its processes a terminal of its own and copy what they write: to a file or pipe,
 * as often as not, and from many processes. */
static bool is_started_by_mpirun(void)
{
    return getenv("OMPI_COMM_WORLD_RANK") || getenv("PMIX_RANK") || getenv("PMI_RANK");
}

void cli_terminal_init(struct cli_terminal *terminal, enum cli_color color)
{
    const char *no_color = getenv("NO_COLOR");
    const char *force = getenv("CLICOLOR_FORCE");
    const char *term = getenv("TERM");

    terminal->out_is_terminal = isatty(STDOUT_FILENO) == 1 && !is_started_by_mpirun();
    terminal->err_is_terminal = isatty(STDERR_FILENO) == 1;
    terminal->out_color = cli_color_decide(color, terminal->out_is_terminal, no_color, force, term);
    terminal->err_color = cli_color_decide(color, terminal->err_is_terminal, no_color, force, term);
    terminal->out_is_utf8 = terminal->out_is_terminal && locale_is_utf8();
    terminal->width = terminal->out_is_terminal ? terminal_width() : 0;
}

const char *cli_terminal_style(const struct cli_terminal *terminal, enum cli_style style)
{
    static const char *const codes[] = {
        [CLI_STYLE_PLAIN] = "\033[0m",  [CLI_STYLE_BOLD] = "\033[1m",  [CLI_STYLE_RED] = "\033[31m",
        [CLI_STYLE_GREEN] = "\033[32m", [CLI_STYLE_FAINT] = "\033[2m",
    };
    return terminal->out_color ? codes[style] : "";
}
