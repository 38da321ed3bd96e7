/* SPDX-License-Identifier: MIT */
/*
 * A file that appears whole or not at all: a draft in the same folder, under a name that nobody can
 * foresee and that was not there, then renamed. So nothing is ever written through a link: a link
 * of that name is replaced itself, and what it leads to stays. The mode of a file that is replaced
 * is kept; a new one follows the umask. What is no plain file (a device, a pipe), by a link or not,
 * is written as it is. No host memory is needed. Guarded by its owner. Implements struct tarn_file
 * of tarn/writer.h, too.
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
    int reason; /* errno of the write that failed */
    char path[TN_FILE_PATH_MAX];
    char draft[TN_FILE_PATH_MAX]; /* its name until then; "" when there is none */
};

/* TARN_ERR_IO when it cannot be made, TARN_ERR_INVALID_ARGUMENT for an empty path or one that is
 * too long. */
enum tarn_status tn_file_open(struct tn_file_out *out, const char *path,
                              struct tarn_error *error) TARN_MUST_CHECK;

/* Writes to it. */
struct tarn_writer tn_file_writer(struct tn_file_out *out);

/* Gives the file its name if `status` is TARN_OK, else removes what was written. Returns `status`,
 * or TARN_ERR_IO with its reason. Once after tn_file_open. */
enum tarn_status tn_file_finish(struct tn_file_out *out, enum tarn_status status,
                                struct tarn_error *error) TARN_MUST_CHECK;

#endif
