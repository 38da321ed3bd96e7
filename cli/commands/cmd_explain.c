/* SPDX-License-Identifier: MIT */
/* `tarn explain [TOPIC]`: short texts about the terms in the other commands' output. */
#include "command.h"
#include "explain_topics.h"
#include "suggest.h"

static enum cli_exit topics_list(void)
{
    for (size_t i = 0; cli_topics[i].name; i++) {
        (void)printf("%-20s %s\n", cli_topics[i].name, cli_topics[i].about);
    }
    (void)fputs("\n\"tarn explain TOPIC\" prints one of them.\n", stdout);
    return CLI_EXIT_OK;
}

static enum cli_exit topic_unknown(const struct cli_call *call)
{
    struct cli_suggest search = {.word = call->arguments[0]};

    for (size_t i = 0; cli_topics[i].name; i++) {
        cli_suggest_offer(&search, cli_topics[i].name);
    }
    if (search.best) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "unknown topic \"%s\"; did you mean \"%s\"?",
                        search.word, search.best);
    }
    return cli_fail(call->command, CLI_EXIT_USAGE,
                    "unknown topic \"%s\"; \"tarn explain\" lists them", search.word);
}

static enum cli_exit explain_run(const struct cli_call *call)
{
    if (call->argument_count == 0) {
        return topics_list();
    }
    const struct cli_topic *topic = cli_topic_find(call->arguments[0]);

    if (!topic) {
        return topic_unknown(call);
    }
    const char *bold = cli_terminal_style(call->terminal, CLI_STYLE_BOLD);
    const char *plain = cli_terminal_style(call->terminal, CLI_STYLE_PLAIN);

    (void)printf("%s%s: %s%s\n\n%s", bold, topic->name, topic->about, plain, topic->text);
    return CLI_EXIT_OK;
}

const struct cli_command cli_command_explain = {
    .name = "explain",
    .arguments = "[TOPIC]",
    .arguments_max = 1,
    .help = "explain a term of GPU memory management, or list the topics",
    .details = "Short texts about the terms in the output of other commands: fragmentation,\n"
               "rounding, why nvidia-smi shows another number, and so on.\n",
    .examples = "tarn explain\n"
                "tarn explain fragmentation",
    .words = cli_topic_names,
    .run = explain_run,
};
