/* SPDX-License-Identifier: MIT */
#include "base/file_out.h"

#include "base/errinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* strerror's own buffer is shared by all threads. */
static enum tarn_status file_failed(const char *path, const char *what, struct tarn_error *error)
{
    const int reason = errno;
    char text[256];

    if (strerror_r(reason, text, sizeof text) != 0) {
        (void)snprintf(text, sizeof text, "error %d", reason);
    }
    return tn_fail(error, TARN_ERR_IO, "cannot %s %s: %s", what, path, text);
}

enum tarn_status tn_file_open(struct tn_file_out *out, const char *path, struct tarn_error *error)
{
    const int length = snprintf(out->path, sizeof out->path, "%s", path);
    const int draft = snprintf(out->draft, sizeof out->draft, "%s.%ld.part", path, (long)getpid());

    if (length <= 0 || draft < 0 || (size_t)draft >= sizeof out->draft) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a path has 1 to %d bytes, this one %zu",
                       TN_FILE_PATH_MAX - 32, strlen(path));
    }
    out->file = open(out->draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return out->file >= 0 ? TARN_OK : file_failed(path, "write", error);
}

static enum tarn_status file_write(void *context, const char *bytes, size_t size)
{
    const struct tn_file_out *out = context;

    while (size > 0) {
        const ssize_t done = write(out->file, bytes, size);

        if (done < 0 && errno != EINTR) {
            return TARN_ERR_IO;
        }
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
        }
    }
    return TARN_OK;
}

struct tarn_writer tn_file_writer(struct tn_file_out *out)
{
    return (struct tarn_writer){.write = file_write, .context = out};
}

enum tarn_status tn_file_finish(struct tn_file_out *out, enum tarn_status status,
                                struct tarn_error *error)
{
    if (status == TARN_ERR_IO) {
        status = file_failed(out->path, "write", error); /* errno is that of the write */
    }
    if (close(out->file) != 0 && status == TARN_OK) {
        status = file_failed(out->path, "write", error);
    }
    if (status == TARN_OK && rename(out->draft, out->path) != 0) {
        status = file_failed(out->path, "replace", error);
    }
    if (status) {
        (void)unlink(out->draft);
    }
    return status;
}
