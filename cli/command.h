/* SPDX-License-Identifier: MIT */
/*
 * Commands of the program. To add one:
 *
 *   1. write commands/cmd_NAME.c, which defines `const struct cli_command cli_command_NAME`: its
 *   one-line help, its option table, the struct that receives the values, and its function;
 *   2. add a row X(NAME) to CLI_COMMANDS below (and the file to cli/CMakeLists.txt).
 *
 * Parsing, --help, "did you mean", the list in `tarn help`, the man page and shell completion
 * follow from that. Tests run the examples (tests/cli/examples.sh supplies the files); the lists
 * that no test checks are in CONTRIBUTING.md. A command's function returns an exit code; results go
 * to stdout, everything else to stderr through cli_fail.
 *
 *   struct stats_values { bool json; const char *output; };
 *
 *   static const struct cli_opt stats_opts[] = {
 *       {.name = "json", .kind = CLI_OPT_FLAG, .at = offsetof(struct stats_values, json),
 *        .help = "print JSON"},
 *       {0},
 *   };
 *   static enum cli_exit stats_run(const struct cli_call *call)
 *   {
 *       const struct stats_values *values = call->values;
 *       ... call->arguments[0] ...
 *   }
 *   const struct cli_command cli_command_stats = {
 *       .name = "stats", .arguments = "FILE", .arguments_min = 1, .arguments_max = 1,
 *       .help = "print the numbers of a snapshot", .opts = stats_opts,
 *       .examples = "tarn stats dump.pickle",
 *       .values_size = sizeof(struct stats_values), .run = stats_run};
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "exit_code.h"
#include "opt.h"
#include "terminal.h"

/* In the order in which help lists them. */
#define CLI_COMMANDS(X)                                                                            \
    X(config)                                                                                      \
    X(help)                                                                                        \
    X(man)                                                                                         \
    X(explain)                                                                                     \
    X(completion)                                                                                  \
    X(export)                                                                                      \
    X(profile)                                                                                     \
    X(trim)                                                                                        \
    X(convert)                                                                                     \
    X(summary)                                                                                     \
    X(info)                                                                                        \
    X(check)                                                                                       \
    X(top)                                                                                         \
    X(peak)                                                                                        \
    X(live)                                                                                        \
    X(oom)                                                                                         \
    X(frag)                                                                                        \
    X(churn)                                                                                       \
    X(leaks)                                                                                       \
    X(steps)                                                                                       \
    X(diff)                                                                                        \
    X(ranks)                                                                                       \
    X(summarize)                                                                                   \
    X(merge)                                                                                       \
    X(flame)                                                                                       \
    X(tree)                                                                                        \
    X(stats)                                                                                       \
    X(trace)                                                                                       \
    X(segments)                                                                                    \
    X(memory)                                                                                      \
    X(compare)                                                                                     \
    X(view)                                                                                        \
    X(trace_plot)                                                                                  \
    X(segment_plot)                                                                                \
    X(replay)                                                                                      \
    X(tune)                                                                                        \
    X(fit)                                                                                         \
    X(scale)                                                                                       \
    X(run)                                                                                         \
    X(track)                                                                                       \
    X(watch)                                                                                       \
    X(metrics)                                                                                     \
    X(dump)                                                                                        \
    X(control)                                                                                     \
    X(verify)                                                                                      \
    X(version)

struct cli_command;

/* One run of a command. Everything is borrowed until the function returns. */
struct cli_call {
    const struct cli_command *command;
    const struct cli_terminal *terminal;
    const void *values; /* the command's struct of option values */
    bool writes_file;   /* -o redirects stdout to a file */
    int argument_count; /* within arguments_min and arguments_max */
    char **arguments;
};

struct cli_command {
    const char *name;
    const char *arguments; /* shown in help: "FILE", "[COMMAND]"; "" for none */
    int arguments_min;
    int arguments_max;          /* -1 = any number */
    const char *help;           /* one line, lower case, no full stop */
    const char *details;        /* more lines for the command's own help, or NULL */
    const char *examples;       /* command lines, one per line, run in order */
    const char *const *words;   /* possible arguments, for completion; NULL: file names */
    bool is_unpaged;            /* never uses the pager */
    bool prints_sizes;          /* has --units */
    bool folds_lines;           /* long lines of its text are folded on a terminal */
    bool runs_program;          /* the first argument and all after it are another program's */
    bool is_redirected;         /* has -o and -f, which redirect its output to a file */
    const struct cli_opt *opts; /* or NULL */
    const struct cli_opt_renamed *renamed; /* or NULL */
    size_t values_size;                    /* of the struct of option values */
    const void *defaults;                  /* initial option values; NULL = zero bytes */
    enum cli_exit (*run)(const struct cli_call *call);
};

#define CLI_COMMAND_DECLARE(name) extern const struct cli_command cli_command_##name;
CLI_COMMANDS(CLI_COMMAND_DECLARE)
#undef CLI_COMMAND_DECLARE

/* Options of every command, also accepted before the command. */
struct cli_common_values {
    bool help;
    bool no_pager;
    bool quiet;
    bool verbose;
    int color; /* enum cli_color */
};

extern const struct cli_opt cli_common_opts[];

/* Options of every command that reads snapshots, that is, has SNAPSHOT or BEFORE among its
 * arguments. cli_load_snapshot applies them. */
struct cli_reading_values {
    bool strict;
    bool partial;
    int progress;       /* enum cli_progress_when */
    uint64_t mem_limit; /* bytes; 0 = the library's default */
};

/* Options of commands that print sizes as text. */
struct cli_units_values {
    int units; /* enum tarn_units */
};

/* Options of commands that only print to stdout. */
struct cli_redirect_values {
    const char *output;
    bool force;
};

enum {
    CLI_COMMAND_TABLES_MAX = 6
};

/* The option tables of a command, its own first, those of all commands last; ends with NULL. */
void cli_command_tables(const struct cli_command *command,
                        const struct cli_opt *tables_out[CLI_COMMAND_TABLES_MAX]);

/* Options accepted only before the command. */
struct cli_program_values {
    bool version;
};

extern const struct cli_opt cli_program_opts[];

/* All commands; ends with NULL. */
extern const struct cli_command *const cli_commands[];

/* NULL if there is no such command. */
const struct cli_command *cli_command_find(const char *name);

/* Parses the arguments after the command's name and runs it. */
enum cli_exit cli_command_start(const struct cli_command *command, int argc, char **argv,
                                const struct cli_common_values *common);

/* Reports an unknown command on stderr, with the closest match. */
enum cli_exit cli_command_unknown(const char *name);

/* Whether the argument is a command name: "[COMMAND]". */
bool cli_command_takes_command(const struct cli_command *command);

/* Help of the program or of one command. */
void cli_help_program(FILE *file);
void cli_help_command(FILE *file, const struct cli_command *command);

/* Prints "tarn COMMAND: ..." as one line to stderr (`command` may be NULL) and returns `code`. */
__attribute__((format(printf, 3, 4))) enum cli_exit
cli_fail(const struct cli_command *command, enum cli_exit code, const char *format, ...);

/* The same for a failure of the library: prints the error's text, or else the status's, after
 * `what` (NULL: the text is enough). */
enum cli_exit cli_fail_status(const struct cli_command *command, enum tarn_status status,
                              const struct tarn_error *error, const char *what);

#endif
