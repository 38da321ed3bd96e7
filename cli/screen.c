/* SPDX-License-Identifier: MIT */
#include "screen.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_screen_is_possible(void)
{
    const char *type = getenv("TERM");

    return isatty(STDOUT_FILENO) && type && type[0] && strcmp(type, "dumb") != 0;
}

#ifdef TARN_HAVE_NCURSES

#include "tree_keys.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <sys/select.h>
#include <time.h>

enum {
    ESCAPE_MS = 25 /* to wait for the rest of a key's sequence */
};

/* The signal that ends the program. */
static volatile sig_atomic_t caught;

static void signal_keep(int number)
{
    caught = number;
}

void cli_screen_put(unsigned width, int line, unsigned column, int attributes, const char *text)
{
    const unsigned room = column < width ? width - column : 0;
    size_t bytes = 0;
    unsigned columns = 0;

    while (text[bytes] && columns + (((unsigned char)text[bytes] & 0xC0U) != 0x80) <= room) {
        columns += ((unsigned char)text[bytes] & 0xC0U) != 0x80;
        bytes++;
    }
    (void)attron(attributes);
    (void)mvaddnstr(line, (int)column, text, (int)bytes);
    (void)attroff(attributes);
}

/* ---- keys ---- */

static int key_of(int pressed)
{
    static const struct {
        int pressed;
        int key;
    } keys[] = {{KEY_UP, CLI_KEY_UP},
                {KEY_DOWN, CLI_KEY_DOWN},
                {KEY_LEFT, CLI_KEY_LEFT},
                {KEY_RIGHT, CLI_KEY_RIGHT},
                {KEY_PPAGE, CLI_KEY_PAGE_UP},
                {KEY_NPAGE, CLI_KEY_PAGE_DOWN},
                {KEY_HOME, CLI_KEY_HOME},
                {KEY_END, CLI_KEY_END},
                {KEY_ENTER, CLI_KEY_ENTER},
                {'\r', CLI_KEY_ENTER},
                {'\n', CLI_KEY_ENTER},
                {27, CLI_KEY_ESCAPE},
                {KEY_BACKSPACE, CLI_KEY_BACKSPACE},
                {127, CLI_KEY_BACKSPACE},
                {'\b', CLI_KEY_BACKSPACE},
                {'\t', CLI_KEY_TAB}};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].pressed == pressed) {
            return keys[i].key;
        }
    }
    return pressed < KEY_MIN ? pressed : 0;
}

/* Signals are blocked but here, so that none is missed between a look at `caught` and the wait. */
int cli_screen_key(const struct cli_screen *screen, int timeout_ms)
{
    const int keyboard = fileno(screen->keyboard);
    const struct timespec time = {.tv_sec = timeout_ms / 1000,
                                  .tv_nsec = timeout_ms % 1000 * 1000000L};

    for (;;) {
        const int pressed = getch(); /* does not wait */
        fd_set set;

        if (caught) {
            return CLI_SCREEN_GONE;
        }
        if (pressed != ERR) {
            return pressed == KEY_RESIZE ? CLI_SCREEN_RESIZED : key_of(pressed);
        }
        FD_ZERO(&set);
        FD_SET(keyboard, &set);
        const int ready =
            pselect(keyboard + 1, &set, NULL, NULL, timeout_ms < 0 ? NULL : &time, &screen->mask);

        if (ready == 0) {
            return CLI_SCREEN_NO_KEY;
        }
        if (ready > 0) {
            const int late = getch();

            return late == ERR ? CLI_SCREEN_GONE
                               : (late == KEY_RESIZE ? CLI_SCREEN_RESIZED : key_of(late));
        }
    }
}

/* ---- the terminal ---- */

static const int ending_signals[CLI_SCREEN_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

static void signals_take(struct cli_screen *before)
{
    struct sigaction action = {.sa_handler = signal_keep};
    sigset_t ending;

    (void)sigemptyset(&action.sa_mask);
    (void)sigemptyset(&ending);
    for (size_t i = 0; i < CLI_SCREEN_SIGNALS; i++) {
        (void)sigaddset(&ending, ending_signals[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &ending, &before->mask);
    for (size_t i = 0; i < CLI_SCREEN_SIGNALS; i++) {
        (void)sigaction(ending_signals[i], &action, &before->actions[i]);
        if (before->actions[i].sa_handler == SIG_IGN) {
            (void)sigaction(ending_signals[i], &before->actions[i], NULL);
        }
    }
}

/* Dies of the signal that came. */
static void signals_give_back(const struct cli_screen *before)
{
    for (size_t i = 0; i < CLI_SCREEN_SIGNALS; i++) {
        (void)sigaction(ending_signals[i], &before->actions[i], NULL);
    }
    (void)sigprocmask(SIG_SETMASK, &before->mask, NULL);
    if (caught) {
        (void)raise((int)caught);
    }
}

static void colors_begin(bool has_color)
{
    if (has_color && has_colors() && start_color() == OK && use_default_colors() == OK) {
        (void)init_pair(CLI_PAIR_BAR, COLOR_CYAN, -1);
        (void)init_pair(CLI_PAIR_HOT, COLOR_YELLOW, -1);
        (void)init_pair(CLI_PAIR_MESSAGE, COLOR_YELLOW, -1);
    }
}

static void keyboard_close(struct cli_screen *screen)
{
    if (screen->keyboard && screen->keyboard != stdin) {
        (void)fclose(screen->keyboard);
    }
    (void)setlocale(LC_CTYPE, "C");
}

bool cli_screen_begin(struct cli_screen *screen, bool has_color, const char **why_out)
{
    screen->keyboard = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "r");
    (void)setlocale(LC_CTYPE, "");
    screen->is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    screen->terminal = screen->keyboard ? newterm(NULL, stdout, screen->keyboard) : NULL;
    if (!screen->terminal) {
        *why_out = screen->keyboard ? "the type of this terminal ($TERM) is not known"
                                    : "there is no terminal to read keys from";
        keyboard_close(screen);
        return false;
    }
    signals_take(screen);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)set_escdelay(ESCAPE_MS);
    colors_begin(has_color);
    return true;
}

void cli_screen_end(struct cli_screen *screen)
{
    (void)endwin();
    delscreen(screen->terminal);
    signals_give_back(screen);
    keyboard_close(screen);
}

#endif
