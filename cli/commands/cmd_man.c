/* SPDX-License-Identifier: MIT */
/*
 * `tarn man [COMMAND]`: man pages, generated from the tables of commands and options. On a terminal
 * through `man`, otherwise as roff.
 */
#include "command.h"
#include "output.h"
#include "pager.h"
#include "roff.h"
#include "tarn/writer.h"

#include <string.h>

struct man_values {
    const char *folder;
};

static const struct cli_opt man_opts[] = {
    {.name = "folder",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct man_values, folder),
     .value = "FOLDER",
     .help = "write all pages to this directory, as tarn.1 and tarn-COMMAND.1"},
    {0},
};

static void exit_codes_put(struct cli_roff *roff)
{
    char code[16];

    cli_roff_section(roff, "EXIT STATUS");
    for (const struct cli_exit_row *row = cli_exit_rows; row->text; row++) {
        (void)snprintf(code, sizeof code, "%d", (int)row->code);
        cli_roff_item(roff, code, row->text);
    }
}

static void environment_put(struct cli_roff *roff)
{
    cli_roff_section(roff, "ENVIRONMENT");
    cli_roff_item(roff, "PAGER", "program that shows long output on a terminal; default: less");
    cli_roff_item(roff, "NO_COLOR", "disables colour, unless --color enables it");
    cli_roff_item(roff, "CLICOLOR_FORCE", "enables colour even if the output is not a terminal");
    cli_roff_item(roff, "COLUMNS", "width of the terminal");
    cli_roff_item(roff, "TARN_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF",
                  "allocator settings that \"tarn config --env\" explains");
}

static void program_put(struct cli_roff *roff)
{
    cli_roff_begin(roff, "tarn", "explains and replays PyTorch memory snapshots");
    cli_roff_section(roff, "SYNOPSIS");
    cli_roff_text(roff, "tarn [OPTION...] COMMAND [ARGUMENT...]\n");
    cli_roff_section(roff, "DESCRIPTION");
    cli_roff_text(roff, "tarn shows how a recorded run used GPU memory. It reads files written by\n"
                        "torch.cuda.memory._dump_snapshot and needs neither a GPU nor Python.\n"
                        "Nothing in a file is imported or called. Results go to standard output,\n"
                        "everything else to standard error.\n");
    cli_roff_section(roff, "COMMANDS");
    for (size_t i = 0; cli_commands[i]; i++) {
        cli_roff_item(roff, cli_commands[i]->name, cli_commands[i]->help);
    }
    cli_roff_section(roff, "OPTIONS");
    cli_roff_opts(roff, cli_common_opts);
    cli_roff_opts(roff, cli_program_opts);
    exit_codes_put(roff);
    environment_put(roff);
    cli_roff_section(roff, "SEE ALSO");
    cli_roff_text(roff, "Each command has its own page: tarn-peak(1) and so on.\n");
}

static void command_put(struct cli_roff *roff, const struct cli_command *command)
{
    const struct cli_opt *tables[CLI_COMMAND_TABLES_MAX];
    char name[64];
    char line[256];

    (void)snprintf(name, sizeof name, "tarn-%s", command->name);
    (void)snprintf(line, sizeof line, "tarn %s [OPTION...] %s\n", command->name,
                   command->arguments);
    cli_roff_begin(roff, name, command->help);
    cli_roff_section(roff, "SYNOPSIS");
    cli_roff_text(roff, line);
    if (command->details) {
        cli_roff_section(roff, "DESCRIPTION");
        cli_roff_text(roff, command->details);
    }
    cli_roff_section(roff, "OPTIONS");
    cli_command_tables(command, tables);
    for (size_t i = 0; tables[i]; i++) {
        cli_roff_opts(roff, tables[i]);
    }
    exit_codes_put(roff);
    if (command->examples) {
        cli_roff_section(roff, "EXAMPLES");
        cli_roff_code(roff, command->examples);
    }
    cli_roff_section(roff, "SEE ALSO");
    cli_roff_text(roff, "tarn(1)\n");
}

static void page_put(struct cli_roff *roff, const struct cli_command *command)
{
    if (command) {
        command_put(roff, command);
    } else {
        program_put(roff);
    }
}

/* Writes the page of the program (NULL) or a command to a file in that directory. */
static enum tarn_status page_save(const char *folder, const struct cli_command *command,
                                  struct tarn_error *error)
{
    char path[4096];
    struct cli_output output;

    (void)snprintf(path, sizeof path, "%s/tarn%s%s.1", folder, command ? "-" : "",
                   command ? command->name : "");
    const enum tarn_status status = cli_output_begin(&output, path, error);

    if (status) {
        return status;
    }
    struct cli_roff roff = {.writer = output.writer};

    page_put(&roff, command);
    return cli_output_end(&output, roff.status, error);
}

static enum cli_exit pages_save(const struct cli_call *call, const char *folder)
{
    struct tarn_error error = {.offset = -1};
    enum tarn_status status = page_save(folder, NULL, &error);

    for (size_t i = 0; status == TARN_OK && cli_commands[i]; i++) {
        status = page_save(folder, cli_commands[i], &error);
    }
    return status ? cli_fail_status(call->command, status, &error, NULL) : CLI_EXIT_OK;
}

static enum cli_exit man_run(const struct cli_call *call)
{
    static const char *const reader[] = {"man", "-l", "-", NULL};
    const struct man_values *values = call->values;
    const struct cli_command *command = NULL;
    struct cli_roff roff = {.writer = cli_output_writer()};
    struct cli_pager pager = {.child = 0};

    if (values->folder) {
        return call->argument_count == 0
                   ? pages_save(call, values->folder)
                   : cli_fail(call->command, CLI_EXIT_USAGE,
                              "--folder writes all pages and takes no command");
    }
    if (call->argument_count > 0) {
        command = cli_command_find(call->arguments[0]);
        if (!command) {
            return cli_command_unknown(call->arguments[0]);
        }
    }
    if (call->terminal->out_is_terminal) {
        (void)cli_pager_start_program(&pager, reader);
    }
    page_put(&roff, command);
    cli_pager_end(&pager);
    return CLI_EXIT_OK;
}

const struct cli_command cli_command_man = {
    .name = "man",
    .arguments = "[COMMAND]",
    .arguments_max = 1,
    .help = "show the man page of a command, or of the program",
    .details = "On a terminal man(1) shows the page, if it is installed. Otherwise the output is\n"
               "roff, for \"man -l -\" or a file.\n",
    .examples = "tarn man peak > tarn-peak.1\n"
                "mkdir pages && tarn man --folder pages",
    .opts = man_opts,
    .values_size = sizeof(struct man_values),
    .is_unpaged = true,
    .run = man_run,
};
