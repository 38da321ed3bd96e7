/* SPDX-License-Identifier: MIT */
/*
 * Output of reports: a function of the caller that receives text in pieces, in order.
 */
#ifndef TARN_WRITER_H
#define TARN_WRITER_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_writer {
    /* Receives `size` bytes (> 0). Any other result than TARN_OK stops the report, which returns
     * it. */
    enum tarn_status (*write)(void *context, const char *bytes, size_t size);
    void *context;
};

/* A file that appears whole or not at all: until it is finished it is a draft in the same
 * directory, without a name where the file system has such files. An existing symbolic link is
 * replaced, not followed. A replaced file keeps its mode. Once it is finished it outlives a power
 * cut, and before that the file it replaces does, as far as the file system stores what it is asked
 * to; a directory that may not be read cannot be asked. Devices and pipes, also through links, are
 * written in place. A file whose name ends in ".gz" is compressed with gzip, one in ".zst" or
 * ".zstd" with zstd. Not thread-safe. */
struct tarn_file;

/* Starts a file. Caller owns *file_out and ends it with tarn_file_finish. TARN_ERR_IO when it
 * cannot be created, TARN_ERR_INVALID_ARGUMENT for an empty path or one that is too long,
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_file_create(const char *path, struct tarn_file **file_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* A writer to the file; valid until the file is finished. */
TARN_API struct tarn_writer tarn_file_writer(struct tarn_file *file);

/* Path of the draft, "" when it has no name or there is none: for signal handlers that remove it.
 * Borrowed until the file is finished. */
TARN_API const char *tarn_file_draft(const struct tarn_file *file);

/* If `status` is TARN_OK, gives the draft its final name, replacing an existing file;
 * otherwise removes it. Frees `file`. Returns `status`, or TARN_ERR_IO with the reason: then the
 * old file is there as it was or, if only the directory could not be stored, the new one, which
 * `error` says. */
TARN_API enum tarn_status tarn_file_finish(struct tarn_file *file, enum tarn_status status,
                                           struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
