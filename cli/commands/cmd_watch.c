/* SPDX-License-Identifier: MIT */
/* `tarn watch`: the memory of processes while they run. */
#include "command.h"
#include "escape.h"
#include "output.h"
#include "screen.h"
#include "watch_holders.h"
#include "watch_screen.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct watch_values {
    bool once;
    bool json;
    bool holders;
    int order; /* enum cli_watch_order */
    double interval;
    const char *folder;
};

static const struct watch_values watch_defaults = {.interval = 0.5};

static const struct cli_opt watch_opts[] = {
    {.name = "once",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct watch_values, once),
     .help = "print what there is as text, as is done without a terminal"},
    {.name = "json",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct watch_values, json),
     .help = "print it as JSON, once"},
    {.name = "holders",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct watch_values, holders),
     .help = "also who holds most of the memory now, from a snapshot that the process writes"},
    {.name = "sort",
     .kind = CLI_OPT_CHOICE,
     .at = offsetof(struct watch_values, order),
     .choices = cli_watch_orders,
     .help = "order of processes"},
    {.name = "interval",
     .kind = CLI_OPT_REAL,
     .at = offsetof(struct watch_values, interval),
     .value = "SECONDS",
     .help = "between two looks, 0.05 to 60 (default: 0.5)"},
    {.name = "folder",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct watch_values, folder),
     .value = "DIR",
     .help = "look there instead of in $XDG_RUNTIME_DIR"},
    {0}};

/* A line on stdout. */
static void line_print(void *context, enum cli_style style, const char *text)
{
    const struct cli_terminal *terminal = context;

    (void)printf("%s%s%s\n", cli_terminal_style(terminal, style), text,
                 style == CLI_STYLE_PLAIN ? "" : cli_terminal_style(terminal, CLI_STYLE_PLAIN));
}

/* False: the process cannot be asked. */
static bool holders_print(const struct cli_watch_lines *lines, const struct cli_watch *watch,
                          const struct cli_watch_process *process)
{
    struct cli_watch_holders holders = {.process = 0};

    cli_watch_holders_take(&holders, watch, process, lines);
    cli_watch_put_holders(lines, &holders);
    const bool was_taken = holders.was_taken;

    cli_watch_holders_fini(&holders);
    return was_taken;
}

static enum cli_exit text_print(const struct cli_call *call, const struct cli_watch *watch)
{
    const struct watch_values *values = call->values;
    enum cli_exit code = CLI_EXIT_OK;
    struct cli_terminal terminal = *call->terminal;
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    const struct cli_watch_lines lines = {.context = &terminal,
                                          .put = line_print,
                                          .width = terminal.width,
                                          .is_utf8 = terminal.out_is_utf8,
                                          .now_ns = (uint64_t)now.tv_sec * 1000000000u +
                                                    (uint64_t)now.tv_nsec};

    cli_watch_put_headings(&lines);
    for (uint32_t i = 0; i < watch->count; i++) {
        cli_watch_put_process(&lines, watch->processes[i]);
    }
    for (uint32_t i = 0; i < watch->count; i++) {
        (void)printf("\nprocess %lld, %s\n", (long long)watch->processes[i]->head.process,
                     cli_escaped(watch->processes[i]->head.program).text);
        cli_watch_put_details(&lines, watch->processes[i]);
        if (values->holders && !holders_print(&lines, watch, watch->processes[i])) {
            code = CLI_EXIT_IO;
        }
    }
    if (watch->left_out > 0) {
        cli_note("%u more processes are not shown", watch->left_out);
    }
    return code;
}

/* A second look a little later, for what happens per second. */
static enum tarn_status look_twice(struct cli_watch *watch, struct tarn_error *error)
{
    const struct timespec pause = {.tv_nsec = 100000000};

    (void)nanosleep(&pause, NULL);
    return cli_watch_refresh(watch, error);
}

