/* SPDX-License-Identifier: MIT */
/* `tarn trace_plot`: memory over time, as a page. -f is PyTorch's, so --force has no letter. */
#include "device_opt.h"
#include "page_run.h"

static const struct cli_opt trace_plot_opts[] = {
    CLI_DEVICE_OPT(struct cli_page_values),
    CLI_PAGE_OUTPUT_OPT,
    {.name = "force",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_page_values, force),
     .help = "replace an existing file (the default)"},
    CLI_PAGE_TITLE_OPT,
    CLI_PAGE_REDACT_OPT,
    {.name = "segments",
     .letter = 's',
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_page_values, segments),
     .help = "show segments over time instead of allocations"},
    {.name = "filter_freed",
     .letter = 'f',
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_page_values, filter_freed),
     .help = "leave out allocations that the trace frees"},
    {0},
};

static enum cli_exit trace_plot_run(const struct cli_call *call)
{
    const struct cli_page_values *values = call->values;

    return cli_page_run(call, values->segments ? TARN_VIEW_SEGMENTS : TARN_VIEW_TIMELINE);
}

const struct cli_command cli_command_trace_plot = {
    .name = "trace_plot",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "write an HTML page that opens with memory over time",
    .details =
        "The page of \"tarn view\". It needs no network. It replaces an existing file, with\n"
        "--force or without.\n",
    .examples = "tarn trace_plot dump.pickle -o timeline.html",
    .opts = trace_plot_opts,
    .values_size = sizeof(struct cli_page_values),
    .defaults = &cli_page_defaults,
    .run = trace_plot_run,
};
