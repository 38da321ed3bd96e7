/* SPDX-License-Identifier: MIT */
#include "command.h"

#include "escape.h"
#include "line_fold.h"
#include "output.h"
#include "overwrite.h"
#include "pager.h"
#include "progress.h"
#include "redirect.h"
#include "size_text.h"
#include "suggest.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const struct cli_command *const cli_commands[] = {
#define COMMAND_ROW(name) &cli_command_##name,
    CLI_COMMANDS(COMMAND_ROW)
#undef COMMAND_ROW
        NULL};

const struct cli_opt cli_common_opts[] = {
    {.name = "help",
     .letter = 'h',
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_common_values, help),
     .help = "print help and exit"},
    {.name = "color",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct cli_common_values, color),
     .choices = cli_color_choices,
     .help = "when to use colour"},
    {.name = "no-pager",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_common_values, no_pager),
     .help = "print to a terminal directly, without $PAGER"},
    {.name = "quiet",
     .letter = 'q',
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_common_values, quiet),
     .help = "print only errors on standard error"},
    {.name = "verbose",
     .letter = 'v',
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_common_values, verbose),
     .help = "report on standard error what was read, with warnings"},
    {0},
};

static const struct cli_opt reading_opts[] = {
    {.name = "strict",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_reading_values, strict),
     .help = "reject snapshots with anything unknown or unusual (exit code 3)"},
    {.name = "partial",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_reading_values, partial),
     .help = "accept a truncated snapshot: no message, exit code 0"},
    {.name = "progress",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct cli_reading_values, progress),
     .choices = cli_progress_choices,
     .help = "when to show progress on standard error"},
    {.name = "mem-limit",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct cli_reading_values, mem_limit),
     .value = "SIZE",
     .help = "memory limit for a snapshot, exit code 7 beyond (default: from its size)"},
    {0},
};

static const struct cli_opt units_opts[] = {
    {.name = "units",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct cli_units_values, units),
     .choices = cli_units_choices,
     .help = "units of sizes: powers of 1024 or 1000, or bytes; JSON always has bytes"},
    {0},
};

static const struct cli_opt redirect_opts[] = {
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_redirect_values, output),
     .value = "FILE",
     .help = "output file (default: -, standard output)"},
    CLI_FORCE_OPT(struct cli_redirect_values),
    {0},
};

const struct cli_opt cli_program_opts[] = {
    {.name = "version",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_program_values, version),
     .help = "print the version and exit"},
    {0},
};

/* '-' matches '_' in names. */
static bool name_equals(const char *name, const char *word)
{
    while (*name && (*name == *word || (*name == '_' && *word == '-'))) {
        name++;
        word++;
    }
    return *name == *word;
}

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++) {
        if (name_equals(cli_commands[i]->name, name)) {
            return cli_commands[i];
        }
    }
    return NULL;
}

/* Values of the option tables that commands share. */
struct shared_values {
    struct cli_redirect_values redirect;
    struct cli_units_values units;
    struct cli_reading_values reading;
    struct cli_common_values common;
};

static bool reads_snapshots(const struct cli_command *command)
{
    return strstr(command->arguments, "SNAPSHOT") || strstr(command->arguments, "BEFORE");
}

/* The option tables of a command, with the structs that receive the values. */
static size_t sets_make(const struct cli_command *command, void *own, struct shared_values *shared,
                        struct cli_opt_set sets[CLI_COMMAND_TABLES_MAX])
{
    const struct {
        bool is_there;
        struct cli_opt_set set;
    } all[] = {{command->opts != NULL, {command->opts, own}},
               {command->is_redirected, {redirect_opts, &shared->redirect}},
               {command->prints_sizes, {units_opts, &shared->units}},
               {reads_snapshots(command), {reading_opts, &shared->reading}},
               {true, {cli_common_opts, &shared->common}}};
    size_t count = 0;

    static_assert(sizeof all / sizeof *all < CLI_COMMAND_TABLES_MAX, "one more for the end");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].is_there) {
            sets[count++] = all[i].set;
        }
    }
    return count;
}

void cli_command_tables(const struct cli_command *command,
                        const struct cli_opt *tables_out[CLI_COMMAND_TABLES_MAX])
{
    struct cli_opt_set sets[CLI_COMMAND_TABLES_MAX];
    struct shared_values shared;
    const size_t count = sets_make(command, NULL, &shared, sets);

    for (size_t i = 0; i < count; i++) {
        tables_out[i] = sets[i].opts;
    }
    tables_out[count] = NULL;
}

bool cli_command_takes_command(const struct cli_command *command)
{
    return strcmp(command->arguments, "[COMMAND]") == 0;
}

enum cli_exit cli_fail(const struct cli_command *command, enum cli_exit code, const char *format,
                       ...)
{
    va_list args;

    (void)fprintf(stderr, "tarn%s%s: ", command ? " " : "", command ? command->name : "");
    va_start(args, format);
    cli_put_line_escaped(stderr, format, args);
    va_end(args);
    return code;
}

enum cli_exit cli_fail_status(const struct cli_command *command, enum tarn_status status,
                              const struct tarn_error *error, const char *what)
{
    if (status == TARN_ERR_IO && ferror(stdout)) { /* main reports it, with the reason */
        return CLI_EXIT_IO;
    }
    const bool has_text = error && error->status == status && error->text[0] != '\0';

    const char *text = has_text ? error->text : tarn_status_text(status);

    /* Some texts begin with the name of the file themselves. */
    return what && strncmp(text, what, strlen(what)) != 0
               ? cli_fail(command, cli_exit_from_status(status), "%s: %s", what, text)
               : cli_fail(command, cli_exit_from_status(status), "%s", text);
}

