/* SPDX-License-Identifier: MIT */
#include "opt.h"

#include "escape.h"
#include "size_read.h"
#include "suggest.h"
#include "tarn/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELP_COLUMN = 28,
    HELP_WIDTH = 80,
    SET_MAX = 64 /* options with values of one command; those beyond are not compared */
};

/* State of one parse. */
struct cursor {
    struct cli_opt_parser *parser;
    int argc;
    char **argv;
    int at;                   /* index of the next argument */
    const void *set[SET_MAX]; /* where values were stored */
    int set_count;
};

/* An option found in a table, and where its value is stored. */
struct match {
    const struct cli_opt *opt;
    void *target;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct cli_opt_parser *parser,
                                                       const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(parser->error, sizeof parser->error, format, args);
    va_end(args);
    return false;
}

static void append(char *text, size_t size, const char *more)
{
    const size_t used = strlen(text);

    (void)snprintf(text + used, size - used, "%s", more);
}

/* Whether the first `length` characters of the argument are that name, '_' being '-'. */
static bool name_equals(const char *name, const char *argument, size_t length)
{
    if (strlen(name) != length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (name[i] != (argument[i] == '_' ? '-' : argument[i])) {
            return false;
        }
    }
    return true;
}

static bool match_set(struct match *match, const struct cli_opt_set *set, const struct cli_opt *opt)
{
    match->opt = opt;
    match->target = (char *)set->values + opt->at;
    return true;
}

static bool find_long(const struct cli_opt_parser *parser, const char *argument, size_t length,
                      struct match *match)
{
    for (size_t i = 0; i < parser->set_count; i++) {
        for (const struct cli_opt *opt = parser->sets[i].opts; opt->name; opt++) {
            if (name_equals(opt->name, argument, length)) {
                return match_set(match, &parser->sets[i], opt);
            }
        }
    }
    return false;
}

static bool find_short(const struct cli_opt_parser *parser, char letter, struct match *match)
{
    for (size_t i = 0; i < parser->set_count; i++) {
        for (const struct cli_opt *opt = parser->sets[i].opts; opt->name; opt++) {
            if (opt->letter == letter) {
                return match_set(match, &parser->sets[i], opt);
            }
        }
    }
    return false;
}

/* Lists every long name for a message, and finds the closest match of `search`. */
static void list_names(const struct cli_opt_parser *parser, char *list, size_t size,
                       struct cli_suggest *search)
{
    list[0] = '\0';
    for (size_t i = 0; i < parser->set_count; i++) {
        for (const struct cli_opt *opt = parser->sets[i].opts; opt->name; opt++) {
            append(list, size, list[0] ? ", --" : "--");
            append(list, size, opt->name);
            cli_suggest_offer(search, opt->name);
        }
    }
}

static bool fail_unknown_long(struct cli_opt_parser *parser, const char *argument, size_t length)
{
    char word[64];
    char list[512];
    struct cli_suggest search = {.word = word};

    (void)tarn_text_escape(argument, length, TARN_TEXT_PLAIN, word, sizeof word);
    for (const struct cli_opt_renamed *row = parser->renamed; row && row->old; row++) {
        if (name_equals(row->old, argument, length)) {
            return fail(parser, "option --%s is now %s", row->old, row->now);
        }
    }
    list_names(parser, list, sizeof list, &search);
    if (search.best) {
        return fail(parser, "unknown option --%s (did you mean --%s?); allowed: %s", word,
                    search.best, list);
    }
    return fail(parser, "unknown option --%s; allowed: %s", word, list);
}

static bool fail_unknown_short(struct cli_opt_parser *parser, char letter)
{
    char list[512];
    struct cli_suggest search = {.word = ""};

    list_names(parser, list, sizeof list, &search);
    return fail(parser, "unknown option -%c; allowed: %s", letter, list);
}

/* A decimal or 0x number up to *end_out; false when there is none or it is too large. */
static bool read_number(const char *text, uint64_t *number_out, const char **end_out)
{
    const bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    char *end = NULL;

    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    const unsigned long long number = strtoull(text, &end, hexadecimal ? 16 : 10);
    *number_out = number;
    *end_out = end;
    return errno == 0;
}

static bool read_real(const char *text, double *real_out)
{
    char *end = NULL;
    const double real = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(real)) {
        return false;
    }
    *real_out = real;
    return true;
}

static bool set_choice(struct cli_opt_parser *parser, const struct match *match, const char *text)
{
    char list[256] = "";

    for (int i = 0; match->opt->choices[i]; i++) {
        if (strcmp(match->opt->choices[i], text) == 0) {
            *(int *)match->target = i;
            return true;
        }
        append(list, sizeof list, list[0] ? ", " : "");
        append(list, sizeof list, match->opt->choices[i]);
    }
    return fail(parser, "option --%s: \"%s\" is not one of: %s", match->opt->name,
                cli_escaped(text).text, list);
}

static bool add_text(struct cli_opt_parser *parser, const struct match *match, const char *text)
{
    struct cli_opt_texts *texts = match->target;

    if (texts->count == CLI_OPT_TEXTS_MAX) {
        return fail(parser, "option --%s is given more than %d times", match->opt->name,
                    CLI_OPT_TEXTS_MAX);
    }
    texts->items[texts->count++] = text;
    return true;
}

