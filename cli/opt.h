/* SPDX-License-Identifier: MIT */
/*
 * Table-driven options of a command: a row has the name, the location of the value and the help
 * text; parsing and --help both use it. Accepted forms: --name, --name=value, --name value, `_` for
 * `-`, -x, -xvalue, -x value, combined flags (-ab), `--` to end options; "-" is an argument. An
 * option with a value is given once, unless it collects several.
 */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cli_opt_kind {
    CLI_OPT_FLAG,   /* bool: true when given */
    CLI_OPT_TEXT,   /* const char *: the argument itself */
    CLI_OPT_TEXTS,  /* struct cli_opt_texts: may be repeated, each adds one */
    CLI_OPT_NUMBER, /* uint64_t: decimal, or hexadecimal with 0x */
    CLI_OPT_SIZE,   /* uint64_t: as cli_size_read takes it */
    CLI_OPT_REAL,   /* double: finite */
    CLI_OPT_CHOICE, /* int: position in `choices` */
};

enum {
    CLI_OPT_TEXTS_MAX = 64
};

/* Values of a repeatable option. */
struct cli_opt_texts {
    const char *items[CLI_OPT_TEXTS_MAX];
    int count;
};

/* A table ends with a row without a name. */
struct cli_opt {
    const char *name; /* without leading dashes, words joined by '-' */
    char letter;      /* short alias or 0 */
    enum cli_opt_kind kind;
    size_t at;         /* offset of the value in the command's struct */
    const char *value; /* as help names it: "FILE"; NULL for flags, or to list the choices */
    const char *help;  /* one line, lower case, no full stop */
    const char *const *choices; /* for CLI_OPT_CHOICE: words, NULL at the end */
    const char *hint;           /* added to the message about a wrong value, or NULL */
};

/* A name that an option had. A table ends with a row without one. */
struct cli_opt_renamed {
    const char *old;
    const char *now; /* with its dashes */
};

/* A table and the struct that receives the values. */
struct cli_opt_set {
    const struct cli_opt *opts;
    void *values;
};

enum {
    CLI_OPT_ERROR_MAX = 1024
};

struct cli_opt_parser {
    const struct cli_opt_set *sets;
    size_t set_count;
    const struct cli_opt_renamed *renamed; /* or NULL */
    bool stop_early;                       /* stop at the first argument that is not an option */
    char error[CLI_OPT_ERROR_MAX];         /* one line, set when parsing fails */
};

/* Reads argv[0..argc). Arguments that are not options are moved to the front of argv in order, and
 * *argument_count_out is their number. With `stop_early`, the first of them and everything after it
 * is moved. On the first invalid option, returns false with `error` set; earlier values stay
 * set. */
bool cli_opt_parse(struct cli_opt_parser *parser, int argc, char **argv, int *argument_count_out);

enum {
    CLI_OPT_LEFT_MAX = 256
};

/* The option's spelling in help: "-o, --output FILE", "--color auto|always|never". */
void cli_opt_left(const struct cli_opt *opt, char *left, size_t size);

/* Prints "-o, --output FILE   help" for each row, wrapped at 80 columns. */
void cli_opt_print(FILE *file, const struct cli_opt *opts);

#endif
