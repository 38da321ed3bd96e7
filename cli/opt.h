/* SPDX-License-Identifier: MIT */
/*
 * Options of a command from one table: a row gives the name, where the value goes and its help, and
 * both parsing and the --help text follow from it. Understood: --name, --name=value, --name value,
 * `_` for `-`, -x, -xvalue, -x value, flags together (-ab), `--` to end options; "-" is an
 * argument.
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
    CLI_OPT_TEXTS,  /* struct cli_opt_texts: may be given again, each adds one */
    CLI_OPT_NUMBER, /* uint64_t: decimal, or hexadecimal with 0x */
    CLI_OPT_SIZE,   /* uint64_t: bytes, or a number with KiB, MiB, GiB, TiB, KB, MB, GB, TB */
    CLI_OPT_REAL,   /* double: finite */
    CLI_OPT_CHOICE, /* int: position in `choices` */
};

enum {
    CLI_OPT_TEXTS_MAX = 64
};

/* Values of an option that may be given several times. */
struct cli_opt_texts {
    const char *items[CLI_OPT_TEXTS_MAX];
    int count;
};

/* A table ends with a row without name. */
struct cli_opt {
    const char *name; /* without dashes, words joined by '-' */
    char letter;      /* short alias or 0 */
    enum cli_opt_kind kind;
    size_t at;                  /* offsetof the value in the command's struct of values */
    const char *value;          /* how help names the value: "FILE"; NULL for flags and choices */
    const char *help;           /* one line, lower case, no full stop */
    const char *const *choices; /* for CLI_OPT_CHOICE: words, NULL at the end */
};

/* A table and the struct that its rows write to. */
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
    bool stop_early;               /* end at the first argument that is no option */
    char error[CLI_OPT_ERROR_MAX]; /* one line, set when parsing fails */
};

/* Reads argv[0..argc). Arguments that are no options are moved to the front of argv in their order,
 * and *argument_count_out is their number. With `stop_early`, the first of them and all that
 * follows it are moved. False with `error` set on the first wrong one; values set before stay set.
 * */
bool cli_opt_parse(struct cli_opt_parser *parser, int argc, char **argv, int *argument_count_out);

enum {
    CLI_OPT_LEFT_MAX = 256
};

/* The option as help shows it: "-o, --output FILE", "--color auto|always|never". */
void cli_opt_left(const struct cli_opt *opt, char *left, size_t size);

/* Bytes that a unit stands for: "", KiB to TiB, KB or kB to TB; false when there is none of that
 * name. */
bool cli_opt_unit(const char *unit, uint64_t *bytes_out);

/* Prints one line a row: "  -o, --output FILE    help". */
void cli_opt_print(FILE *file, const struct cli_opt *opts);

#endif
