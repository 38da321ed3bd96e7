/* SPDX-License-Identifier: MIT */
/*
 * Implements struct tarn_file of tarn/writer.h: a file that appears whole or not at all. It is
 * written as a draft in the same directory: a file without a name, which is gone when the process
 * ends, or, where the file system has none, one under a new, unpredictable name. Finally it gets
 * its name or replaces the file of that name. Its bytes are on the disk before it has the name, and
 * the name is there before it is finished, so that a power cut leaves the old file or the new one.
 * Nothing is ever written through a symbolic link: an existing link is replaced, not followed. A
 * replaced file keeps its mode; a new one follows the umask. Devices and pipes, also through links,
 * are written in place. A file whose name ends as those of compressed files do is compressed on the
 * way. Guarded by its owner.
 */
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/os_file.h"
#include "base/os_process.h"
#include "base/pack.h"
#include "tarn/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_BYTES_MAX = 4096, /* of a path with its NUL */
    DRAFT_TRIES = 100,     /* existing names to skip */
    DRAFT_ROOM = 32        /* extra bytes of a draft's name beyond the path */
};

struct tarn_file {
    int file;
    int reason;           /* errno of the write that failed */
    bool is_unnamed;      /* a draft without a name */
    struct tn_pack *pack; /* NULL: what is written is not compressed */
    char path[PATH_BYTES_MAX];
    char draft[PATH_BYTES_MAX]; /* name of the draft, "" when it has none */
};

/* strerror is not thread-safe. */
static const char *reason_text(int reason, char *text, size_t size)
{
    if (strerror_r(reason, text, size) != 0) {
        (void)snprintf(text, size, "error %d", reason);
    }
    return text;
}

static enum tarn_status file_failed(const char *path, const char *what, int reason,
                                    struct tarn_error *error)
{
    char text[256];

    return tn_fail(error, TARN_ERR_IO, "cannot %s %s: %s", what, path,
                   reason_text(reason, text, sizeof text));
}

/* ---- devices and pipes ---- */

/* A device, a pipe or a socket, which cannot be replaced. */
static bool is_special(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

/* Neither creates nor truncates a file, in case one exists by now. */
static int special_open(const char *path)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    struct stat about;

    if (file >= 0 && (fstat(file, &about) != 0 || S_ISREG(about.st_mode))) {
        (void)close(file);
        errno = EBUSY;
        return -1;
    }
    return file;
}

/* ---- drafts ---- */

/* Length of the directory's part of the path, with its slash. */
static int folder_length(const struct tarn_file *out)
{
    const char *slash = strrchr(out->path, '/');

    return slash ? (int)(slash - out->path) + 1 : 0;
}

/* In the directory of the path, because rename works only within a file system. Its length does not
 * depend on the final name, which may already have the maximum length. */
static void draft_name(struct tarn_file *out)
{
    (void)snprintf(out->draft, sizeof out->draft, "%.*starn-%016" PRIx64 ".part",
                   folder_length(out), out->path, tn_os_random());
}

static int unnamed_create(struct tarn_file *out, mode_t mode)
{
    char folder[PATH_BYTES_MAX];

    (void)snprintf(folder, sizeof folder, "%.*s.", folder_length(out), out->path);
    const int file = tn_os_file_unnamed(folder, mode);

    out->is_unnamed = file >= 0;
    return file;
}

/* Creates a new file, so that nobody can have planted a link there. */
static int named_create(struct tarn_file *out, mode_t mode)
{
    int file = -1;

    for (int i = 0; file < 0 && i < DRAFT_TRIES && (i == 0 || errno == EEXIST); i++) {
        draft_name(out);
        file = open(out->draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    }
    return file;
}

static int draft_create(struct tarn_file *out, mode_t mode)
{
    const int file = unnamed_create(out, mode);

    return file >= 0 ? file : named_create(out, mode);
}

/* Some file systems report a failed write only on closing, here that of a copy. */
static bool is_flushed(int file)
{
    const int copy = tn_os_descriptor_copy(file);

    errno = 0;
    return copy < 0 || close(copy) == 0;
}

/* False with errno if what was written could not be stored; a file system without that call is
 * trusted. */
static bool is_stored(int file)
{
    return fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* The names in the directory. One that may be written but not read cannot be stored, and is
 * trusted. */
static bool is_folder_stored(const struct tarn_file *out)
{
    char folder[PATH_BYTES_MAX];

    (void)snprintf(folder, sizeof folder, "%.*s.", folder_length(out), out->path);
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (file < 0) {
        return errno == EACCES;
    }
    const bool is_good = is_stored(file);
    const int reason = errno;

    (void)close(file);
    errno = reason;
    return is_good;
}

static enum tarn_status folder_store(const struct tarn_file *out, struct tarn_error *error)
{
    char text[256];

    return is_folder_stored(out)
               ? TARN_OK
               : tn_fail(
                     error, TARN_ERR_IO,
                     "%s is complete, but a power cut may lose it: cannot store its directory: %s",
                     out->path, reason_text(errno, text, sizeof text));
}

/* Gives an unnamed draft the final name or, if that is taken, one from which it can replace the
 * file there. */
static bool unnamed_name(struct tarn_file *out)
{
    bool is_named = is_flushed(out->file) && tn_os_file_name(out->file, out->path);

    for (int i = 0; !is_named && i < DRAFT_TRIES && errno == EEXIST; i++) {
        draft_name(out);
        is_named = tn_os_file_name(out->file, out->draft);
    }
    if (!is_named) {
        out->draft[0] = '\0';
    }
    return is_named;
}

/* Gives the new file the permissions of the old one. */
static void draft_admit(int file, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;

    if (fchown(file, (uid_t)-1, old->st_gid) != 0) {
        mode &= ~(mode_t)070; /* the group differs, so its permissions do not apply */
    }
    (void)fchmod(file, mode);
}

/* The mode of another user's file can only remove permissions. */
static int draft_open(struct tarn_file *out)
{
    struct stat old;
    const bool is_there = lstat(out->path, &old) == 0;

    if (is_there && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    const bool replaces = is_there && S_ISREG(old.st_mode);
    const int file = draft_create(out, replaces ? old.st_mode & 0666 : 0666);

    if (file >= 0 && replaces && old.st_uid == geteuid()) {
        draft_admit(file, &old);
    }
    return file;
}

static enum tarn_status file_open(struct tarn_file *out, const char *path, struct tarn_error *error)
{
    const size_t length = strlen(path);

    if (length == 0 || length > sizeof out->path - DRAFT_ROOM) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "a path has 1 to %d bytes, this one %zu",
                       PATH_BYTES_MAX - DRAFT_ROOM, length);
    }
    memcpy(out->path, path, length + 1);
    out->draft[0] = '\0';
    out->reason = 0;
    out->is_unnamed = false;
    out->pack = NULL;
    out->file = is_special(path) ? special_open(path) : draft_open(out);
    return out->file >= 0 ? TARN_OK : file_failed(path, "write", errno, error);
}

static enum tarn_status plain_write(void *context, const char *bytes, size_t size)
{
    struct tarn_file *out = context;

    while (size > 0) {
        const ssize_t done = write(out->file, bytes, size);

        if (done < 0 && errno != EINTR) {
            out->reason = errno;
            return TARN_ERR_IO;
        }
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
        }
    }
    return TARN_OK;
}