static enum cli_exit watch_show(const struct cli_call *call, struct cli_watch *watch)
{
    const struct watch_values *values = call->values;
    const bool wants_screen = !values->once && !values->json && cli_screen_is_possible();
    struct tarn_error error = {.offset = -1};
    const char *why = NULL;

    if (wants_screen && cli_watch_screen_is_built()) {
        return cli_watch_screen_run(watch, (int)(values->interval * 1000),
                                    call->terminal->out_color, values->holders, &why)
                   ? CLI_EXIT_OK
                   : cli_fail(call->command, CLI_EXIT_USAGE, "%s; --once prints text", why);
    }
    if (values->json) {
        cli_watch_print_json(watch, stdout);
        return CLI_EXIT_OK;
    }
    if (wants_screen) {
        cli_note("this build has no terminal view, since ncurses was missing");
    }
    const enum tarn_status status = look_twice(watch, &error);

    if (status) {
        return cli_fail_status(call->command, status, &error, NULL);
    }
    return text_print(call, watch);
}

/* None at all: how to have one. */
static enum cli_exit watch_nothing(const struct cli_call *call, const struct cli_watch *watch)
{
    if (watch->target && strcmp(watch->target, "all") != 0) {
        return cli_fail(call->command, CLI_EXIT_IO,
                        "no process of this user whose name contains \"%s\" can be watched",
                        watch->target);
    }
    return cli_fail(call->command, CLI_EXIT_IO,
                    "no process of this user can be watched: start one with TARN_WATCH=1, or call "
                    "tarn_watch_start");
}

static enum cli_exit watch_run(const struct cli_call *call)
{
    const struct watch_values *values = call->values;
    struct cli_watch watch = {.runtime =
                                  values->folder ? values->folder : getenv("XDG_RUNTIME_DIR"),
                              .target = call->argument_count > 0 ? call->arguments[0] : NULL,
                              .order = (enum cli_watch_order)values->order};
    struct tarn_error error = {.offset = -1};
    enum cli_exit code;

    if (!(values->interval >= 0.05 && values->interval <= 60)) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "--interval is 0.05 to 60 seconds");
    }
    if (values->holders && values->json) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "--json has no holders: \"tarn dump\" writes a snapshot, and \"tarn top "
                        "--json\" reads it");
    }
    const enum tarn_status status = cli_watch_refresh(&watch, &error);

    if (status == TARN_ERR_NOT_FOUND) {
        code = cli_fail(call->command, CLI_EXIT_IO, "%s", error.text);
    } else if (status) {
        code = cli_fail_status(call->command, status, &error, NULL);
    } else {
        code = watch.count == 0 ? watch_nothing(call, &watch) : watch_show(call, &watch);
    }
    cli_watch_fini(&watch);
    return code;
}

static const char *const targets[] = {"all", NULL};

const struct cli_command cli_command_watch = {
    .name = "watch",
    .arguments = "[PID|NAME|all]",
    .arguments_max = 1,
    .help = "show the memory of processes while they run, in the terminal",
    .details = "Shows what processes of this user publish of their allocators: those that were\n"
               "started with TARN_WATCH=1 or that call tarn_watch_start. NAME is a part of the\n"
               "program's name; by default all are shown. Nothing is done to a process: one\n"
               "that hangs is shown with what it published last. ? lists the keys, q quits.\n"
               "Without a terminal, and with --once, the numbers are printed as text.\n"
               "--holders, on the screen the key h, shows the table of tarn top --sort end of\n"
               "now: the process must take requests (TARN_WATCH=control), and only what was\n"
               "allocated while its history was on is known by stack (tarn help control). Exit\n"
               "code 6: no such process, or one that --holders cannot ask.\n",
    .examples = "tarn watch\n"
                "tarn watch --once\n"
                "tarn watch --once --holders watched\n"
                "tarn watch --json all",
    .words = targets,
    .is_unpaged = true,
    .is_redirected = true,
    .prints_sizes = true,
    .opts = watch_opts,
    .values_size = sizeof(struct watch_values),
    .defaults = &watch_defaults,
    .run = watch_run,
};
