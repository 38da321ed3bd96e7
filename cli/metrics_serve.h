/* SPDX-License-Identifier: MIT */
/* Serves metrics over HTTP. metrics_serve_none.c is for builds without libmicrohttpd. */
#ifndef CLI_METRICS_SERVE_H
#define CLI_METRICS_SERVE_H

#include "command.h"
#include "metrics.h"

/* Answers requests for /metrics, each with what the processes publish then, until SIGTERM
 * (CLI_EXIT_OK) or SIGINT (CLI_EXIT_INTERRUPTED). A client chooses the format by its header Accept;
 * `options` has that of clients that do not care. `place` is as cli_listener_open takes it, and
 * failures are as it reports them. CLI_EXIT_FORMAT when this build cannot serve. */
enum cli_exit cli_metrics_serve(const struct cli_command *command, const char *place,
                                struct cli_watch *watch, const struct cli_metrics_options *options);

#endif
