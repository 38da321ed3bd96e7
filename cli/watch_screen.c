/* SPDX-License-Identifier: MIT */
#include "watch_screen.h"

#ifndef TARN_HAVE_NCURSES

bool cli_watch_screen_is_built(void)
{
    return false;
}

bool cli_watch_screen_run(struct cli_watch *watch, int interval_ms, bool has_color,
                          bool takes_holders, const char **why_out)
{
    (void)watch;
    (void)interval_ms;
    (void)has_color;
    (void)takes_holders;
    *why_out = "this build has no terminal view, since ncurses was missing";
    return false;
}

#else

#include "screen.h"
#include "tree_keys.h"
#include "watch_holders.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    HEAD_LINES = 2, /* title, headings */
    FOOT_LINES = 1,
    PROCESSES_PART = 3 /* of the lines, one part in that many shows processes if there are many */
};

struct view {
    struct cli_watch *watch;
    const struct cli_screen *screen;
    int64_t selected; /* process */
    bool is_frozen;
    bool asks_filter; /* letters go into the filter */
    bool shows_help;
    bool shows_holders; /* in place of the details, if they are of the selected process */
    struct cli_watch_holders holders;
    uint32_t top;    /* first line of the details that is shown */
    uint64_t now_ns; /* when the numbers were read, since 1970 */
    char message[160];
};

/* Draws lines from `first` on, as far as there is room. */
struct page {
    unsigned width;
    int line;
    int end;
    uint32_t skip; /* lines that are scrolled away */
    bool is_reverse;
};

static void page_put(void *context, enum cli_style style, const char *text)
{
    struct page *page = context;
    int attributes = page->is_reverse ? A_REVERSE : A_NORMAL;

    if (page->skip > 0) {
        page->skip--;
        return;
    }
    if (page->line >= page->end) {
        return;
    }
    if (style == CLI_STYLE_RED) {
        attributes |= (int)(COLOR_PAIR((int)CLI_PAIR_HOT) | A_BOLD);
    } else if (style == CLI_STYLE_BOLD) {
        attributes |= (int)A_BOLD;
    } else if (style == CLI_STYLE_FAINT) {
        attributes |= (int)A_DIM;
    }
    if (page->is_reverse) {
        (void)attron(A_REVERSE);
        (void)mvhline(page->line, 0, ' ', (int)page->width);
        (void)attroff(A_REVERSE);
    }
    cli_screen_put(page->width, page->line++, 0, attributes, text);
}

static bool process_is_shown(const struct view *view, const struct cli_watch_process *process)
{
    return view->watch->filter[0] == '\0' || strstr(process->head.program, view->watch->filter);
}

/* The selected process; the first one if that is not there (any more). */
static const struct cli_watch_process *view_selected(struct view *view)
{
    const struct cli_watch_process *first = NULL;

    for (uint32_t i = 0; i < view->watch->count; i++) {
        const struct cli_watch_process *process = view->watch->processes[i];

        if (process_is_shown(view, process)) {
            first = first ? first : process;
            if (process->head.process == view->selected) {
                return process;
            }
        }
    }
    view->selected = first ? first->head.process : 0;
    return first;
}

/* ---- drawing ---- */

static void title_draw(const struct view *view, unsigned width)
{
    char text[256];
    char right[64];

    (void)snprintf(text, sizeof text, " tarn watch  %u process%s%s", view->watch->count,
                   view->watch->count == 1 ? "" : "es", view->is_frozen ? "  FROZEN" : "");
    (void)snprintf(right, sizeof right, "sorted by %s ", cli_watch_orders[view->watch->order]);
    (void)attron(A_REVERSE);
    (void)mvhline(0, 0, ' ', (int)width);
    (void)attroff(A_REVERSE);
    cli_screen_put(width, 0, 0, A_REVERSE | A_BOLD, text);
    if (width > strlen(right) + strlen(text)) {
        cli_screen_put(width, 0, width - (unsigned)strlen(right), A_REVERSE, right);
    }
}

/* After view_selected. */
static bool holders_are_shown(const struct view *view)
{
    return view->shows_holders && view->holders.process == view->selected;
}

