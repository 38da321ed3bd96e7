/* SPDX-License-Identifier: MIT */
/* Implements the process functions of tarn/device.h, and the sentences about processes in the
 * out-of-memory message. */
#include "device/process.h"

#include "base/errinfo.h"
#include "base/os_process.h"
#include "base/size_text.h"
#include "base/text_out.h"
#include "device/device_ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    SENTENCE_MAX = 128
};

/* ---- the message ---- */

struct sentences {
    char *text;
    size_t size;
};

/* Adds a sentence if all of it fits. */
static void sentence_add(void *context, int64_t process, uint64_t used)
{
    const struct sentences *to = context;
    const struct tn_size_text amount = tn_size_text_message(used);
    const size_t length = strlen(to->text);
    char sentence[SENTENCE_MAX];

    if (used == TARN_PROCESS_BYTES_UNKNOWN) {
        return;
    }
    if (process == tn_os_process_id()) {
        (void)snprintf(sentence, sizeof sentence,
                       "Including non-PyTorch memory, this process has %s memory in use. ",
                       amount.text);
    } else {
        (void)snprintf(sentence, sizeof sentence, "Process %" PRId64 " has %s memory in use. ",
                       process, amount.text);
    }
    if (strlen(sentence) < to->size - length) {
        memcpy(to->text + length, sentence, strlen(sentence) + 1);
    }
}

void tn_processes_describe(struct tarn_device *device, char *text, size_t size)
{
    struct sentences to = {text, size};
    int number;

    text[0] = '\0';
    (void)device->ops->processes(device, sentence_add, &to, &number);
}

/* ---- the list ---- */

/* The first line contains a number that is known only after the query. */
struct lines {
    struct tn_text_out out;
    const int *number;
    bool begun;
};

static void lines_begin(struct lines *lines)
{
    if (!lines->begun) {
        lines->begun = true;
        tn_text_printf(&lines->out, "GPU:%d", *lines->number);
    }
}

static void line_add(void *context, int64_t process, uint64_t used)
{
    struct lines *lines = context;

    lines_begin(lines);
    tn_text_printf(&lines->out, "\nprocess %10" PRId64 " uses ", process);
    if (used == TARN_PROCESS_BYTES_UNKNOWN) {
        tn_text_printf(&lines->out, "%12s", "unknown");
    } else {
        tn_text_printf(&lines->out, "%12.3f", (double)used / (1 << 20));
    }
    tn_text_puts(&lines->out, " MB GPU memory");
}

enum tarn_status tarn_device_walk_processes(struct tarn_device *device, tarn_process_visitor visit,
                                            void *context, struct tarn_error *error)
{
    int number;
    const enum tarn_status st = device->ops->processes(device, visit, context, &number);

    return st ? tn_fail(error, st, "processes of a device: %s", device->ops->last_error(device))
              : TARN_OK;
}

enum tarn_status tarn_device_list_processes(struct tarn_device *device,
                                            const struct tarn_writer *writer,
                                            struct tarn_error *error)
{
    int number = device->ordinal;
    struct lines lines = {.number = &number};

    tn_text_init(&lines.out, writer);
    enum tarn_status st = device->ops->processes(device, line_add, &lines, &number);

    if (st == TARN_ERR_NOT_READY) {
        tn_text_puts(&lines.out, "cuda driver can't be loaded, is cuda enabled?");
    } else if (st) {
        return tn_fail(error, st, "list of processes: %s", device->ops->last_error(device));
    } else if (!lines.begun) {
        lines_begin(&lines);
        tn_text_puts(&lines.out, "\nno processes are running");
    }
    st = tn_text_finish(&lines.out);
    return st ? tn_fail(error, st, "list of processes: %s", tarn_status_text(st)) : TARN_OK;
}
