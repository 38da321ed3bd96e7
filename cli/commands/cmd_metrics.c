/* SPDX-License-Identifier: MIT */
/* `tarn metrics`: the memory of processes for a monitoring system. */
#include "command.h"
#include "metrics.h"
#include "metrics_serve.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>

struct metrics_values {
    const char *listen;
    bool streams;
    int format; /* enum cli_om_format */
    const char *folder;
};

static const char *const formats[] = {"openmetrics", "prometheus", NULL};

static const struct cli_opt metrics_opts[] = {
    {.name = "listen",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct metrics_values, listen),
     .value = "PORT|unix:PATH",
     .help = "serve /metrics there until SIGTERM: on the loopback, or on a Unix socket"},
    {.name = "streams",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct metrics_values, streams),
     .help = "series of each stream and private pool as well: up to 384 per allocator"},
    {.name = "format",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct metrics_values, format),
     .choices = formats,
     .help = "OpenMetrics, or Prometheus' older text format"},
    {.name = "folder",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct metrics_values, folder),
     .value = "DIR",
     .help = "look there instead of in $XDG_RUNTIME_DIR"},
    {0}};

static void metrics_note_none(const struct cli_watch *watch)
{
    if (!watch->target || strcmp(watch->target, "all") == 0) {
        cli_note("no process publishes its counters: start one with TARN_WATCH=1");
    } else {
        cli_note("no process whose name contains \"%s\" publishes its counters", watch->target);
    }
}

/* The first look. */
static enum cli_exit metrics_look(const struct cli_call *call, struct cli_watch *watch)
{
    struct tarn_error error = {.offset = -1};
    const enum tarn_status status = cli_watch_refresh(watch, &error);

    if (status == TARN_ERR_NOT_FOUND) {
        return cli_fail(call->command, CLI_EXIT_IO, "%s", error.text);
    }
    return status ? cli_fail_status(call->command, status, &error, NULL) : CLI_EXIT_OK;
}

static enum cli_exit metrics_once(const struct cli_call *call, struct cli_watch *watch,
                                  const struct cli_metrics_options *options)
{
    const enum cli_exit code = metrics_look(call, watch);

    if (code) {
        return code;
    }
    if (watch->count == 0 && watch->unreadable == 0) {
        metrics_note_none(watch);
    }
    cli_metrics_print(watch, options, stdout);
    return CLI_EXIT_OK;
}

/* What would be refused once is refused before anybody asks. */
static enum cli_exit metrics_serve(const struct cli_call *call, struct cli_watch *watch,
                                   const struct cli_metrics_options *options)
{
    const struct metrics_values *values = call->values;
    const enum cli_exit code = metrics_look(call, watch);

    return code ? code : cli_metrics_serve(call->command, values->listen, watch, options);
}

static enum cli_exit metrics_run(const struct cli_call *call)
{
    const struct metrics_values *values = call->values;
    const struct cli_metrics_options options = {.format = (enum cli_om_format)values->format,
                                                .streams = values->streams};
    struct cli_watch watch = {.runtime =
                                  values->folder ? values->folder : getenv("XDG_RUNTIME_DIR"),
                              .target = call->argument_count > 0 ? call->arguments[0] : NULL,
                              .order = CLI_WATCH_BY_PID};

    if (values->listen && call->writes_file) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "--listen and -o exclude each other");
    }
    const enum cli_exit code = values->listen ? metrics_serve(call, &watch, &options)
                                              : metrics_once(call, &watch, &options);

    cli_watch_fini(&watch);
    return code;
}

static const char *const targets[] = {"all", NULL};

const struct cli_command cli_command_metrics = {
    .name = "metrics",
    .arguments = "[PID|NAME|all]",
    .arguments_max = 1,
    .help = "print the memory of processes as metrics for Prometheus",
    .details = "Prints what tarn watch shows as OpenMetrics text: the same processes, the same\n"
               "numbers. That there is no process is no error, except for a PID. A process that\n"
               "cannot be read is left out and counted in tarn_processes_unreadable. --listen\n"
               "serves them over HTTP at /metrics on the loopback: PORT, 127.0.0.1:PORT,\n"
               "[::1]:PORT, or unix:PATH, a socket of this user. Exit code 6: no such process,\n"
               "or the port or socket is in use. Names and labels: docs/metrics.md.\n",
    .examples = "tarn metrics\n"
                "tarn metrics watched --streams\n"
                "tarn metrics --format prometheus -f -o tarn.prom",
    .words = targets,
    .is_unpaged = true,
    .is_redirected = true,
    .opts = metrics_opts,
    .values_size = sizeof(struct metrics_values),
    .run = metrics_run,
};
