/* SPDX-License-Identifier: MIT */
#include "page_ranks.h"

#include "escape.h"
#include "fleet_gather.h"
#include "output.h"
#include "overwrite.h"
#include "page_links.h"

static enum tarn_status page_put(const struct cli_call *call, struct tarn_fleet *fleet,
                                 struct cli_page_links *links, const struct tarn_writer *writer,
                                 struct tarn_error *error)
{
    const struct cli_page_values *values = call->values;
    const struct tarn_fleet_options how = {.struct_size = sizeof how,
                                           .device_total = values->device_total,
                                           .since_step = values->since_step};
    const struct tarn_view_ranks_options options = {.struct_size = sizeof options,
                                                    .title = values->title,
                                                    .find_page =
                                                        values->pages ? cli_page_links_find : NULL,
                                                    .context = links};

    return tarn_view_write_ranks(fleet, &how, &options, writer, error);
}

static int page_write(const struct cli_call *call, struct tarn_fleet *fleet, const char *path,
                      struct cli_page_links *links, int code)
{
    struct tarn_error error = {.offset = -1};
    struct cli_output output;
    const int opened = cli_output_open(&output, call->command, path);

    if (opened) {
        return opened;
    }
    const enum tarn_status status = page_put(call, fleet, links, &output.writer, &error);
    const int closed = cli_output_close(&output, call->command, status, &error, code);

    if (closed == code && !cli_output_is_stdout(path)) {
        cli_note("wrote %s", path);
    }
    return closed;
}

/* Files that cannot be used are reported, and the page is of the others. */
static int fleet_run(const struct cli_call *call, struct tarn_fleet *fleet, const char *path)
{
    const struct cli_page_values *values = call->values;
    const struct tarn_summary_options summary = {.struct_size = sizeof summary};
    const struct cli_fleet_gather gather = {
        .call = call, .labels = values->labels, .options = &summary};
    struct cli_page_links links;
    int code = CLI_EXIT_OK;

    if (values->pages && !cli_page_links_init(&links, values->pages, path)) {
        return (int)cli_fail(call->command, CLI_EXIT_IO, "no folder %s",
                             cli_escaped(values->pages).text);
    }
    if (!cli_fleet_gather(&gather, fleet, &code)) {
        return code;
    }
    return page_write(call, fleet, path, &links, code);
}

enum cli_exit cli_page_run_ranks(const struct cli_call *call)
{
    const struct cli_page_values *values = call->values;
    const char *path = values->output ? values->output : "ranks.html";
    struct tarn_error error = {.offset = -1};
    struct tarn_fleet *fleet;
    int code = (int)cli_overwrite_check(call->command, path, values->force);

    if (code) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status = tarn_fleet_create(&fleet, &error);

    code = status ? (int)cli_fail_status(call->command, status, &error, NULL)
                  : fleet_run(call, fleet, path);
    tarn_fleet_destroy(fleet);
    return (enum cli_exit)code;
}
