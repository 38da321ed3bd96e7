/* SPDX-License-Identifier: MIT */
#include "tree_screen.h"

#ifndef TARN_HAVE_NCURSES

bool cli_tree_screen_is_built(void)
{
    return false;
}

bool cli_tree_screen_run(struct cli_tree_screen *screen, const char **why_out)
{
    (void)screen;
    *why_out = "this build has no terminal view, since ncurses was missing";
    return false;
}

#else

#include "size_text.h"
#include "tree_wish.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

enum {
    HEAD_LINES = 3, /* title, time point, headings */
    FOOT_LINES = 2, /* the label in full, keys */
    LINES_MIN = HEAD_LINES + FOOT_LINES + 1,
    TEXT_MAX = 4096,
    WIDE = 100, /* columns from which on the bar is longer */
    COUNT_WIDTH = 9,
    INDENT = 2,
    ESCAPE_MS = 25 /* to wait for the rest of a key's sequence */
};

enum pair {
    PAIR_NONE,
    PAIR_BAR,
    PAIR_HOT,
    PAIR_MESSAGE
};

struct painter {
    const struct cli_tree_screen *screen;
    bool is_utf8;
    unsigned width;
    unsigned bar;
};

/* The signal that ends the program. */
static volatile sig_atomic_t caught;

static void signal_keep(int number)
{
    caught = number;
}

/* ---- drawing ---- */

static int style(const struct painter *painter, enum pair pair, int otherwise)
{
    return painter->screen->has_color ? (int)COLOR_PAIR((int)pair) : otherwise;
}

