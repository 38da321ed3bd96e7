/* SPDX-License-Identifier: MIT */
/*
 * Where reports go: a function of the caller's that takes text in pieces, in order.
 */
#ifndef TARN_WRITER_H
#define TARN_WRITER_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_writer {
    /* Takes `size` bytes (> 0). Anything but TARN_OK stops the report, which returns that status.
     * */
    enum tarn_status (*write)(void *context, const char *bytes, size_t size);
    void *context;
};

/* A file being written, which appears whole or not at all: until it is finished it is a draft,
 * under a name of its own in the same folder. A link of that name is replaced itself; what it leads
 * to is left as it is. A file that is replaced keeps its mode. A device or a pipe, by a link or
 * not, is written as it is. Guarded by its owner. */
struct tarn_file;

/* Begins a file. Caller owns *file_out, ends it with tarn_file_finish. TARN_ERR_IO when it cannot
 * be made, TARN_ERR_INVALID_ARGUMENT for an empty path or one that is too long,
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_file_create(const char *path, struct tarn_file **file_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Writes to it; valid until it is finished. */
TARN_API struct tarn_writer tarn_file_writer(struct tarn_file *file);

/* Path of the draft, "" when there is none: for a program that a signal ends, whose handler removes
 * it. Borrowed until the file is finished. */
TARN_API const char *tarn_file_draft(const struct tarn_file *file);

/* Gives the file its name, replacing one of that name, if `status` is TARN_OK, else removes what
 * was written. Frees `file`. Returns `status`, or TARN_ERR_IO with its reason. */
TARN_API enum tarn_status tarn_file_finish(struct tarn_file *file, enum tarn_status status,
                                           struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
