/* SPDX-License-Identifier: MIT */
/* `tarn flame`: a flame graph of one time point, or of the growth between two. */
#include "escape.h"
#include "output.h"
#include "report_run.h"
#include "select_text.h"
#include "size_text.h"
#include "trace_run.h"

struct flame_values {
    struct cli_select_values select;
    const char *output; /* NULL: not given */
    bool force;
    const char *from;
    int shape; /* position in `shapes` */
    bool folded;
    bool inverted;
};

static const struct flame_values flame_defaults = {.select = CLI_SELECT_DEFAULTS};

static const char *const shapes[] = {"icicle", "flame", NULL};

static const struct cli_opt flame_opts[] = {
    CLI_SELECT_OPTS(struct flame_values),
    {.name = "from",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct flame_values, from),
     .value = "WHEN",
     .help = "draw the growth from this time point to --at (default then: end)"},
    {.name = "inverted",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct flame_values, inverted),
     .help = "start with the allocating frames"},
    {.name = "shape",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct flame_values, shape),
     .choices = shapes,
     .help = "root at the top (icicle) or at the bottom (flame)"},
    {.name = "folded",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct flame_values, folded),
     .help = "print folded stacks for other tools to standard output"},
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct flame_values, output),
     .value = "FILE",
     .help = "output file (default: flame.svg); - is standard output"},
    CLI_FORCE_OPT(struct flame_values),
    {0},
};

struct flame_request {
    struct cli_selected selected;
    struct tarn_report_options options;
    struct tarn_flame_at_options how;
};

static enum tarn_status flame_write(const struct tarn_snapshot *snapshot, const void *context,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct flame_request *request = context;

    return tarn_report_flame_at(snapshot, &request->options, &request->how, writer, error);
}

static enum cli_exit request_read(const struct cli_call *call, struct flame_request *request)
{
    const struct flame_values *values = call->values;

    request->options =
        (struct tarn_report_options){.struct_size = sizeof request->options, .units = cli_units()};
    request->how = (struct tarn_flame_at_options){.struct_size = sizeof request->how,
                                                  .folded = values->folded,
                                                  .is_inverted = values->inverted,
                                                  .root_below = values->shape == 1};
    if (values->from && !cli_read_instant(values->from, &request->how.from)) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "option --from: \"%s\" is not a time point; allowed: as for --at",
                        cli_escaped(values->from).text);
    }
    const enum cli_exit code = cli_select_read(call->command, &values->select, &request->selected);

    cli_select_apply(&request->selected, &values->select, &request->options);
    return code;
}

static enum cli_exit flame_run(const struct cli_call *call)
{
    const struct flame_values *values = call->values;
    const char *usual = values->folded ? "-" : "flame.svg";
    const char *path = values->output ? values->output : usual;
    struct flame_request request;
    enum cli_exit code = cli_overwrite_check(call->command, path, values->force);

    if (code == CLI_EXIT_OK) {
        code = request_read(call, &request);
    }
    if (code) {
        return code;
    }
    code = cli_report_run(call, path, flame_write, &request);
    cli_select_release(&request.selected);
    return code;
}

const struct cli_command cli_command_flame = {
    .name = "flame",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "draw a flame graph of memory at a time point, or of its growth",
    .details = "The time point is the peak by default. With --from, draws how much more each\n"
               "stack holds at --at (default: the end) than at --from; stacks that shrank are\n"
               "omitted, with their sum in the title. With --by, groups come first, then their\n"
               "stacks.\n",
    .examples = "tarn flame dump.pickle -o flame.svg\n"
                "tarn flame --from start --folded dump.pickle -o -",
    .prints_sizes = true,
    .opts = flame_opts,
    .values_size = sizeof(struct flame_values),
    .defaults = &flame_defaults,
    .run = flame_run,
};
