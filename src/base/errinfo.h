/* SPDX-License-Identifier: MIT */
/* Filling struct tarn_error. Formatting goes into its fixed buffer and needs no host memory. Names
 * in the text are untrusted: invisible characters are escaped (base/escaped.h). */
#ifndef TN_BASE_ERRINFO_H
#define TN_BASE_ERRINFO_H

#include "base/attr.h"
#include "tarn/status.h"

#include <stdarg.h>

/* Writes status, offset -1 and the text into `error` unless it is NULL. Returns `status`, so that a
 * failing function can end with `return tn_fail(...)`. */
enum tarn_status tn_fail(struct tarn_error *error, enum tarn_status status, const char *format, ...)
    TN_PRINTF(3, 4);

/* Host memory is missing: TARN_ERR_HOST_MEMORY with the text of that status. */
enum tarn_status tn_fail_memory(struct tarn_error *error);

/* The same with a position in the input. */
enum tarn_status tn_fail_at(struct tarn_error *error, enum tarn_status status, int64_t offset,
                            const char *format, ...) TN_PRINTF(4, 5);

#endif