/* A line of text, cut at the right edge. */
static void put(const struct painter *painter, int line, unsigned column, int attributes,
                const char *text)
{
    const unsigned room = column < painter->width ? painter->width - column : 0;
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

static void title_draw(const struct painter *painter)
{
    const struct cli_tree_screen *screen = painter->screen;
    static const char *const orders[] = {"size", "count", "name"};
    char text[TEXT_MAX];
    char right[64];

    (void)snprintf(right, sizeof right, "by %s, sorted by %s ",
                   cli_tree_groups[screen->view->group], orders[screen->view->tree->order]);
    (void)snprintf(text, sizeof text, " tarn tree  %s  device %d", screen->name,
                   screen->place->head.device);
    (void)attron(A_REVERSE);
    (void)mvhline(0, 0, ' ', (int)painter->width);
    (void)attroff(A_REVERSE);
    put(painter, 0, 0, A_REVERSE | A_BOLD, text);
    if (painter->width > strlen(right) + strlen(text)) {
        put(painter, 0, painter->width - (unsigned)strlen(right), A_REVERSE, right);
    }
    cli_tree_place_text(text, sizeof text, screen->place, screen->view->when);
    put(painter, 1, 1, A_BOLD, text);
}

static unsigned label_column(const struct painter *painter)
{
    const unsigned size = cli_units() == TARN_UNITS_BYTES ? 17 : 11;

    return size + 1 + 6 + 1 + painter->bar + COUNT_WIDTH + 2;
}

static void headings_draw(const struct painter *painter)
{
    const unsigned size = cli_units() == TARN_UNITS_BYTES ? 17 : 11;
    static const char *const names[] = {"allocated by", "module", "category, calls",
                                        "stream, pool, calls"};
    char text[TEXT_MAX];

    (void)snprintf(text, sizeof text, "%*s  share %*s%*s  %s", (int)size, "size", (int)painter->bar,
                   "", COUNT_WIDTH, "blocks", names[painter->screen->view->group]);
    put(painter, 2, 0, A_DIM | A_UNDERLINE, text);
}

static const char *fold_mark(const struct painter *painter, uint32_t node)
{
    const struct cli_tree *tree = painter->screen->view->tree;

    if (!cli_tree_has_below(tree, node)) {
        return "  ";
    }
    if (!painter->is_utf8) {
        return tree->nodes[node].is_open ? "- " : "+ ";
    }
    return tree->nodes[node].is_open ? "▾ " : "▸ ";
}

/* Deep nodes are not indented beyond a third of the room. */
static unsigned indent_of(const struct painter *painter, uint32_t node)
{
    const unsigned room =
        painter->width > label_column(painter) ? (painter->width - label_column(painter)) / 3 : 0;
    const unsigned indent = painter->screen->view->tree->nodes[node].depth * INDENT;

    return indent < room ? indent : room;
}

static void label_draw(const struct painter *painter, int line, uint32_t node, int attributes)
{
    const struct cli_tree_view *view = painter->screen->view;
    const unsigned column = label_column(painter) + indent_of(painter, node);
    char label[CLI_TREE_LABEL_MAX];

    if (column + INDENT + 4 > painter->width) {
        return;
    }
    put(painter, line, column, attributes, fold_mark(painter, node));
    cli_tree_label_text(label, view->tree->nodes[node].label, painter->width - column - INDENT,
                        painter->is_utf8);
    put(painter, line, column + INDENT, attributes, label);
}

static void row_draw(const struct painter *painter, int line, uint32_t row)
{
    const struct cli_tree_view *view = painter->screen->view;
    const uint32_t node = view->tree->rows[row];
    const double share = cli_tree_share(view->tree, node);
    const int selected = row == view->cursor ? A_REVERSE : A_NORMAL;
    char numbers[CLI_TREE_NUMBERS_MAX];
    char text[TEXT_MAX];

    if (selected) {
        (void)attron(A_REVERSE);
        (void)mvhline(line, 0, ' ', (int)painter->width);
        (void)attroff(A_REVERSE);
    }
    cli_tree_size_text(numbers, view->tree, node);
    put(painter, line, 0, selected, numbers);
    cli_tree_bar_text(text, sizeof text, share, painter->bar, painter->is_utf8);
    put(painter, line, (unsigned)strlen(numbers) + 1,
        style(painter, share >= 25 ? PAIR_HOT : PAIR_BAR, A_NORMAL), text);
    (void)snprintf(text, sizeof text, "%*llu", COUNT_WIDTH,
                   (unsigned long long)view->tree->nodes[node].blocks);
    put(painter, line, (unsigned)strlen(numbers) + 1 + painter->bar, selected, text);
    label_draw(painter, line, node, selected);
}

static void prompt_draw(const struct painter *painter, int line)
{
    const struct cli_tree_view *view = painter->screen->view;
    char text[TEXT_MAX];

    (void)snprintf(text, sizeof text, "%s%s",
                   view->prompt == CLI_TREE_SEARCH
                       ? "/"
                       : "time point (peak, end, start, oom:N, event:N, time:T, step:N): ",
                   view->input);
    put(painter, line, 1, A_BOLD, text);
    (void)move(line, (int)(1 + cli_tree_columns(text)));
}

static void foot_draw(const struct painter *painter, int lines)
{
    const struct cli_tree_view *view = painter->screen->view;
    const struct cli_tree_node *node = &view->tree->nodes[cli_tree_view_node(view)];
    char label[CLI_TREE_LABEL_MAX];

    cli_tree_label_text(label, node->label, painter->width - 2, painter->is_utf8);
    put(painter, lines - 2, 1, A_DIM, label);
    if (view->message[0]) {
        put(painter, lines - 1, 1, style(painter, PAIR_MESSAGE, A_BOLD), view->message);
    } else if (view->prompt == CLI_TREE_NO_PROMPT) {
        put(painter, lines - 1, 1, A_NORMAL,
            "arrows move and fold   g group   s sort   / search   t time   ? help   q quit");
    }
    if (view->prompt != CLI_TREE_NO_PROMPT) {
        (void)move(lines - 2, 0);
        (void)clrtoeol();
        prompt_draw(painter, lines - 2);
    }
}

static void help_draw(const struct painter *painter, int lines)
{
    static const char *const help[] = {
        "up, down, j, k       move              PgUp, PgDn, Home, End",
        "right, l             unfold, or go in",
        "left, h              fold, or go to the caller",
        "Enter, space         fold or unfold",
        "*, -                 unfold, fold all below",
        "s                    sort by size, count, name",
        "g, Tab               next grouping",
        "1, 2, 3, 4           group by calls, module, category, stream and pool",
        "/                    search in all labels; n, N: the next, the one before",
        "p, e                 at the peak, at the end",
        "o                    at the first failed request, then at the next ones",
        "[, ]                 at the end of the step before, of the next one",
        "t                    type a time point",
        "q                    quit",
        "",
        "Sizes are requested bytes of live blocks, with all that is below.",
        "Any key goes back.",
    };

    (void)erase();
    title_draw(painter);
    for (size_t i = 0; i < sizeof help / sizeof *help && (int)i + 3 < lines; i++) {
        put(painter, (int)i + 3, 2, A_NORMAL, help[i]);
    }
}

static void screen_draw(struct painter *painter)
{
    struct cli_tree_view *view = painter->screen->view;
    int lines;
    int columns;

    getmaxyx(stdscr, lines, columns);
    painter->width = (unsigned)columns;
    painter->bar = columns >= WIDE ? 12 : 6;
    cli_tree_view_resize(view, lines > LINES_MIN ? (uint32_t)(lines - HEAD_LINES - FOOT_LINES) : 1);
    (void)erase();
    if (view->shows_help) {
        help_draw(painter, lines);
    } else {
        title_draw(painter);
        headings_draw(painter);
        for (uint32_t i = 0; i < view->height && view->top + i < view->tree->row_count; i++) {
            row_draw(painter, HEAD_LINES + (int)i, view->top + i);
        }
        foot_draw(painter, lines);
    }
    (void)curs_set(view->prompt != CLI_TREE_NO_PROMPT);
    (void)refresh();
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

/* Signals are blocked but here, so that none is missed between a look at `caught` and the wait. ERR
 * when one came, or when the terminal is gone. */
static int key_wait(int keyboard, const sigset_t *unblocked)
{
    for (;;) {
        const int pressed = getch(); /* KEY_RESIZE as well; does not wait */
        fd_set set;

        if (pressed != ERR || caught) {
            return pressed;
        }
        FD_ZERO(&set);
        FD_SET(keyboard, &set);
        if (pselect(keyboard + 1, &set, NULL, NULL, NULL, unblocked) > 0) {
            return getch();
        }
    }
}

static void loop(const struct cli_tree_screen *screen, int keyboard, const sigset_t *unblocked,
                 bool is_utf8)
{
    struct painter painter = {.screen = screen, .is_utf8 = is_utf8};
    enum cli_tree_wish wish = CLI_TREE_NO_WISH;

    while (wish != CLI_TREE_QUIT && !caught) {
        screen_draw(&painter);
        const int pressed = key_wait(keyboard, unblocked);

        if (pressed == ERR) {
            return;
        }
        if (pressed != KEY_RESIZE) {
            wish = cli_tree_view_key(screen->view, key_of(pressed));
            cli_tree_grant(screen->source, screen->view, screen->place, wish);
        }
    }
}

/* ---- the terminal ---- */

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

enum {
    ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals
};

/* What was there before. */
struct signals {
    struct sigaction actions[ENDING_SIGNALS];
    sigset_t mask;
};

static void signals_take(struct signals *before)
{
    struct sigaction action = {.sa_handler = signal_keep};
    sigset_t ending;

    (void)sigemptyset(&action.sa_mask);
    (void)sigemptyset(&ending);
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
        (void)sigaddset(&ending, ending_signals[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &ending, &before->mask);
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
        (void)sigaction(ending_signals[i], &action, &before->actions[i]);
        if (before->actions[i].sa_handler == SIG_IGN) {
            (void)sigaction(ending_signals[i], &before->actions[i], NULL);
        }
    }
}

/* Dies of the signal that came. */
static void signals_give_back(const struct signals *before)
{
    for (size_t i = 0; i < ENDING_SIGNALS; i++) {
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
        (void)init_pair(PAIR_BAR, COLOR_CYAN, -1);
        (void)init_pair(PAIR_HOT, COLOR_YELLOW, -1);
        (void)init_pair(PAIR_MESSAGE, COLOR_YELLOW, -1);
    }
}

bool cli_tree_screen_is_built(void)
{
    return true;
}

bool cli_tree_screen_run(struct cli_tree_screen *screen, const char **why_out)
{
    struct signals before;
    FILE *keyboard = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "r");

    (void)setlocale(LC_CTYPE, "");
    const bool is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    SCREEN *terminal = keyboard ? newterm(NULL, stdout, keyboard) : NULL;

    if (terminal) {
        signals_take(&before);
        (void)cbreak();
        (void)noecho();
        (void)nonl();
        (void)keypad(stdscr, TRUE);
        (void)nodelay(stdscr, TRUE);
        (void)set_escdelay(ESCAPE_MS);
        colors_begin(screen->has_color);
        loop(screen, fileno(keyboard), &before.mask, is_utf8);
        (void)endwin();
        delscreen(terminal);
        signals_give_back(&before);
    } else {
        *why_out = keyboard ? "the type of this terminal ($TERM) is not known"
                            : "there is no terminal to read keys from";
    }
    if (keyboard && keyboard != stdin) {
        (void)fclose(keyboard);
    }
    (void)setlocale(LC_CTYPE, "C");
    return terminal != NULL;
}

#endif
