/* SPDX-License-Identifier: MIT */
/* `tarn segment_plot`: allocations in segments, as a page. */
#include "device_opt.h"
#include "overwrite.h"
#include "page_run.h"

static const struct cli_opt segment_plot_opts[] = {
    CLI_DEVICE_OPT(struct cli_page_values),
    CLI_PAGE_OUTPUT_OPT,
    CLI_FORCE_OPT(struct cli_page_values),
    CLI_PAGE_TITLE_OPT,
    CLI_PAGE_REDACT_OPT,
    {0},
};

static enum cli_exit segment_plot_run(const struct cli_call *call)
{
    return cli_page_run(call, TARN_VIEW_MAP);
}

const struct cli_command cli_command_segment_plot = {
    .name = "segment_plot",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "write an HTML page that opens with the allocations in segments",
    .details =
        "The page of \"tarn view\". It needs no network. It replaces an existing file, with\n"
        "--force or without.\n",
    .examples = "tarn segment_plot dump.pickle -o segments.html",
    .opts = segment_plot_opts,
    .values_size = sizeof(struct cli_page_values),
    .defaults = &cli_page_defaults,
    .run = segment_plot_run,
};
