/* SPDX-License-Identifier: MIT */
/* `tarn dump`: a snapshot of a process that runs. */
#include "command.h"
#include "control_run.h"
#include "output.h"
#include "overwrite.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct dump_values {
    struct cli_control_values control;
    const char *output;
    bool force;
};

static const struct dump_values dump_defaults = {.control = CLI_CONTROL_DEFAULTS};

static const struct cli_opt dump_opts[] = {
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct dump_values, output),
     .value = "FILE",
     .help = "write it there; .gz and .zst compress (default: tarn-PID.pickle)"},
    {.name = "force",
     .letter = 'f',
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct dump_values, force),
     .help = "replace an existing file"},
    CLI_CONTROL_OPTS(struct dump_values),
    {0}};

enum {
    PATH_BYTES = 1024
};

/* The process that writes has another current folder. */
static bool path_make(char path_out[PATH_BYTES], const char *name)
{
    char folder[PATH_BYTES];

    if (name[0] != '/' && !getcwd(folder, sizeof folder)) {
        return false;
    }
    const int length = name[0] == '/' ? snprintf(path_out, PATH_BYTES, "%s", name)
                                      : snprintf(path_out, PATH_BYTES, "%s/%s", folder, name);

    return length > 0 && length < PATH_BYTES;
}

static enum cli_exit dump_run(const struct cli_call *call)
{
    const struct dump_values *values = call->values;
    struct tarn_error error = {.offset = -1};
    char name[64];
    char path[PATH_BYTES];
    int64_t process;

    enum cli_exit code = cli_control_process(call, &values->control, &process);

    if (code) {
        return code;
    }
    (void)snprintf(name, sizeof name, "tarn-%lld.pickle", (long long)process);
    if (!path_make(path, values->output ? values->output : name)) {
        return cli_fail(call->command, CLI_EXIT_IO, "the path is too long");
    }
    if (access(path, F_OK) == 0 && !values->force) {
        return cli_fail(call->command, CLI_EXIT_IO, "%s exists; -f replaces it", path);
    }
    if (values->force) {
        (void)unlink(path);
    }
    const enum tarn_status status =
        tarn_control_snapshot(cli_control_folder(&values->control), process, path,
                              cli_control_timeout(&values->control), &error);

    if (status) {
        return cli_control_failed(call, status, &error);
    }
    (void)printf("%s\n", path);
    return CLI_EXIT_OK;
}

const struct cli_command cli_command_dump = {
    .name = "dump",
    .arguments = "PID|NAME",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "write a snapshot of a process that runs",
    .details = "The process writes the file itself and goes on. It must take requests\n"
               "(TARN_WATCH=control). The snapshot has a history if that is on: see\n"
               "tarn help control. Exit code 6: no such process, it takes no requests, or it\n"
               "does not answer.\n",
    .examples = "tarn dump watched\n"
                "tarn dump watched -f -o now.pickle.gz",
    .is_unpaged = true,
    .opts = dump_opts,
    .values_size = sizeof(struct dump_values),
    .defaults = &dump_defaults,
    .run = dump_run,
};
