/* SPDX-License-Identifier: MIT */
/*
 * The process of `tarn`. After a fatal signal it removes half-written files and then dies of that
 * signal: to a shell that is 128 + its number, 130 when interrupted. SIGPIPE is one of them, also
 * when the parent process ignored it.
 */
#include "command.h"
#include "draft.h"
#include "huge_pages.h"
#include "json_memory.h"
#include "output.h"
#include "pager.h"
#include "program.h"
#include "progress.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void end_by_signal(int number)
{
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): it only calls unlink */
    if (!cli_draft_interrupted(number)) {
        return;
    }
    if (number == SIGINT) {
        /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): it only calls close and waitpid */
        cli_pager_interrupted();
    }
    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): it only calls write */
    cli_progress_interrupted();
    (void)signal(number, SIG_DFL);
    (void)raise(number); /* delivered when this handler returns */
}

/* SIGUSR1 asks for progress. It must not interrupt reads. */
static void answer_questions(void)
{
    struct sigaction action = {.sa_handler = cli_progress_ask, .sa_flags = SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGUSR1, &action, NULL);
}

static void end_on(int number)
{
    struct sigaction action = {.sa_handler = end_by_signal};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

/* Signals that the parent ignores (nohup) stay ignored, except SIGINT, SIGTERM and SIGPIPE. */
static void end_on_signals(void)
{
    static const int unless_ignored[] = {SIGHUP, SIGQUIT, SIGXFSZ, SIGXCPU};
    struct sigaction before;

    end_on(SIGINT);
    end_on(SIGTERM);
    end_on(SIGPIPE);
    for (size_t i = 0; i < sizeof unless_ignored / sizeof *unless_ignored; i++) {
        if (sigaction(unless_ignored[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            end_on(unless_ignored[i]);
        }
    }
}

int main(int argc, char **argv)
{
    cli_huge_pages_init();
    answer_questions();
    cli_json_memory_init();
    end_on_signals();
    const enum cli_exit code = argc > 0 ? cli_program_run(argc - 1, argv + 1) : CLI_EXIT_USAGE;
    if (!cli_output_finish()) {
        const char *reason = errno ? strerror(errno) /* NOLINT(concurrency-mt-unsafe): one thread */
                                   : "a write failed";

        return (int)cli_fail(NULL, CLI_EXIT_IO, "cannot write to standard output: %s", reason);
    }
    return (int)code;
}
