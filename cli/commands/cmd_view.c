/* SPDX-License-Identifier: MIT */
/* `tarn view`: a snapshot, two to compare, or many ranks, as an HTML page. */
#include "device_opt.h"
#include "fleet_files.h"
#include "overwrite.h"
#include "page_ranks.h"

static const struct cli_opt view_opts[] = {
    CLI_DEVICE_OPT(struct cli_page_values),
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_page_values, output),
     .value = "FILE",
     .help = "output file (default: SNAPSHOT.html in this directory, AFTER_diff.html of two, "
             "ranks.html of ranks); - is standard output"},
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
    {.name = "ranks",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_page_values, ranks),
     .help = "a page of many ranks: snapshots, summaries, folders of them, or @LIST"},
    {.name = "pages",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_page_values, pages),
     .value = "DIR",
     .help = "with --ranks: link to a rank's own page where it is in this folder"},
    {.name = "labels",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_page_values, labels),
     .value = "FILE",
     .help = "with --ranks: CSV with more labels, as of \"tarn ranks\""},
    {.name = "device-total",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct cli_page_values, device_total),
     .value = "SIZE",
     .help = "with --ranks: memory of each device, for the ranks that fail first"},
    {.name = "since-step",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_page_values, since_step),
     .value = "N",
     .help = "with --ranks: show growth since the end of this step"},
    {0},
};

/* An option that was given and does not apply, or NULL: to ignore --redact would give away what
 * somebody meant to keep. */
static const char *option_out_of_place(const struct cli_page_values *values)
{
    const struct {
        const char *name;
        bool is_given;
        bool is_of_ranks;
    } options[] = {{"--device", values->device != CLI_DEVICE_ALL, false},
                   {"--redact", values->redact != 0, false},
                   {"--rules", values->rules != NULL, false},
                   {"--empty", values->is_empty, false},
                   {"--answers", values->answers, false},
                   {"--no-answers", values->no_answers, false},
                   {"--max-size", values->max_bytes != cli_view_defaults.max_bytes, false},
                   {"--pages", values->pages != NULL, true},
                   {"--labels", values->labels != NULL, true},
                   {"--device-total", values->device_total != 0, true},
                   {"--since-step", values->since_step != 0, true}};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i].is_given && options[i].is_of_ranks != values->ranks) {
            return options[i].name;
        }
    }
    return NULL;
}

static enum cli_exit view_run(const struct cli_call *call)
{
    const struct cli_page_values *values = call->values;
    const char *wrong = option_out_of_place(values);

    if (wrong) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        values->ranks ? "%s does not go with --ranks" : "%s needs --ranks", wrong);
    }
    if (values->is_empty) {
        return cli_page_run_empty(call);
    }
    if (call->argument_count == 0) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "too few arguments; usage: tarn %s %s",
                        call->command->name, call->command->arguments);
    }
    if (values->ranks) {
        return cli_page_run_ranks(call);
    }
    if (call->argument_count > TARN_VIEW_RUNS_MAX) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "a page compares two snapshots; give --ranks for one of more");
    }
    return cli_page_run(call, TARN_VIEW_TIMELINE);
}

const struct cli_command cli_command_view = {
    .name = "view",
    .arguments = "SNAPSHOT [AFTER]",
    .arguments_min = 0,  /* of --empty */
    .arguments_max = -1, /* of --ranks */
    .help = "write an HTML page: timeline, blocks, segments, failed requests",
    .details = "One self-contained HTML file for any browser. It needs no other file and no\n"
               "network, and can be mailed. In the page, ? lists the keys.\n"
               "With two snapshots it opens with what grew between them, by group.\n"
               "With --ranks it is a page of a fleet: memory of each rank over time, those that\n"
               "stand out, and what \"tarn ranks\" says of them.\n" CLI_FLEET_DETAILS,
    .examples = "tarn view dump.pickle\n"
                "tarn view dump.pickle -o share.html --redact paths --title 'step 100'\n"
                "tarn view before.pickle dump.pickle\n"
                "tarn view --ranks --pages pages all.tsum -o fleet.html",
    .opts = view_opts,
    .values_size = sizeof(struct cli_page_values),
    .defaults = &cli_view_defaults,
    .run = view_run,
};
