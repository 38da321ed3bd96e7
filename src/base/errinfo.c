/* SPDX-License-Identifier: MIT */
#include "base/errinfo.h"

#include <stdio.h>

TN_PRINTF(4, 0)
static void error_write(struct tarn_error *error, enum tarn_status status, int64_t offset,
                        const char *format, va_list args)
{
    if (!error) {
        return;
    }
    error->status = status;
    error->offset = offset;
    (void)vsnprintf(error->text, sizeof error->text, format, args);
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
