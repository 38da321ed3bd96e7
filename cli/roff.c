/* SPDX-License-Identifier: MIT */
#include "roff.h"

#include <string.h>

static void put(struct cli_roff *roff, const char *bytes, size_t size)
{
    if (roff->status == TARN_OK && size > 0) {
        roff->status = roff->writer.write(roff->writer.context, bytes, size);
    }
}

static void puts_plain(struct cli_roff *roff, const char *text)
{
    put(roff, text, strlen(text));
}

/* The escape for a character that is special to roff, or NULL. */
static const char *escape_of(char c)
{
    switch (c) {
    case '\\':
        return "\\e";
    case '-':
        return "\\-";
    case '\'':
        return "\\(aq";
    case '`':
        return "\\(ga";
    case '^':
        return "\\(ha";
    case '~':
        return "\\(ti";
    case '"':
        return "\\(dq";
    default:
        return NULL;
    }
}

/* Text within a line; a leading dot or quote would be a macro. */
static void puts_escaped(struct cli_roff *roff, const char *text, size_t length)
{
    if (length > 0 && text[0] == '.') {
        puts_plain(roff, "\\&");
    }
    for (size_t i = 0; i < length; i++) {
        const char *const escape = escape_of(text[i]);

        if (escape) {
            puts_plain(roff, escape);
        } else {
            put(roff, text + i, 1);
        }
    }
}

void cli_roff_begin(struct cli_roff *roff, const char *name, const char *about)
{
    puts_plain(roff, ".TH ");
    for (const char *c = name; *c; c++) {
        char upper = *c;

        if (upper >= 'a' && upper <= 'z') {
            upper = (char)(upper - 'a' + 'A');
        }
        puts_escaped(roff, &upper, 1);
    }
    puts_plain(roff, " 1 \"\" \"tarn " TARN_VERSION_STRING "\" \"User Commands\"\n");
    cli_roff_section(roff, "NAME");
    puts_escaped(roff, name, strlen(name));
    puts_plain(roff, " \\- ");
    puts_escaped(roff, about, strlen(about));
    puts_plain(roff, "\n");
}

void cli_roff_section(struct cli_roff *roff, const char *name)
{
    puts_plain(roff, ".SH ");
    puts_plain(roff, name);
    puts_plain(roff, "\n");
}

static void lines_put(struct cli_roff *roff, const char *lines, bool as_they_are)
{
    bool is_code = as_they_are;
    bool is_new = false; /* the next line starts a paragraph */

    if (is_code) {
        puts_plain(roff, ".nf\n");
    }
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        const bool wants_code = as_they_are || (length > 0 && lines[0] == ' ');

        if (length == 0) {
            is_new = true;
            continue;
        }
        if (is_code && !wants_code) {
            puts_plain(roff, ".fi\n");
        }
        if (is_new || is_code != wants_code) {
            puts_plain(roff, ".PP\n");
        }
        if (wants_code && !is_code) {
            puts_plain(roff, ".nf\n");
        }
        is_code = wants_code;
        is_new = false;
        puts_escaped(roff, lines, length);
        puts_plain(roff, "\n");
    }
    if (is_code) {
        puts_plain(roff, ".fi\n");
    }
}

void cli_roff_text(struct cli_roff *roff, const char *lines)
{
    lines_put(roff, lines, false);
}

void cli_roff_code(struct cli_roff *roff, const char *lines)
{
    lines_put(roff, lines, true);
}

void cli_roff_item(struct cli_roff *roff, const char *word, const char *text)
{
    puts_plain(roff, ".TP\n.B ");
    puts_escaped(roff, word, strlen(word));
    puts_plain(roff, "\n");
    puts_escaped(roff, text, strlen(text));
    puts_plain(roff, "\n");
}

void cli_roff_opts(struct cli_roff *roff, const struct cli_opt *opts)
{
    for (const struct cli_opt *opt = opts; opt->name; opt++) {
        char left[CLI_OPT_LEFT_MAX];

        cli_opt_left(opt, left, sizeof left);
        cli_roff_item(roff, left, opt->help);
    }
}
