/* SPDX-License-Identifier: MIT */
/*
 * `tarn run`: another program, with libtarn_preload.so before it. This process becomes that
 * program: its exit status, its terminal and its signals are its own. What was asked for travels in
 * the environment (plug/preload/process.c reads it).
 */
#define _GNU_SOURCE /* readlink, execvpe's relatives */
#include "command.h"
#include "escape.h"
#include "overwrite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PRELOAD "libtarn_preload.so"

enum {
    PATH_BYTES = 4096,
    POLICY_OBSERVE = 0
};

struct run_values {
    const char *record;
    uint64_t limit;
    uint64_t events;
    int policy;
    int stacks;
    int on_signal;
    bool summary;
    bool force;
};

static const char *const policies[] = {"observe", "native", "expandable", "compact", NULL};
static const char *const stacks[] = {"unwind", "frame-pointers", "none", NULL};

static const char *const requests[] = {"none", "USR1", "USR2", NULL};

static const struct cli_opt run_opts[] = {
    {.name = "record",
     .letter = 'r',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct run_values, record),
     .value = "FILE",
     .help = "write a snapshot when the program ends: what it allocated, with C stacks"},
    {.name = "policy",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct run_values, policy),
     .choices = policies,
     .help = "who serves cudaMalloc and cudaMallocAsync: the driver (observe, the default), or "
             "tarn"},
    {.name = "limit",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct run_values, limit),
     .value = "SIZE",
     .help = "bytes that tarn serves per GPU at most; not with --policy observe"},
    {.name = "summary",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct run_values, summary),
     .help = "say on standard error at the end what was allocated, and what the number of "
             "nvidia-smi is made of (the default without --record)"},
    {.name = "stacks",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct run_values, stacks),
     .choices = stacks,
     .help = "how C stacks are captured: complete, fast, or not at all"},
    {.name = "on-signal",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct run_values, on_signal),
     .choices = requests,
     .help = "also write the snapshot whenever the program gets this signal, unless the program "
             "uses it"},
    {.name = "events",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct run_values, events),
     .value = "N",
     .help = "keep the last N events (default: 100000)"},
    CLI_FORCE_OPT(struct run_values),
    {0},
};

/* ---- what the library is told ---- */

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Where the library is, seen from the program: in a build and once installed. */
static bool preload_find(char *path, size_t size)
{
    static const char *const folders[] = {"/", "/../", "/../" TARN_RUN_LIBDIR "/", "/../lib/"};
    char own[PATH_BYTES];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    if (length <= 0) {
        return false;
    }
    own[length] = '\0';
    char *slash = strrchr(own, '/');

    if (!slash) {
        return false;
    }
    *slash = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const int done = snprintf(path, size, "%s%s" PRELOAD, own, folders[i]);

        if (done > 0 && (size_t)done < size && is_file(path)) {
            return true;
        }
    }
    return false;
}

static bool variable_set(const char *name, const char *value)
{
    return (value ? setenv(name, value, 1) : unsetenv(name)) == 0;
}

static bool number_set(const char *name, uint64_t number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return variable_set(name, number > 0 ? text : NULL);
}

/* After what is there already, which keeps its place before this library. */
static bool preload_set(const char *path)
{
    char list[3 * PATH_BYTES];
    const char *before = getenv("LD_PRELOAD");
    const bool some = before && before[0] != '\0';
    const int length =
        snprintf(list, sizeof list, "%s%s%s", some ? before : "", some ? ":" : "", path);

    return length > 0 && (size_t)length < sizeof list && variable_set("LD_PRELOAD", list);
}

/* A program may change its folder before it ends. */
static bool record_set(const char *file)
{
    char path[2 * PATH_BYTES];
    char folder[PATH_BYTES];

    if (!file || file[0] == '/') {
        return variable_set("TARN_RUN_RECORD", file);
    }
    if (!getcwd(folder, sizeof folder)) {
        return false;
    }
    const int length = snprintf(path, sizeof path, "%s/%s", folder, file);

    return length > 0 && (size_t)length < sizeof path && variable_set("TARN_RUN_RECORD", path);
}

