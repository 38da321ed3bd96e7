/* SPDX-License-Identifier: MIT */
#include "page_run.h"

#include "device_opt.h"
#include "report_run.h"

const struct cli_page_values cli_page_defaults = {.device = CLI_DEVICE_ALL,
                                                  .output = "output.html"};

struct page_run {
    enum tarn_page_view view;
    struct tarn_page_options options;
};

static enum tarn_status page_write(const struct tarn_snapshot *snapshot, const void *context,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct page_run *run = context;

    return tarn_report_page(snapshot, run->view, &run->options, writer, error);
}

enum cli_exit cli_page_run(const struct cli_call *call, enum tarn_page_view view)
{
    const struct cli_page_values *values = call->values;
    struct page_run run = {.view = view, .options = {.struct_size = sizeof run.options}};

    run.options.one_device = cli_device_is_given(values->device, &run.options.device);
    return cli_report_run(call, values->output, page_write, &run);
}
