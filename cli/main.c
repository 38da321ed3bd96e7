/* SPDX-License-Identifier: MIT */
/*
 * The program `tarn`: reads the options before the command and hands over to it. Dies silently when
 * the reader of its output goes away; ends with 130 when interrupted.
 */
#include "command.h"
#include "json_memory.h"
#include "pager.h"
#include "progress.h"

#include <signal.h>
#include <unistd.h>

static void end_interrupted(int signal_number)
{
    (void)signal_number;
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): it only calls close and waitpid */
    cli_pager_interrupted();
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): it only calls write */
    cli_progress_interrupted();
    _exit(CLI_EXIT_INTERRUPTED);
}

static enum cli_exit program_run(int argc, char **argv)
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
    if (!command) {
        return cli_command_unknown(argv[0]);
    }
    return cli_command_start(command, count - 1, argv + 1, &common);
}

/* Whoever waits may ask how far it is. Reads are not interrupted by it. */
static void answer_questions(void)
{
    struct sigaction action = {.sa_handler = cli_progress_ask, .sa_flags = SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR1, &action, NULL);
}

int main(int argc, char **argv)
{
    answer_questions();
    cli_json_memory_init();
    (void)signal(SIGPIPE, SIG_DFL); /* also when the parent process ignored it */
    (void)signal(SIGINT, end_interrupted);
    const enum cli_exit code = argc > 0 ? program_run(argc - 1, argv + 1) : CLI_EXIT_USAGE;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return (int)cli_fail(NULL, CLI_EXIT_IO, "cannot write the output");
    }
    return (int)code;
}