static enum tarn_status file_write(void *context, const char *bytes, size_t size)
{
    struct tarn_file *out = context;

    return out->pack ? tn_pack_write(out->pack, bytes, size) : plain_write(out, bytes, size);
}

/* Compresses what comes, if the name asks for it. */
static enum tarn_status pack_begin(struct tarn_file *file, struct tarn_error *error)
{
    const enum tn_packing packing = tn_packing_of(file->path);
    const struct tarn_writer writer = {.write = plain_write, .context = file};

    if (packing == TN_PACKING_NONE || is_special(file->path)) {
        return TARN_OK;
    }
    if (!tn_packing_codec(packing)) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "cannot write %s: this tarn was not built with %s; choose a name without "
                       "that ending, or build tarn with the library",
                       file->path, tn_packing_library(packing));
    }
    file->pack = tn_pack_create(packing, &writer);
    return file->pack ? TARN_OK : tn_fail_memory(error);
}

enum tarn_status tarn_file_create(const char *path, struct tarn_file **file_out,
                                  struct tarn_error *error)
{
    struct tarn_file *file = tn_host_alloc(sizeof *file);

    *file_out = NULL;
    if (!file) {
        return tn_fail_memory(error);
    }
    const enum tarn_status status = file_open(file, path, error);

    if (status) {
        tn_host_free(file, sizeof *file);
        return status;
    }
    const enum tarn_status packed = pack_begin(file, error);

    if (packed) {
        return tarn_file_finish(file, packed, error);
    }
    *file_out = file;
    return TARN_OK;
}

struct tarn_writer tarn_file_writer(struct tarn_file *file)
{
    return (struct tarn_writer){.write = file_write, .context = file};
}

const char *tarn_file_draft(const struct tarn_file *file)
{
    return file->draft;
}

/* The end of what was written: it is on the disk, and an unnamed draft has a name. */
static enum tarn_status draft_end(struct tarn_file *file, struct tarn_error *error)
{
    const bool is_stored_and_named =
        is_stored(file->file) && (!file->is_unnamed || unnamed_name(file));

    return is_stored_and_named ? TARN_OK : file_failed(file->path, "write", errno, error);
}

static enum tarn_status pack_finish(struct tarn_file *file, enum tarn_status status,
                                    struct tarn_error *error)
{
    if (file->pack && status == TARN_OK) {
        status = tn_pack_end(file->pack);
        status = status == TARN_ERR_HOST_MEMORY ? tn_fail_memory(error) : status;
    }
    tn_pack_destroy(file->pack);
    if (status == TARN_ERR_IO) {
        status = file_failed(file->path, "write", file->reason ? file->reason : errno, error);
    }
    return status;
}

enum tarn_status tarn_file_finish(struct tarn_file *file, enum tarn_status status,
                                  struct tarn_error *error)
{
    const bool is_draft = file->is_unnamed || file->draft[0];

    status = pack_finish(file, status, error);
    if (is_draft && status == TARN_OK) {
        status = draft_end(file, error);
    }
    if (close(file->file) != 0 && status == TARN_OK) {
        status = file_failed(file->path, "write", errno, error);
    }
    if (file->draft[0] && status == TARN_OK && rename(file->draft, file->path) != 0) {
        status = file_failed(file->path, "replace", errno, error);
    }
    if (file->draft[0] && status) {
        (void)unlink(file->draft);
    }
    if (is_draft && status == TARN_OK) {
        status = folder_store(file, error);
    }
    tn_host_free(file, sizeof *file);
    return status;
}
