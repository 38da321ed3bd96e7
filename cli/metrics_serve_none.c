/* SPDX-License-Identifier: MIT */
/* A build without libmicrohttpd. */
#include "metrics_serve.h"

enum cli_exit cli_metrics_serve(const struct cli_command *command, const char *place,
                                struct cli_watch *watch, const struct cli_metrics_options *options)
{
    (void)place;
    (void)watch;
    (void)options;
    return cli_fail(command, CLI_EXIT_FORMAT,
                    "--listen: this tarn was not built with libmicrohttpd");
}