enum cli_exit cli_command_unknown(const char *name)
{
    struct cli_suggest search = {.word = name};

    for (size_t i = 0; cli_commands[i]; i++) {
        cli_suggest_offer(&search, cli_commands[i]->name);
    }
    if (strpbrk(name, "./")) {
        return cli_fail(NULL, CLI_EXIT_USAGE,
                        "\"%s\" is neither a command nor a file; \"tarn help\" lists the commands",
                        cli_escaped(name).text);
    }
    if (search.best) {
        return cli_fail(NULL, CLI_EXIT_USAGE, "unknown command \"%s\"; did you mean \"%s\"?",
                        cli_escaped(name).text, search.best);
    }
    return cli_fail(NULL, CLI_EXIT_USAGE, "unknown command \"%s\"; \"tarn help\" lists them",
                    cli_escaped(name).text);
}

/* Checks the number of arguments and runs the command. */
static enum cli_exit call_run(const struct cli_call *call)
{
    const struct cli_command *command = call->command;

    if (call->argument_count < command->arguments_min) {
        return cli_fail(command, CLI_EXIT_USAGE, "too few arguments; usage: tarn %s %s",
                        command->name, command->arguments);
    }
    if (command->arguments_max >= 0 && call->argument_count > command->arguments_max) {
        return cli_fail(command, CLI_EXIT_USAGE, "unexpected argument \"%s\"",
                        cli_escaped(call->arguments[command->arguments_max]).text);
    }
    return command->run(call);
}

/* Whether its output is for programs, or as PyTorch has it. */
static bool is_for_programs(const struct cli_call *call)
{
    static const char *const names[] = {"json", "jsonl", "csv", "md", "folded"};

    for (const struct cli_opt *opt = call->command->opts; opt && opt->name; opt++) {
        for (size_t i = 0; opt->kind == CLI_OPT_FLAG && i < sizeof names / sizeof *names; i++) {
            if (strcmp(opt->name, names[i]) == 0 &&
                *(const bool *)((const char *)call->values + opt->at)) {
                return true;
            }
        }
    }
    return false;
}

/* Runs the command, through a pager on terminals. */
static enum cli_exit call_run_paged(const struct cli_call *call, bool no_pager)
{
    struct cli_pager pager = {.child = 0};

    if (call->terminal->out_is_terminal && !no_pager && !call->command->is_unpaged) {
        cli_pager_start(&pager);
    }
    cli_line_fold_begin(call->command->folds_lines && !is_for_programs(call) ? call->terminal->width
                                                                             : 0);
    const enum cli_exit code = call_run(call);

    cli_line_fold_end();
    cli_pager_end(&pager);
    return code;
}

/* Applies the shared options and runs the command. */
static enum cli_exit call_start(const struct cli_call *parsed, const struct shared_values *shared)
{
    const struct cli_common_values *common = &shared->common;
    struct cli_terminal terminal;
    struct cli_call call = *parsed;
    struct cli_redirect redirect;
    enum cli_exit code = cli_redirect_begin(&redirect, call.command, shared->redirect.output,
                                            shared->redirect.force);

    if (code) {
        return code;
    }
    cli_terminal_init(&terminal, (enum cli_color)common->color);
    call.terminal = &terminal;
    call.writes_file = redirect.path != NULL;
    cli_units_configure((enum tarn_units)shared->units.units);
    cli_load_configure(&(struct cli_load_rules){.strict = shared->reading.strict,
                                                .partial = shared->reading.partial,
                                                .mem_limit = shared->reading.mem_limit,
                                                .quiet = common->quiet,
                                                .verbose = common->verbose});
    cli_progress_configure(cli_progress_decide((enum cli_progress_when)shared->reading.progress,
                                               terminal.err_is_terminal, getenv("TERM"),
                                               common->quiet),
                           cli_terminal_err_width());
    code = call_run_paged(&call, common->no_pager);
    return cli_redirect_end(&redirect, call.command, code);
}

enum cli_exit cli_command_start(const struct cli_command *command, int argc, char **argv,
                                const struct cli_common_values *given)
{
    struct shared_values shared = {.common = *given};
    enum cli_exit code = CLI_EXIT_OK;
    void *values = calloc(1, command->values_size + 1);
    struct cli_opt_set sets[CLI_COMMAND_TABLES_MAX];
    struct cli_opt_parser parser = {.sets = sets,
                                    .set_count = sets_make(command, values, &shared, sets),
                                    .renamed = command->renamed,
                                    .stop_early = command->runs_program};
    struct cli_call call = {.command = command, .values = values, .arguments = argv};

    if (!values) {
        return cli_fail(command, CLI_EXIT_LIMIT, "out of memory");
    }
    if (command->defaults) {
        memcpy(values, command->defaults, command->values_size);
    }
    if (!cli_opt_parse(&parser, argc, argv, &call.argument_count)) {
        code = cli_fail(command, CLI_EXIT_USAGE, "%s", parser.error);
    } else if (shared.common.help) {
        cli_help_command(stdout, command);
    } else {
        code = call_start(&call, &shared);
    }
    free(values);
    return code;
}
