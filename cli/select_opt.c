/* SPDX-License-Identifier: MIT */
#include "select_opt.h"

#include "escape.h"
#include "select_text.h"

const char *const cli_frames_choices[] = {"all", "python", "cpp", "own", NULL};

const char *const cli_by_choices[] = {"stack",      "frame",    "function", "file",    "line",
                                      "category",   "stream",   "pool",     "segment", "size",
                                      "annotation", "metadata", "compile",  "module",  NULL};

static enum cli_exit bad(const struct cli_command *command, const char *option, const char *text,
                         const char *allowed)
{
    return cli_fail(command, CLI_EXIT_USAGE, "option --%s: \"%s\" is not %s", option,
                    cli_escaped(text).text, allowed);
}

static enum cli_exit selection_read(const struct cli_command *command,
                                    const struct cli_select_values *values,
                                    struct tarn_selection *out)
{
    *out = (struct tarn_selection){
        .struct_size = sizeof *out,
        .one_stream = values->stream != UINT64_MAX,
        .stream = values->stream,
        .size_min = values->min_size,
        .size_max = values->max_size,
        .match = values->match,
        .annotation = values->annotation,
        .frames = (enum tarn_frames)values->frames,
        .hide = values->hide,
        .depth = values->depth > UINT32_MAX ? UINT32_MAX : (uint32_t)values->depth,
    };
    if (values->pool && !cli_read_pool(values->pool, out)) {
        return bad(command, "pool", values->pool, "a pool; allowed: default, private, or A,B");
    }
    if (values->events && !cli_read_span(values->events, &out->events)) {
        return bad(command, "events", values->events, "a part of a trace, such as 100..200");
    }
    if (values->time && !cli_read_time_span(values->time, &out->time_us)) {
        return bad(command, "time", values->time,
                   "a time range, such as 1.5..2 (seconds) or 300ms..");
    }
    if (values->step && !cli_read_span(values->step, &out->steps)) {
        return bad(command, "step", values->step, "a step, such as 3, or steps, such as 3..5");
    }
    if (values->at && !cli_read_instant(values->at, &out->at)) {
        return bad(command, "at", values->at,
                   "a time point; allowed: peak, reserved-peak, start, end, oom[:N], event:N, "
                   "time:T, step:N");
    }
    return CLI_EXIT_OK;
}

enum cli_exit cli_rules_load(const struct cli_command *command, const char *path,
                             struct tarn_rules **rules_out)
{
    struct tarn_error error = {.offset = -1};

    *rules_out = NULL;
    if (!path) {
        return CLI_EXIT_OK;
    }
    const enum tarn_status status = tarn_rules_load(path, rules_out, &error);

    return status ? cli_fail_status(command, status, &error, NULL) : CLI_EXIT_OK;
}

static enum cli_exit where_read(const struct cli_command *command,
                                const struct cli_select_values *values,
                                struct cli_selected *selected)
{
    struct tarn_error error = {.offset = -1};
    const enum tarn_status status =
        values->where ? tarn_where_parse(values->where, &selected->where, &error) : TARN_OK;

    selected->selection.where = selected->where;
    if (status == TARN_ERR_LIMIT) { /* a limit of the expression, not of the machine */
        return cli_fail(command, CLI_EXIT_USAGE, "option --where: %s", error.text);
    }
    return status ? cli_fail_status(command, status, &error, "option --where") : CLI_EXIT_OK;
}

enum cli_exit cli_select_read(const struct cli_command *command,
                              const struct cli_select_values *values, struct cli_selected *selected)
{
    *selected = (struct cli_selected){.rules = NULL};
    enum cli_exit code = selection_read(command, values, &selected->selection);

    if (code == CLI_EXIT_OK) {
        code = where_read(command, values, selected);
    }
    if (code == CLI_EXIT_OK) {
        code = cli_rules_load(command, values->rules, &selected->rules);
    }
    if (code) {
        cli_select_release(selected);
    }
    return code;
}

void cli_select_release(struct cli_selected *selected)
{
    tarn_where_destroy(selected->where);
    tarn_rules_destroy(selected->rules);
}

void cli_select_apply(const struct cli_selected *selected, const struct cli_select_values *values,
                      struct tarn_report_options *options)
{
    options->selection = &selected->selection;
    options->rules = selected->rules;
    options->full_stacks = values->full_stacks;
    options->by = (enum tarn_grouping)values->by;
    options->one_device = cli_device_is_given(values->device, &options->device);
}

bool cli_select_narrows(const struct cli_select_values *values)
{
    const char *const texts[] = {values->pool, values->match, values->annotation, values->where,
                                 values->hide, values->time,  values->events,     values->step,
                                 values->at,   values->rules};
    bool narrows = values->device != CLI_DEVICE_ALL || values->stream != UINT64_MAX ||
                   values->min_size > 0 || values->max_size > 0 || values->frames != 0 ||
                   values->depth > 0 || values->by != 0;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        narrows = narrows || texts[i];
    }
    return narrows;
}
