/* SPDX-License-Identifier: MIT */
/* `tarn control`: history, cached memory and sleep of a process that runs. */
#include "control_run.h"
#include "size_read.h"
#include "size_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct control_values {
    struct cli_control_values control;
    uint64_t entries;
    bool discard;
};

static const struct control_values control_defaults = {.control = CLI_CONTROL_DEFAULTS};

static const struct cli_opt control_opts[] = {
    {.name = "entries",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct control_values, entries),
     .value = "N",
     .help = "events that the history keeps (default: 100000)"},
    {.name = "discard",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct control_values, discard),
     .help = "the pool's contents are not kept while it sleeps"},
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

/* Digits up to `end`; NULL if something else is there. */
static const char *number_read(const char *text, char end, uint64_t *number_out)
{
    char *rest = NULL;

    *number_out = strtoull(text, &rest, 10);
    return *text >= '0' && *text <= '9' && *rest == end ? rest : NULL;
}

/* FIRST,SECOND as tarn watch shows it. */
static bool pool_read(const struct cli_call *call, struct tarn_pool_id *pool_out)
{
    const char *comma =
        call->argument_count == 3 ? number_read(call->arguments[2], ',', &pool_out->first) : NULL;

    return comma && number_read(comma + 1, '\0', &pool_out->second);
}

static enum cli_exit sleep_run(const struct cli_call *call, int64_t process, bool sleeps)
{
    const struct control_values *values = call->values;
    const char *folder = cli_control_folder(&values->control);
    const uint32_t timeout = cli_control_timeout(&values->control);
    struct tarn_error error = {.offset = -1};
    struct tarn_pool_id pool;

    if (!pool_read(call, &pool)) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "%s needs a pool, such as 0,1",
                        call->arguments[1]);
    }
    const enum tarn_status status =
        sleeps ? tarn_control_sleep(folder, process, pool, values->discard, timeout, &error)
               : tarn_control_wake(folder, process, pool, timeout, &error);

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
    if (strcmp(call->arguments[1], "sleep") == 0 || strcmp(call->arguments[1], "wake") == 0) {
        return sleep_run(call, process, call->arguments[1][0] == 's');
    }
    return cli_fail(call->command, CLI_EXIT_USAGE,
                    "\"%s\" is neither trim, history, sleep nor wake", call->arguments[1]);
}

static const char *const words[] = {"trim", "history", "sleep", "wake", NULL};

const struct cli_command cli_command_control = {
    .name = "control",
    .arguments = "PID|NAME trim|history|sleep|wake VALUE",
    .arguments_min = 2,
    .arguments_max = 3,
    .help = "switch history, give memory back, in a process that runs",
    .details = "trim SIZE: every allocator returns cached memory to the device until no more\n"
               "than SIZE is reserved, or nothing is cached. history on: events are recorded\n"
               "with their stacks, for tarn dump; off: no more, and they are forgotten.\n"
               "sleep POOL: the memory of a private pool, 0,1 as tarn watch shows it, goes\n"
               "back to the device; wake POOL: it returns to its addresses, with its contents.\n"
               "Only for a program that expects it: work on memory that is asleep fails.\n"
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
