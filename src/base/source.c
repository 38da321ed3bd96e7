/* SPDX-License-Identifier: MIT */
#include "base/source.h"

#include "base/errinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum tarn_status source_fail(const struct tn_source *source, int code,
                                    struct tarn_error *error)
{
    char reason[128] = "unknown reason";

    (void)strerror_r(code, reason, sizeof reason);
    return tn_fail(error, TARN_ERR_IO, "cannot read %s: %s", source->name, reason);
}

enum tarn_status tn_source_open(struct tn_source *source, const char *path,
                                struct tarn_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    struct stat info;

    *source = (struct tn_source){.fd = STDIN_FILENO, .size = -1, .name = path};
    if (is_stdin) {
        source->name = "standard input";
    } else {
        source->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (source->fd < 0) {
            return source_fail(source, errno, error);
        }
        source->owns_fd = true;
    }
    if (fstat(source->fd, &info) == 0 && S_ISREG(info.st_mode)) {
        source->size = (int64_t)info.st_size;
    }
    return TARN_OK;
}

void tn_source_init_memory(struct tn_source *source, const void *bytes, size_t size)
{
    *source = (struct tn_source){
        .fd = -1, .memory = bytes, .memory_left = size, .size = (int64_t)size, .name = "memory"};
}

void tn_source_close(struct tn_source *source)
{
    if (source->owns_fd) {
        (void)close(source->fd);
    }
    source->fd = -1;
    source->owns_fd = false;
}

static size_t source_read_memory(struct tn_source *source, void *bytes, size_t size)
{
    const size_t got = size < source->memory_left ? size : source->memory_left;

    if (got > 0) {
        memcpy(bytes, source->memory, got);
        source->memory += got;
        source->memory_left -= got;
    }
    return got;
}

enum tarn_status tn_source_read(struct tn_source *source, void *bytes, size_t size, size_t *got_out,
                                struct tarn_error *error)
{
    ssize_t got;

    if (source->fd < 0) {
        got = (ssize_t)source_read_memory(source, bytes, size);
    } else {
        do {
            got = read(source->fd, bytes, size);
        } while (got < 0 && errno == EINTR);
        if (got < 0) {
            return source_fail(source, errno, error);
        }
    }
    source->taken += (uint64_t)got;
    if (source->progress.report &&
        !source->progress.report(source->progress.context, source->taken,
                                 source->size > 0 ? (uint64_t)source->size : 0)) {
        return tn_fail(error, TARN_ERR_CANCELLED, "reading %s was stopped by the caller",
                       source->name);
    }
    *got_out = (size_t)got;
    return TARN_OK;
}
