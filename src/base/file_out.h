/* SPDX-License-Identifier: MIT */
/*
 * A file that appears whole or not at all: written under another name beside it, then renamed. What
 * is no plain file (a device, a pipe) is written as it is. No host memory is needed. Guarded by its
 * owner. Implements struct tarn_file of tarn/writer.h, too.
 */
#ifndef TN_BASE_FILE_OUT_H
#define TN_BASE_FILE_OUT_H

#include "base/attr.h"
#include "tarn/writer.h"

enum {
    TN_FILE_PATH_MAX = 4096 /* bytes of a path, its end included */
};

struct tn_file_out {
    int file;
    char path[TN_FILE_PATH_MAX];
    char draft[TN_FILE_PATH_MAX]; /* the other name; "" when there is none */
};

/* TARN_ERR_IO when it cannot be made, TARN_ERR_INVALID_ARGUMENT for a path that is too long. */
enum tarn_status tn_file_open(struct tn_file_out *out, const char *path,
                              struct tarn_error *error) TARN_MUST_CHECK;

/* Writes to it. */
struct tarn_writer tn_file_writer(struct tn_file_out *out);

/* Gives the file its name if `status` is TARN_OK, else removes what was written. Returns `status`,
 * or TARN_ERR_IO with its reason. Once after tn_file_open. */
enum tarn_status tn_file_finish(struct tn_file_out *out, enum tarn_status status,
                                struct tarn_error *error) TARN_MUST_CHECK;

#endif
