/* SPDX-License-Identifier: MIT */
#include "base/errinfo.h"

#include "base/escaped.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* Newlines of the format are intended; others are part of an untrusted name. */
TN_PRINTF(4, 0)
static void error_write(struct tarn_error *error, enum tarn_status status, int64_t offset,
                        const char *format, va_list args)
{
    if (!error) {
        return;
    }
    char text[TARN_ERROR_TEXT_MAX + TN_UTF8_MAX]; /* a character split at the end is dropped */

    error->status = status;
    error->offset = offset;
    (void)vsnprintf(text, sizeof text, format, args);
    (void)tn_escaped_copy(text, strlen(text),
                          strchr(format, '\n') ? TN_ESCAPED_LINES : TN_ESCAPED_PLAIN, error->text,
                          sizeof error->text);
}

enum tarn_status tn_fail(struct tarn_error *error, enum tarn_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error_write(error, status, -1, format, args);
    va_end(args);
    return status;
}

enum tarn_status tn_fail_at(struct tarn_error *error, enum tarn_status status, int64_t offset,
                            const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error_write(error, status, offset, format, args);
    va_end(args);
    return status;
}

enum tarn_status tn_fail_memory(struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_HOST_MEMORY, "%s", tarn_status_text(TARN_ERR_HOST_MEMORY));
}
