/* SPDX-License-Identifier: MIT */
#include "base/file_out.h"

#include "base/errinfo.h"
#include "base/host_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* A device, a pipe, a socket: nothing that can be replaced. */
static bool is_special(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

enum tarn_status tn_file_open(struct tn_file_out *out, const char *path, struct tarn_error *error)
{
    const int length = snprintf(out->path, sizeof out->path, "%s", path);
    const int draft = snprintf(out->draft, sizeof out->draft, "%s.%ld.part", path, (long)getpid());

    if (length <= 0 || draft < 0 || (size_t)draft >= sizeof out->draft) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a path has 1 to %d bytes, this one %zu",
                       TN_FILE_PATH_MAX - 32, strlen(path));
    }
    if (is_special(path)) {
        out->draft[0] = '\0';
    }
    out->file =
        open(out->draft[0] ? out->draft : path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
    if (!out->draft[0]) {
        return status;
    }
    if (status == TARN_OK && rename(out->draft, out->path) != 0) {
        status = file_failed(out->path, "replace", error);
    }
    if (status) {
        (void)unlink(out->draft);
    }
    return status;
}

/* ---- tarn/writer.h ---- */

struct tarn_file {
    struct tn_file_out out;
};

enum tarn_status tarn_file_create(const char *path, struct tarn_file **file_out,
                                  struct tarn_error *error)
{
    struct tarn_file *file = tn_host_alloc(sizeof *file);

    *file_out = NULL;
    if (!file) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory to write %s", path);
    }
    const enum tarn_status status = tn_file_open(&file->out, path, error);

    if (status) {
        tn_host_free(file, sizeof *file);
        return status;
    }
    *file_out = file;
    return TARN_OK;
}

struct tarn_writer tarn_file_writer(struct tarn_file *file)
{
    return tn_file_writer(&file->out);
}

enum tarn_status tarn_file_finish(struct tarn_file *file, enum tarn_status status,
                                  struct tarn_error *error)
{
    status = tn_file_finish(&file->out, status, error);
    tn_host_free(file, sizeof *file);
    return status;
}
