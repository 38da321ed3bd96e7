/* SPDX-License-Identifier: MIT */
#include "program.h"

#include "command.h"

#include <sys/stat.h>

/* Anything but a folder may be a snapshot. */
static bool is_file(const char *name)
{
    struct stat status;

    return stat(name, &status) == 0 && !S_ISDIR(status.st_mode);
}

enum cli_exit cli_program_run(int argc, char **argv)
{
    struct cli_program_values values = {.version = false};
    struct cli_common_values common = {.help = false};
    const struct cli_opt_set sets[] = {{cli_program_opts, &values}, {cli_common_opts, &common}};
    struct cli_opt_parser parser = {.sets = sets, .set_count = 2, .stop_early = true};
    int count = 0;

    if (!cli_opt_parse(&parser, argc, argv, &count)) {
        return cli_fail(NULL, CLI_EXIT_USAGE, "%s", parser.error);
    }
    if (values.version) {
        return cli_command_start(&cli_command_version, 0, argv, &common);
    }
    if (count == 0) {
        cli_help_program(common.help ? stdout : stderr);
        return common.help ? CLI_EXIT_OK : CLI_EXIT_USAGE;
    }
    const struct cli_command *command = cli_command_find(argv[0]);
    if (!command && is_file(argv[0])) {
        return cli_command_start(&cli_command_summary, count, argv, &common);
    }
    if (!command) {
        return cli_command_unknown(argv[0]);
    }
    return cli_command_start(command, count - 1, argv + 1, &common);
}