static void foot_draw(const struct view *view, unsigned width, int line)
{
    char text[CLI_WATCH_FILTER_MAX + 32];

    if (view->asks_filter) {
        (void)snprintf(text, sizeof text, "program: %s_", view->watch->filter);
        cli_screen_put(width, line, 1, A_BOLD, text);
    } else if (view->message[0]) {
        cli_screen_put(width, line, 1, A_BOLD, view->message);
    } else {
        cli_screen_put(
            width, line, 1, A_NORMAL,
            holders_are_shown(view)
                ? "h look again  c, Esc close  PgUp, PgDn scroll  arrows process  ? help  q quit"
                : "arrows, PgUp, PgDn  h holders  s sort  / filter  f freeze  ? help  q quit");
    }
}

static void help_draw(unsigned width, int lines)
{
    static const char *const help[] = {
        "up, down, j, k       select a process",
        "PgUp, PgDn           scroll what is shown of it",
        "h                    who holds most of its memory now: it writes a snapshot,",
        "                     as for tarn dump; h again takes a new one",
        "c, Esc               close that",
        "s                    sort by reserved, allocated, rate, pid",
        "/                    show only programs whose name contains a text; Enter ends",
        "f, space             freeze, and go on",
        "q                    quit",
        "",
        "CACHED is the part of reserved memory that no block is allocated in.",
        "A process in bold does not answer: what it published last is shown.",
        "Any key goes back."};

    for (size_t i = 0; i < sizeof help / sizeof *help && (int)i + 2 < lines; i++) {
        cli_screen_put(width, (int)i + 2, 2, A_NORMAL, help[i]);
    }
}

static uint64_t time_of_day_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The table, scrolled so that the selected process is in it. */
static void table_draw(const struct view *view, struct cli_watch_lines *lines,
                       const struct cli_watch_process *selected)
{
    struct page *page = lines->context;
    const int room = page->end - page->line;
    int before = 0;

    for (uint32_t i = 0; i < view->watch->count && view->watch->processes[i] != selected; i++) {
        before += process_is_shown(view, view->watch->processes[i]);
    }
    page->skip = before >= room ? (uint32_t)(before - room + 1) : 0;
    for (uint32_t i = 0; i < view->watch->count; i++) {
        const struct cli_watch_process *process = view->watch->processes[i];

        if (process_is_shown(view, process)) {
            page->is_reverse = process == selected;
            cli_watch_put_process(lines, process);
        }
    }
    page->is_reverse = false;
    page->skip = 0;
}

static struct cli_watch_lines lines_on(const struct view *view, struct page *page)
{
    return (struct cli_watch_lines){.context = page,
                                    .put = page_put,
                                    .width = page->width,
                                    .is_utf8 = view->screen->is_utf8,
                                    .now_ns = view->now_ns};
}

static void view_draw(struct view *view)
{
    const struct cli_watch_process *selected = view_selected(view);
    int height;
    int columns;

    getmaxyx(stdscr, height, columns);
    struct page page = {.width = (unsigned)columns, .line = 1, .end = height - FOOT_LINES};
    struct cli_watch_lines lines = lines_on(view, &page);

    (void)erase();
    title_draw(view, page.width);
    if (view->shows_help) {
        help_draw(page.width, height);
    } else {
        cli_watch_put_headings(&lines);
        page.end = height / PROCESSES_PART > HEAD_LINES ? HEAD_LINES + height / PROCESSES_PART
                                                        : HEAD_LINES + 1;
        table_draw(view, &lines, selected);
        page.end = height - FOOT_LINES;
        page.line++;
        page.skip = view->top;
        if (selected && holders_are_shown(view)) {
            cli_watch_put_holders(&lines, &view->holders);
        } else if (selected) {
            cli_watch_put_details(&lines, selected);
        }
        foot_draw(view, page.width, height - 1);
    }
    (void)refresh();
}

/* ---- keys ---- */

static void select_next(struct view *view, int step)
{
    const struct cli_watch *watch = view->watch;
    int at = -1;

    for (uint32_t i = 0; i < watch->count; i++) {
        at = watch->processes[i]->head.process == view->selected ? (int)i : at;
    }
    for (int i = at + step; at >= 0 && i >= 0 && i < (int)watch->count; i += step) {
        if (process_is_shown(view, watch->processes[i])) {
            view->selected = watch->processes[i]->head.process;
            view->top = 0;
            return;
        }
    }
}

