/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include "size_text.h"
#include "tarn/text.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHOWN_AFTER 0.3 /* seconds */
#define SHOWN_EVERY 0.1

enum {
    NAME_COLUMNS = 32,
    WIDTH_LEAST = 20
};

const char *const cli_progress_choices[] = {"auto", "always", "never", NULL};

static struct {
    bool is_shown;
    unsigned width;
} rules;

/* Used by signal handlers. */
static volatile sig_atomic_t is_asked;
static volatile sig_atomic_t is_there;

bool cli_progress_decide(enum cli_progress_when when, bool is_terminal, const char *term,
                         bool is_quiet)
{
    if (when != CLI_PROGRESS_AUTO) {
        return when == CLI_PROGRESS_ALWAYS;
    }
    return is_terminal && !is_quiet && term && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

void cli_progress_configure(bool is_shown, unsigned width)
{
    rules.is_shown = is_shown;
    rules.width = width < WIDTH_LEAST ? WIDTH_LEAST : width;
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- the line ---- */

struct line {
    char *text;
    int used;
};

__attribute__((format(printf, 2, 3))) static void put(struct line *line, const char *format, ...)
{
    const size_t room = (size_t)(CLI_PROGRESS_LINE_MAX - line->used);
    va_list args;

    va_start(args, format);
    const int more = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    line->used += more < 0 ? 0 : more < (int)room ? more : (int)room - 1;
}

/* The escaped file name without its directory, as far as it fits. */
static void name_put(struct line *line, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash && slash[1] ? slash + 1 : path;
    char shown[NAME_COLUMNS + 1];

    (void)tarn_text_escape(name, strlen(name), TARN_TEXT_PLAIN, shown, sizeof shown);
    put(line, " %s", shown);
}

static void amount_put(struct line *line, bool is_bytes, uint64_t amount)
{
    if (is_bytes) {
        put(line, "%s", cli_size_text(amount).text);
    } else {
        put(line, "%" PRIu64, amount);
    }
}

int cli_progress_text(char text[CLI_PROGRESS_LINE_MAX], const struct cli_progress *progress,
                      uint64_t done, uint64_t total, double seconds, unsigned width)
{
    const double rate = seconds > 0 ? (double)done / seconds : 0;
    struct line line = {.text = text};

    put(&line, "%s", progress->what);
    if (progress->name) {
        name_put(&line, progress->name);
    }
    put(&line, ": ");
    if (total > 0) {
        put(&line, "%.0f %%, ", 100.0 * (double)done / (double)total);
    }
    amount_put(&line, progress->is_bytes, done);
    if (total > 0) {
        put(&line, " of ");
        amount_put(&line, progress->is_bytes, total);
    }
    if (progress->is_bytes && rate > 0) {
        put(&line, ", %.0f MB/s", rate / 1e6);
    }
    if (total >= done && rate > 0) {
        put(&line, ", %.0f s left", (double)(total - done) / rate);
    }
    if ((unsigned)line.used > width) {
        line.used = (int)tarn_text_fit(text, width);
        text[line.used] = '\0';
    }
    return line.used;
}

/* ---- work ---- */

/* Overwrites the line; an empty one erases it. */
static void line_show(struct cli_progress *progress, const char *line, int length)
{
    const int blanks = progress->length > length ? progress->length - length : 0;

    (void)fprintf(stderr, "\r%s%*s", line, blanks, "");
    if (length == 0) {
        (void)fputc('\r', stderr);
    }
    (void)fflush(stderr);
    progress->length = length;
    is_there = length > 0;
}

static bool report(void *context, uint64_t done, uint64_t total)
{
    struct cli_progress *progress = context;
    char line[CLI_PROGRESS_LINE_MAX];
    const double now = seconds_now();
    const bool is_due = rules.is_shown && now - progress->begin >= SHOWN_AFTER &&
                        now - progress->shown >= SHOWN_EVERY;

    if (!is_due && !is_asked) {
        return true;
    }
    const int length =
        cli_progress_text(line, progress, done, total, now - progress->begin, rules.width);

    if (is_asked) {
        is_asked = 0;
        cli_progress_end(progress);
        (void)fprintf(stderr, "tarn: %s\n", line);
    } else {
        line_show(progress, line, length);
        progress->shown = now;
    }
    return true;
}

struct tarn_progress cli_progress_begin(struct cli_progress *progress, const char *what,
                                        const char *name, bool is_bytes)
{
    *progress = (struct cli_progress){
        .what = what, .name = name, .is_bytes = is_bytes, .begin = seconds_now()};
    return (struct tarn_progress){.report = report, .context = progress};
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->length > 0) {
        line_show(progress, "", 0);
        progress->shown = 0;
    }
}

void cli_progress_ask(int signal_number)
{
    (void)signal_number;
    is_asked = 1;
}

void cli_progress_interrupted(void)
{
    if (is_there) {
        (void)!write(STDERR_FILENO, "\n", 1);
    }
}
