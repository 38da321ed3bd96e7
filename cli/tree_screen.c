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

#include "screen.h"
#include "size_text.h"
#include "tree_wish.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>

enum {
    HEAD_LINES = 3, /* title, time point, headings */
    FOOT_LINES = 2, /* the label in full, keys */
    LINES_MIN = HEAD_LINES + FOOT_LINES + 1,
    TEXT_MAX = 4096,
    WIDE = 100, /* columns from which on the bar is longer */
    COUNT_WIDTH = 9,
    INDENT = 2
};

struct painter {
    const struct cli_tree_screen *screen;
    bool is_utf8;
    unsigned width;
    unsigned bar;
};

/* ---- drawing ---- */

static int style(const struct painter *painter, enum cli_screen_pair pair, int otherwise)
{
    return painter->screen->has_color ? (int)COLOR_PAIR((int)pair) : otherwise;
}

/* A line of text, cut at the right edge. */
static void put(const struct painter *painter, int line, unsigned column, int attributes,
                const char *text)
{
    cli_screen_put(painter->width, line, column, attributes, text);
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
        style(painter, share >= 25 ? CLI_PAIR_HOT : CLI_PAIR_BAR, A_NORMAL), text);
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
        put(painter, lines - 1, 1, style(painter, CLI_PAIR_MESSAGE, A_BOLD), view->message);
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

static void loop(const struct cli_tree_screen *tree, const struct cli_screen *screen)
{
    struct painter painter = {.screen = tree, .is_utf8 = screen->is_utf8};
    enum cli_tree_wish wish = CLI_TREE_NO_WISH;

    while (wish != CLI_TREE_QUIT) {
        screen_draw(&painter);
        const int key = cli_screen_key(screen, -1);

        if (key == CLI_SCREEN_GONE) {
            return;
        }
        if (key != CLI_SCREEN_RESIZED) {
            wish = cli_tree_view_key(tree->view, key);
            cli_tree_grant(tree->source, tree->view, tree->place, wish);
        }
    }
}

bool cli_tree_screen_is_built(void)
{
    return true;
}

bool cli_tree_screen_run(struct cli_tree_screen *tree, const char **why_out)
{
    struct cli_screen screen;

    if (!cli_screen_begin(&screen, tree->has_color, why_out)) {
        return false;
    }
    loop(tree, &screen);
    cli_screen_end(&screen);
    return true;
}

#endif
