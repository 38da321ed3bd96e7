/* SPDX-License-Identifier: MIT */
/* `tarn completion SHELL`: a shell script that completes commands, options and their values. */
#include "command.h"
#include "completion.h"
#include "suggest.h"

#include <string.h>

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static enum cli_exit shell_unknown(const struct cli_call *call)
{
    struct cli_suggest search = {.word = call->arguments[0]};

    for (size_t i = 0; shells[i]; i++) {
        cli_suggest_offer(&search, shells[i]);
    }
    return cli_fail(call->command, CLI_EXIT_USAGE,
                    "unknown shell \"%s\"%s%s%s; allowed: bash, zsh, fish", search.word,
                    search.best ? "; did you mean \"" : "", search.best ? search.best : "",
                    search.best ? "\"?" : "");
}

static enum cli_exit completion_run(const struct cli_call *call)
{
    static void (*const writers[])(FILE *) = {cli_completion_bash, cli_completion_zsh,
                                              cli_completion_fish};

    for (size_t i = 0; shells[i]; i++) {
        if (strcmp(shells[i], call->arguments[0]) == 0) {
            writers[i](stdout);
            return CLI_EXIT_OK;
        }
    }
    return shell_unknown(call);
}

const struct cli_command cli_command_completion = {
    .name = "completion",
    .arguments = "SHELL",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "print the completion script for bash, zsh or fish",
    .details = "For bash, add to ~/.bashrc:    source <(tarn completion bash)\n"
               "For zsh, add to ~/.zshrc:      source <(tarn completion zsh)\n"
               "For fish:                      tarn completion fish | source\n"
               "\n"
               "`make install` installs them for all three shells.\n",
    .examples = "tarn completion bash > tarn.bash",
    .words = shells,
    .is_unpaged = true,
    .run = completion_run,
};
