/* SPDX-License-Identifier: MIT */
#include "watch_holders.h"

#include "line_fold.h"
#include "live_snapshot.h"
#include "size_text.h"
#include "tarn/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ANSWER_MS = 10000,
    SILENT_MS = 1000 /* of a process that does not answer */
};

static void holders_forget(struct cli_watch_holders *holders)
{
    free(holders->table);
    memset(holders, 0, sizeof *holders);
}

void cli_watch_holders_fini(struct cli_watch_holders *holders)
{
    holders_forget(holders);
}

static uint64_t time_of_day_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- whether anybody is known ---- */

static bool rows_have_stacks(const struct tarn_holders *holders)
{
    for (size_t i = 0; i < holders->row_count; i++) {
        if (holders->rows[i].group.frame_count > 0) {
            return true;
        }
    }
    return false;
}

/* Whether the process records: a program that keeps stacks without events has no trace. */
static enum tarn_status history_look(const struct tarn_snapshot *snapshot, bool *is_on_out,
                                     struct tarn_error *error)
{
    const struct tarn_report_options options = {.struct_size = sizeof options, .rows = UINT64_MAX};
    struct tarn_live_result *results = NULL;
    size_t count = 0;

    *is_on_out = tarn_snapshot_entry_count(snapshot) > 0;
    if (*is_on_out) {
        return TARN_OK;
    }
    const enum tarn_status status = tarn_live_compute(snapshot, &options, &results, &count, error);

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        *is_on_out = *is_on_out || rows_have_stacks(&results[i].composition.holders);
    }
    tarn_report_destroy(results);
    return status;
}

/* ---- the table ---- */

static enum tarn_status memory_write(void *context, const char *bytes, size_t size)
{
    return fwrite(bytes, 1, size, context) == size ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

static enum tarn_status table_make(struct cli_watch_holders *holders,
                                   const struct tarn_snapshot *snapshot,
                                   const struct cli_watch_lines *lines, struct tarn_error *error)
{
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .order = TARN_TOP_BY_END,
                                                .units = cli_units(),
                                                .columns = lines->width,
                                                .is_utf8 = lines->is_utf8};
    size_t size = 0;
    FILE *memory = open_memstream(&holders->table, &size);

    if (!memory) {
        return TARN_ERR_HOST_MEMORY;
    }
    const struct tarn_writer writer = {.write = memory_write, .context = memory};
    const enum tarn_status status = tarn_report_top(snapshot, &options, &writer, error);
    const bool is_whole = fclose(memory) == 0;

    return status ? status : is_whole ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

static enum tarn_status holders_compute(struct cli_watch_holders *holders,
                                        const struct tarn_snapshot *snapshot,
                                        const struct cli_watch_lines *lines,
                                        struct tarn_error *error)
{
    bool is_on = false;
    const enum tarn_status status = history_look(snapshot, &is_on, error);

    if (status == TARN_OK && !is_on) {
        (void)snprintf(holders->trouble, sizeof holders->trouble,
                       "! history is off, or has no events yet: \"tarn control %" PRId64
                       " history on\" switches it on",
                       holders->process);
        return TARN_OK;
    }
    return status ? status : table_make(holders, snapshot, lines, error);
}

/* A failure in one sentence. */
static void trouble_set(struct cli_watch_holders *holders, enum tarn_status status,
                        const struct tarn_error *error, uint32_t timeout_ms)
{
    char more[64] = "";

    if (status == TARN_ERR_NOT_READY) {
        (void)snprintf(more, sizeof more,
                       ": it hangs, is stopped, or needs more than %" PRIu32 " s",
                       timeout_ms / 1000);
    }
    free(holders->table); /* a part of it */
    holders->table = NULL;
    (void)snprintf(holders->trouble, sizeof holders->trouble, "! %.*s%s", TARN_ERROR_TEXT_MAX - 1,
                   error->text[0] ? error->text : tarn_status_text(status), more);
}

void cli_watch_holders_take(struct cli_watch_holders *holders, const struct cli_watch *watch,
                            const struct cli_watch_process *process,
                            const struct cli_watch_lines *lines)
{
    const uint32_t timeout_ms = process->answers ? ANSWER_MS : SILENT_MS;
    struct tarn_error error = {.offset = -1};
    struct tarn_snapshot *snapshot = NULL;

    holders_forget(holders);
    holders->process = process->head.process;
    enum tarn_status status = cli_live_snapshot_take(watch->runtime, process->head.process,
                                                     timeout_ms, &snapshot, &error);

    holders->time_ns = time_of_day_ns();
    if (status == TARN_OK) {
        status = holders_compute(holders, snapshot, lines, &error);
    }
    tarn_snapshot_destroy(snapshot);
    holders->was_taken = status == TARN_OK;
    if (status) {
        trouble_set(holders, status, &error, timeout_ms);
    }
}

/* ---- lines ---- */

static void heading_put(const struct cli_watch_lines *lines,
                        const struct cli_watch_holders *holders)
{
    const time_t seconds = (time_t)(holders->time_ns / 1000000000u);
    struct tm parts = {0};
    char clock[16] = "";
    char text[CLI_WATCH_LINE_MAX];

    if (localtime_r(&seconds, &parts)) {
        (void)strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    }
    (void)snprintf(text, sizeof text,
                   holders->table ? "who holds most in process %" PRId64
                                    " (column \"at end\"), as of %s"
                                  : "who holds most in process %" PRId64 ": asked at %s",
                   holders->process, clock);
    lines->put(lines->context, CLI_STYLE_BOLD, text);
}

/* Folds lines that are wider than `width`, 0: no limit. NULL: no memory. */
static char *folded(const char *text, unsigned width)
{
    char *result = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&result, &size);

    if (!memory) {
        return NULL;
    }
    for (const char *line = text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");

        if (width > 0) {
            cli_line_fold_put(memory, line, length, width);
        } else {
            (void)fprintf(memory, "%.*s\n", (int)length, line);
        }
        line += length + (line[length] == '\n');
    }
    if (fclose(memory) != 0) {
        free(result);
        result = NULL;
    }
    return result;
}

static void text_put(const struct cli_watch_lines *lines, enum cli_style style, const char *text)
{
    char *fitting = folded(text, lines->width);
    char *next = NULL;

    for (char *line = fitting; line && *line != '\0'; line = next) {
        next = line + strcspn(line, "\n");
        if (*next == '\n') {
            *next++ = '\0';
        }
        lines->put(lines->context, style, line);
    }
    free(fitting);
}

void cli_watch_put_holders(const struct cli_watch_lines *lines,
                           const struct cli_watch_holders *holders)
{
    heading_put(lines, holders);
    if (holders->table) {
        text_put(lines, CLI_STYLE_PLAIN, holders->table);
    } else {
        text_put(lines, CLI_STYLE_RED, holders->trouble);
    }
}
