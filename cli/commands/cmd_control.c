/* SPDX-License-Identifier: MIT */
/* `tarn control`: history on and off, and cached memory back, in a process that runs. */
#include "control_run.h"
#include "size_read.h"
#include "size_text.h"

#include <stdio.h>
#include <string.h>

struct control_values {
    struct cli_control_values control;
    uint64_t entries;
};

static const struct control_values control_defaults = {.control = CLI_CONTROL_DEFAULTS};

static const struct cli_opt control_opts[] = {
    {.name = "entries",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct control_values, entries),
     .value = "N",
     .help = "events that the history keeps (default: 100000)"},
    CLI_CONTROL_OPTS(struct control_values),
    {0}};

static enum cli_exit trim_run(const struct cli_call *call, int64_t process)
{
    const struct control_values *values = call->values;
    struct tarn_error error = {.offset = -1};
    uint64_t bytes;
    uint64_t reserved = 0;

    if (call->argument_count != 3 || !cli_size_read(call->arguments[2], &bytes)) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "trim needs a size, such as 10GiB");
    }
    const enum tarn_status status =
        tarn_control_trim(cli_control_folder(&values->control), process, bytes, &reserved,
                          cli_control_timeout(&values->control), &error);

    if (status) {
        return cli_control_failed(call, status, &error);
    }
    (void)printf("%s reserved\n", cli_size_text(reserved).text);
    return CLI_EXIT_OK;
}

static enum cli_exit history_run(const struct cli_call *call, int64_t process)
{
    const struct control_values *values = call->values;
    const char *word = call->argument_count == 3 ? call->arguments[2] : "";
    const bool on = strcmp(word, "on") == 0;
    struct tarn_error error = {.offset = -1};

    if (!on && strcmp(word, "off") != 0) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "history needs on or off");
    }
    const enum tarn_status status =
        tarn_control_history(cli_control_folder(&values->control), process, on, values->entries,
                             cli_control_timeout(&values->control), &error);

    return status ? cli_control_failed(call, status, &error) : CLI_EXIT_OK;
}

static enum cli_exit control_run(const struct cli_call *call)
{
    const struct control_values *values = call->values;
    int64_t process;
    const enum cli_exit code = cli_control_process(call, &values->control, &process);

    if (code) {
        return code;
    }
    if (strcmp(call->arguments[1], "trim") == 0) {
        return trim_run(call, process);
    }
    if (strcmp(call->arguments[1], "history") == 0) {
        return history_run(call, process);
    }
    return cli_fail(call->command, CLI_EXIT_USAGE, "\"%s\" is neither trim nor history",
                    call->arguments[1]);
}

static const char *const words[] = {"trim", "history", NULL};

const struct cli_command cli_command_control = {
    .name = "control",
    .arguments = "PID|NAME trim|history SIZE|on|off",
    .arguments_min = 2,
    .arguments_max = 3,
    .help = "switch history, give back cached memory, in a process that runs",
    .details = "trim SIZE: every allocator returns cached memory to the device until no more\n"
               "than SIZE is reserved, or nothing is cached. history on: events are recorded\n"
               "with their stacks, for tarn dump; off: no more, and they are forgotten.\n"
               "The process must take requests (TARN_WATCH=control). Exit code 6: no such\n"
               "process, it takes no requests, or it does not answer.\n",
    .examples = "tarn control watched trim 10GiB\n"
                "tarn control watched history on",
    .words = words,
    .is_unpaged = true,
    .prints_sizes = true,
    .opts = control_opts,
    .values_size = sizeof(struct control_values),
    .defaults = &control_defaults,
    .run = control_run,
};