static bool environment_set(const struct run_values *values, const char *preload)
{
    const bool summary =
        values->summary || (values->policy == POLICY_OBSERVE && values->record == NULL);

    return preload_set(preload) && record_set(values->record) &&
           variable_set("TARN_RUN_POLICY", policies[values->policy]) &&
           variable_set("TARN_RUN_STACKS", stacks[values->stacks]) &&
           variable_set("TARN_RUN_REQUEST", requests[values->on_signal]) &&
           variable_set("TARN_RUN_SUMMARY", summary ? "1" : NULL) &&
           number_set("TARN_RUN_LIMIT", values->limit) &&
           number_set("TARN_RUN_ENTRIES", values->events) &&
           number_set("TARN_RUN_LEADER", (uint64_t)getpid());
}

/* ---- the program ---- */

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text);

    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static enum cli_exit values_check(const struct cli_call *call)
{
    const struct run_values *values = call->values;
    const char *record = values->record;

    if (values->on_signal != 0 && !record) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "--on-signal needs --record FILE");
    }
    if (values->limit > 0 && values->policy == POLICY_OBSERVE) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "--limit needs --policy native, expandable or compact: observe changes "
                        "nothing");
    }
    if (record && (record[0] == '\0' || strcmp(record, "-") == 0 || ends_in(record, ".gz") ||
                   ends_in(record, ".zst") || ends_in(record, ".zstd"))) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "option --record: \"%s\" is not a name for a plain file",
                        cli_escaped(record).text);
    }
    return record ? cli_overwrite_check(call->command, record, values->force) : CLI_EXIT_OK;
}

/* Of the file that a name without a slash is found as, if it can be read easily. */
static void setuid_warn(const struct cli_call *call, const char *program)
{
    struct stat status;

    if (strchr(program, '/') && stat(program, &status) == 0 &&
        (status.st_mode & (S_ISUID | S_ISGID)) != 0) {
        (void)cli_fail(call->command, CLI_EXIT_OK,
                       "%s has the rights of its owner, so the system ignores " PRELOAD
                       ": nothing is followed",
                       cli_escaped(program).text);
    }
}

static enum cli_exit program_start(const struct cli_call *call)
{
    const size_t count = (size_t)call->argument_count;
    char **arguments = calloc(count + 1, sizeof *arguments);

    if (!arguments) {
        return cli_fail(call->command, CLI_EXIT_LIMIT, "out of host memory");
    }
    memcpy(arguments, call->arguments, count * sizeof *arguments);
    (void)execvp(arguments[0], arguments);
    const int reason = errno;
    const bool is_missing = reason == ENOENT;

    free(arguments);
    return cli_fail(call->command, is_missing ? CLI_EXIT_NOT_FOUND : CLI_EXIT_NOT_STARTED,
                    "cannot start %s: %s", cli_escaped(call->arguments[0]).text,
                    strerror(reason)); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static enum cli_exit run_run(const struct cli_call *call)
{
    char preload[PATH_BYTES];
    const enum cli_exit checked = values_check(call);

    if (checked) {
        return checked;
    }
    if (!preload_find(preload, sizeof preload)) {
        return cli_fail(call->command, CLI_EXIT_IO,
                        PRELOAD " is neither beside this program nor in ../lib: it is part of a "
                                "complete installation");
    }
    if (strpbrk(preload, " :")) {
        return cli_fail(call->command, CLI_EXIT_IO,
                        "the dynamic linker takes no library from a path with a blank or a colon: "
                        "%s",
                        cli_escaped(preload).text);
    }
    if (!environment_set(call->values, preload)) {
        return cli_fail(call->command, CLI_EXIT_LIMIT, "the environment is too large");
    }
    setuid_warn(call, call->arguments[0]);
    return program_start(call);
}

const struct cli_command cli_command_run = {
    .name = "run",
    .arguments = "PROGRAM [ARGUMENT]...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "run any CUDA program, and see or serve its memory",
    .details = "The program is not changed: a library that is loaded before it stands in for the\n"
               "driver's memory functions, however the program finds them. Its exit code and\n"
               "signals are passed on; 127 if there is no such program, 126 if it cannot be\n"
               "started. Processes that it starts are followed as well, and write files of\n"
               "their own, with the process id before the ending.\n",
    .examples = "tarn run --record run.pickle -- true\n"
                "tarn run --summary --policy native --limit 20GiB -- true",
    .opts = run_opts,
    .values_size = sizeof(struct run_values),
    .is_unpaged = true,
    .runs_program = true,
    .run = run_run,
};
