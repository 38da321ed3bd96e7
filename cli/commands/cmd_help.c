/* SPDX-License-Identifier: MIT */
/* `tarn help [COMMAND]` and the texts that --help prints. */
#include "command.h"

#include <string.h>

void cli_help_program(FILE *file)
{
    (void)fputs("usage: tarn [OPTION...] COMMAND [ARGUMENT...]\n"
                "       tarn SNAPSHOT [OPTION...]\n\n"
                "GPU memory management: explains and replays PyTorch memory snapshots.\n\n"
                "Commands:\n",
                file);
    for (size_t i = 0; cli_commands[i]; i++) {
        (void)fprintf(file, "  %-12s %s\n", cli_commands[i]->name, cli_commands[i]->help);
    }
    (void)fputs("\nOptions:\n", file);
    cli_opt_print(file, cli_common_opts);
    cli_opt_print(file, cli_program_opts);
    (void)fputs("\nExit codes:\n", file);
    for (const struct cli_exit_row *row = cli_exit_rows; row->text; row++) {
        (void)fprintf(file, "  %-4d%s\n", (int)row->code, row->text);
    }
    (void)fputs(
        "\n\"tarn COMMAND --help\" explains a command, \"tarn man COMMAND\" shows its man page,\n"
        "\"tarn explain\" lists short texts about GPU memory.\n",
        file);
}

/* One line per example, indented by two spaces. */
static void examples_print(FILE *file, const char *examples)
{
    (void)fputs("\nExamples:\n", file);
    for (size_t length; *examples; examples += length + (examples[length] == '\n')) {
        length = strcspn(examples, "\n");
        (void)fprintf(file, "  %.*s\n", (int)length, examples);
    }
}

void cli_help_command(FILE *file, const struct cli_command *command)
{
    const struct cli_opt *tables[CLI_COMMAND_TABLES_MAX];

    (void)fprintf(file, "usage: tarn %s [OPTION...]%s%s\n\n%s\n", command->name,
                  command->arguments[0] ? " " : "", command->arguments, command->help);
    if (command->details) {
        (void)fprintf(file, "\n%s", command->details);
    }
    (void)fputs("\nOptions:\n", file);
    cli_command_tables(command, tables);
    for (size_t i = 0; tables[i]; i++) {
        cli_opt_print(file, tables[i]);
    }
    if (command->examples) {
        examples_print(file, command->examples);
    }
}

static enum cli_exit help_run(const struct cli_call *call)
{
    if (call->argument_count == 0) {
        cli_help_program(stdout);
        return CLI_EXIT_OK;
    }
    const struct cli_command *command = cli_command_find(call->arguments[0]);
    if (!command) {
        return cli_command_unknown(call->arguments[0]);
    }
    cli_help_command(stdout, command);
    return CLI_EXIT_OK;
}

const struct cli_command cli_command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .arguments_max = 1,
    .help = "explain a command, or list all commands",
    .examples = "tarn help peak",
    .run = help_run,
};
