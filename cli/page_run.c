/* SPDX-License-Identifier: MIT */
#include "page_run.h"

#include "device_opt.h"
#include "output.h"
#include "overwrite.h"
#include "report_run.h"
#include "select_opt.h"
#include "size_text.h"

#include <inttypes.h>
#include <string.h>

#define PAGE_MAX ((uint64_t)64 << 20)

enum {
    NAME_MAX_BYTES = 256
};

const struct cli_page_values cli_page_defaults = {
    .device = CLI_DEVICE_ALL, .output = "output.html", .force = true};
const struct cli_page_values cli_view_defaults = {
    .device = CLI_DEVICE_ALL, .max_bytes = PAGE_MAX, .names_output = true};

const char *const cli_page_redact_choices[] = {"nothing", "paths", "all", NULL};

static enum tarn_status page_write(const struct tarn_snapshot *snapshot, const void *context,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    return tarn_view_write(snapshot, context, writer, error);
}

/* What a limit on the page's size has cost. */
static void note_dropped(uint64_t dropped, uint64_t max_bytes)
{
    if (dropped > 0) {
        cli_note("the page leaves out the oldest %" PRIu64 " %s to stay within %s; its figures are "
                 "those of the rest (--max-size 0 keeps all)",
                 dropped, dropped == 1 ? "event" : "events", cli_size_text(max_bytes).text);
    }
}

/* The file name of a snapshot without its directory: "dump.pickle.gz". */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (strcmp(path, "-") == 0) {
        return "snapshot";
    }
    return slash && slash[1] ? slash + 1 : path;
}

/* "dump.html" for "folder/dump.pickle.gz": the file name up to its first dot. */
static const char *output_name(char name[NAME_MAX_BYTES], const char *path)
{
    const char *file = file_name(path);
    size_t length = strcspn(file, ".");

    length = length > 0 ? length : strlen(file);
    length = length < NAME_MAX_BYTES - 6 ? length : NAME_MAX_BYTES - 6;
    memcpy(name, file, length);
    memcpy(name + length, ".html", sizeof ".html");
    return name;
}

enum cli_exit cli_page_run(const struct cli_call *call, enum tarn_view view)
{
    const struct cli_page_values *values = call->values;
    const char *path = call->arguments[0];
    struct tarn_view_options options = {.struct_size = sizeof options,
                                        .view = view,
                                        .redact = (enum tarn_view_redact)values->redact,
                                        .title = values->title ? values->title : file_name(path),
                                        .max_bytes = values->max_bytes};
    char name[NAME_MAX_BYTES];
    uint64_t dropped = 0;

    const char *output = values->output ? values->output : output_name(name, path);
    struct tarn_rules *rules = NULL;
    enum cli_exit code = cli_overwrite_check(call->command, output, values->force);

    if (code == CLI_EXIT_OK) {
        code = cli_rules_load(call->command, values->rules, &rules);
    }
    options.rules = rules;
    options.dropped_out = &dropped;
    options.one_device = cli_device_is_given(values->device, &options.device);
    code = code ? code : cli_report_run(call, output, page_write, &options);
    if (code == CLI_EXIT_OK && values->names_output && !cli_output_is_stdout(output)) {
        cli_note("wrote %s", output);
    }
    if (code == CLI_EXIT_OK) {
        note_dropped(dropped, values->max_bytes);
    }
    tarn_rules_destroy(rules);
    return code;
}
