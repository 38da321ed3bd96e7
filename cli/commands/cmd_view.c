/* SPDX-License-Identifier: MIT */
/* `tarn view`: a snapshot, or two to compare, as an HTML page. */
#include "device_opt.h"
#include "overwrite.h"
#include "page_run.h"

static const struct cli_opt view_opts[] = {
    CLI_DEVICE_OPT(struct cli_page_values),
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_page_values, output),
     .value = "FILE",
     .help = "output file (default: SNAPSHOT.html in this directory, AFTER_diff.html of two); - is "
             "standard output"},
    CLI_FORCE_OPT(struct cli_page_values),
    CLI_PAGE_TITLE_OPT,
    CLI_PAGE_REDACT_OPT,
    {.name = "rules",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_page_values, rules),
     .value = "FILE",
     .help = "rules for colours by category, lines \"category: pattern\""},
    {.name = "empty",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_page_values, is_empty),
     .help = "write a page that opens snapshots itself, dropped on it, in the browser (default "
             "file: viewer.html)"},
    {.name = "answers",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_page_values, answers),
     .help = "replay recordings of more than 500,000 events, too, for the view Answers"},
    {.name = "no-answers",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_page_values, no_answers),
     .help = "replay none: what settings would have cost is left out"},
    {.name = "max-size",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct cli_page_values, max_bytes),
     .value = "SIZE",
     .help = "maximum size of the page (default: 64MiB), dropping the oldest events; 0 = none"},
    {0},
};

static enum cli_exit view_run(const struct cli_call *call)
{
    const struct cli_page_values *values = call->values;

    if (values->is_empty) {
        return cli_page_run_empty(call);
    }
    if (call->argument_count == 0) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "too few arguments; usage: tarn %s %s",
                        call->command->name, call->command->arguments);
    }
    return cli_page_run(call, TARN_VIEW_TIMELINE);
}

const struct cli_command cli_command_view = {
    .name = "view",
    .arguments = "SNAPSHOT [AFTER]",
    .arguments_min = 0, /* of --empty */
    .arguments_max = 2,
    .help = "write an HTML page: timeline, blocks, segments, failed requests",
    .details = "One self-contained HTML file for any browser. It needs no other file and no\n"
               "network, and can be mailed. In the page, ? lists the keys.\n"
               "With two snapshots it opens with what grew between them, by group.\n",
    .examples = "tarn view dump.pickle\n"
                "tarn view dump.pickle -o share.html --redact paths --title 'step 100'\n"
                "tarn view before.pickle after.pickle\n"
                "tarn view --empty",
    .opts = view_opts,
    .values_size = sizeof(struct cli_page_values),
    .defaults = &cli_view_defaults,
    .run = view_run,
};
