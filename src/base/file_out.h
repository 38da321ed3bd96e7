/* SPDX-License-Identifier: MIT */
/*
 * A file that appears whole or not at all: a draft in the same directory under a new, unpredictable
 * name, finally renamed. So nothing is ever written through a symbolic link: an existing link is
 * replaced, not followed. A replaced file keeps its mode; a new one follows the umask. Devices and
 * pipes, also through links, are written in place. Needs no host memory. Guarded by its owner. Also
 * implements struct tarn_file of tarn/writer.h.
 */
#ifndef TN_BASE_FILE_OUT_H
#define TN_BASE_FILE_OUT_H

#include "base/attr.h"
#include "tarn/writer.h"

enum {
    TN_FILE_PATH_MAX = 4096 /* bytes of a path with its NUL */
};

struct tn_file_out {
    int file;
    int reason; /* errno of the write that failed */
    char path[TN_FILE_PATH_MAX];
    char draft[TN_FILE_PATH_MAX]; /* name of the draft, "" when there is none */
};

/* TARN_ERR_IO when it cannot be created, TARN_ERR_INVALID_ARGUMENT for an empty path or one that is
 * too long. */
enum tarn_status tn_file_open(struct tn_file_out *out, const char *path,
                              struct tarn_error *error) TARN_MUST_CHECK;

/* Writes to it. */
struct tarn_writer tn_file_writer(struct tn_file_out *out);

/* Renames the draft to its final name if `status` is TARN_OK, otherwise removes it. Returns
 * `status`, or TARN_ERR_IO with the reason. Call once after tn_file_open. */
enum tarn_status tn_file_finish(struct tn_file_out *out, enum tarn_status status,
                                struct tarn_error *error) TARN_MUST_CHECK;

#endif