static void filter_key(struct view *view, int key)
{
    char *filter = view->watch->filter;
    const size_t length = strlen(filter);

    if (key == CLI_KEY_ENTER || key == CLI_KEY_ESCAPE) {
        view->asks_filter = false;
    } else if (key == CLI_KEY_BACKSPACE && length > 0) {
        filter[length - 1] = '\0';
    } else if (key >= ' ' && key < 127 && length + 1 < CLI_WATCH_FILTER_MAX) {
        filter[length] = (char)key;
        filter[length + 1] = '\0';
    }
}

/* Waits for the process, and says so meanwhile. */
static void holders_take(struct view *view)
{
    struct page page = {.width = (unsigned)getmaxx(stdscr)};
    const struct cli_watch_lines lines = lines_on(view, &page);
    const struct cli_watch_process *selected = view_selected(view);

    if (!selected) {
        return;
    }
    (void)snprintf(view->message, sizeof view->message, "process %lld writes a snapshot ...",
                   (long long)selected->head.process);
    view_draw(view);
    cli_watch_holders_take(&view->holders, view->watch, selected, &lines);
    view->message[0] = '\0';
    view->shows_holders = true;
    view->top = 0;
}

static void holders_close(struct view *view)
{
    view->shows_holders = false;
    view->top = 0;
}

/* False: the user leaves. */
static bool view_key(struct view *view, int key)
{
    if (view->shows_help) {
        view->shows_help = false;
        return true;
    }
    if (view->asks_filter) {
        filter_key(view, key);
        return true;
    }
    switch (key) {
    case 'q':
        return false;
    case CLI_KEY_UP:
    case 'k':
        select_next(view, -1);
        break;
    case CLI_KEY_DOWN:
    case 'j':
        select_next(view, 1);
        break;
    case CLI_KEY_PAGE_UP:
        view->top = view->top > 5 ? view->top - 5 : 0;
        break;
    case CLI_KEY_PAGE_DOWN:
        view->top += 5;
        break;
    case 'h':
        holders_take(view);
        break;
    case 'c':
    case CLI_KEY_ESCAPE:
        holders_close(view);
        break;
    case 's':
        view->watch->order = (enum cli_watch_order)((view->watch->order + 1) % 4);
        break;
    case '/':
        view->asks_filter = true;
        view->watch->filter[0] = '\0';
        break;
    case 'f':
    case ' ':
        view->is_frozen = !view->is_frozen;
        break;
    case '?':
        view->shows_help = true;
        break;
    default:
        break;
    }
    return true;
}

static void view_refresh(struct view *view)
{
    struct tarn_error error = {.offset = -1};

    view->message[0] = '\0';
    view->now_ns = time_of_day_ns();
    if (cli_watch_refresh(view->watch, &error)) {
        (void)snprintf(view->message, sizeof view->message, "%.150s", error.text);
    }
}

static void loop(struct view *view, int interval_ms)
{
    for (;;) {
        view_draw(view);
        const int key = cli_screen_key(view->screen, interval_ms);

        if (key == CLI_SCREEN_GONE ||
            (key != CLI_SCREEN_NO_KEY && key != CLI_SCREEN_RESIZED && !view_key(view, key))) {
            return;
        }
        if (!view->is_frozen) { /* a key may have changed the order */
            view_refresh(view);
        }
    }
}

bool cli_watch_screen_is_built(void)
{
    return true;
}

bool cli_watch_screen_run(struct cli_watch *watch, int interval_ms, bool has_color,
                          bool takes_holders, const char **why_out)
{
    struct cli_screen screen;
    struct view view = {.watch = watch, .screen = &screen, .now_ns = time_of_day_ns()};

    if (!cli_screen_begin(&screen, has_color, why_out)) {
        return false;
    }
    if (takes_holders) {
        holders_take(&view);
    }
    loop(&view, interval_ms);
    cli_watch_holders_fini(&view.holders);
    cli_screen_end(&screen);
    return true;
}

#endif
