/* SPDX-License-Identifier: MIT */
/*
 * The process of `tarn`. Dies silently when the reader of its output goes away; ends with 130 when
 * interrupted.
 */
#include "command.h"
#include "pager.h"
#include "program.h"
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
    (void)signal(SIGPIPE, SIG_DFL); /* also when the parent process ignored it */
    (void)signal(SIGINT, end_interrupted);
    const enum cli_exit code = argc > 0 ? cli_program_run(argc - 1, argv + 1) : CLI_EXIT_USAGE;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return (int)cli_fail(NULL, CLI_EXIT_IO, "cannot write the output");
    }
    return (int)code;
}