static bool set_value(struct cli_opt_parser *parser, const struct match *match, const char *text)
{
    const char *const name = match->opt->name;
    const char *end = NULL;

    switch (match->opt->kind) {
    case CLI_OPT_FLAG:
        return fail(parser, "option --%s takes no value", name);
    case CLI_OPT_TEXT:
        *(const char **)match->target = text;
        return true;
    case CLI_OPT_TEXTS:
        return add_text(parser, match, text);
    case CLI_OPT_NUMBER:
        if (read_number(text, match->target, &end) && *end == '\0') {
            return true;
        }
        return fail(parser, "option --%s: \"%s\" is not a whole number%s%s", name,
                    cli_escaped(text).text, match->opt->hint ? "; " : "",
                    match->opt->hint ? match->opt->hint : "");
    case CLI_OPT_SIZE:
        if (cli_size_read(text, match->target)) {
            return true;
        }
        return fail(parser, "option --%s: \"%s\" is not a size; allowed: " CLI_SIZE_ALLOWED, name,
                    cli_escaped(text).text);
    case CLI_OPT_REAL:
        if (read_real(text, match->target)) {
            return true;
        }
        return fail(parser, "option --%s: \"%s\" is not a number", name, cli_escaped(text).text);
    case CLI_OPT_CHOICE:
        return set_choice(parser, match, text);
    }
    return false;
}

/* The second of two values would silently win. */
static bool is_repeated(struct cursor *cursor, const struct match *match)
{
    if (match->opt->kind == CLI_OPT_TEXTS) {
        return false;
    }
    for (int i = 0; i < cursor->set_count; i++) {
        if (cursor->set[i] == match->target) {
            return true;
        }
    }
    if (cursor->set_count < SET_MAX) {
        cursor->set[cursor->set_count++] = match->target;
    }
    return false;
}

/* Sets the option from `text`, or from the next argument when `text` is NULL. */
static bool take_value(struct cursor *cursor, const struct match *match, const char *text)
{
    if (!text && match->opt->kind == CLI_OPT_FLAG) {
        *(bool *)match->target = true;
        return true;
    }
    if (!text && cursor->at == cursor->argc) {
        return fail(cursor->parser, "option --%s needs a value", match->opt->name);
    }
    if (is_repeated(cursor, match)) {
        return fail(cursor->parser, "option --%s is given twice, and takes one value",
                    match->opt->name);
    }
    return set_value(cursor->parser, match, text ? text : cursor->argv[cursor->at++]);
}

static bool take_long(struct cursor *cursor, const char *argument)
{
    const size_t length = strcspn(argument, "=");
    struct match match;

    if (!find_long(cursor->parser, argument, length, &match)) {
        return fail_unknown_long(cursor->parser, argument, length);
    }
    return take_value(cursor, &match, argument[length] == '=' ? argument + length + 1 : NULL);
}

/* One letter, or several flags; the last letter may take the rest as its value. */
static bool take_short(struct cursor *cursor, const char *letters)
{
    for (; *letters; letters++) {
        struct match match;

        if (!find_short(cursor->parser, *letters, &match)) {
            return fail_unknown_short(cursor->parser, *letters);
        }
        if (match.opt->kind != CLI_OPT_FLAG) {
            return take_value(cursor, &match, letters[1] ? letters + 1 : NULL);
        }
        *(bool *)match.target = true;
    }
    return true;
}

bool cli_opt_parse(struct cli_opt_parser *parser, int argc, char **argv, int *argument_count_out)
{
    struct cursor cursor = {.parser = parser, .argc = argc, .argv = argv};
    bool ended = false;
    int kept = 0;

    while (cursor.at < argc) {
        char *argument = argv[cursor.at++];
        bool good = true;

        if (ended || argument[0] != '-' || argument[1] == '\0') {
            argv[kept++] = argument;
            ended = ended || parser->stop_early;
        } else if (strcmp(argument, "--") == 0) {
            ended = true;
        } else if (argument[1] == '-') {
            good = take_long(&cursor, argument + 2);
        } else {
            good = take_short(&cursor, argument + 1);
        }
        if (!good) {
            return false;
        }
    }
    *argument_count_out = kept;
    return true;
}

/* "--color auto|always|never" */
static void print_choices(char *text, size_t size, const struct cli_opt *opt)
{
    for (int i = 0; opt->choices[i]; i++) {
        append(text, size, i == 0 ? " " : "|");
        append(text, size, opt->choices[i]);
    }
}

void cli_opt_left(const struct cli_opt *opt, char *left, size_t size)
{
    left[0] = '\0';
    if (opt->letter) {
        (void)snprintf(left, size, "-%c, ", opt->letter);
    }
    append(left, size, "--");
    append(left, size, opt->name);
    if (opt->kind == CLI_OPT_CHOICE && !opt->value) {
        print_choices(left, size, opt);
    } else if (opt->value) {
        append(left, size, " ");
        append(left, size, opt->value);
    }
}

/* Wraps the text within its column and ends the line. */
static void print_wrapped(FILE *file, const char *text)
{
    size_t column = HELP_COLUMN;

    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
            (void)fprintf(file, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            (void)fputc(' ', file);
            column++;
        }
        (void)fprintf(file, "%.*s", (int)length, text);
        column += length;
    }
    (void)fputc('\n', file);
}

void cli_opt_print(FILE *file, const struct cli_opt *opts)
{
    for (const struct cli_opt *opt = opts; opt->name; opt++) {
        char left[CLI_OPT_LEFT_MAX];
        char line[CLI_OPT_LEFT_MAX + 8];

        cli_opt_left(opt, left, sizeof left);
        (void)snprintf(line, sizeof line, "%s%s", opt->letter ? "  " : "      ", left);
        if (strlen(line) > HELP_COLUMN - 2) {
            (void)fprintf(file, "%s\n%*s", line, HELP_COLUMN, "");
        } else {
            (void)fprintf(file, "%-*s", HELP_COLUMN, line);
        }
        print_wrapped(file, opt->help);
    }
}
