/* SPDX-License-Identifier: MIT */
#include "live_snapshot.h"

#include "tarn/watch_control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PARENT_MAX = 960, /* the path of the file is part of a request of fixed size */
    PATH_MAX_BYTES = PARENT_MAX + 64,
    REMOVALS_MAX = 100 /* attempts: a process may be creating a file meanwhile */
};

/* A folder that nobody else can open. */
struct place {
    char folder[PATH_MAX_BYTES];
    char file[PATH_MAX_BYTES];
};

static enum tarn_status fail(struct tarn_error *error, enum tarn_status status, const char *text,
                             const char *detail)
{
    (void)snprintf(error->text, sizeof error->text, "%.800s: %s", text, detail);
    return status;
}

static bool place_create(struct place *place, const char *parent)
{
    const int length = snprintf(place->folder, PARENT_MAX, "%s/tarn-holders-XXXXXX", parent);

    if (length < 0 || length >= PARENT_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!mkdtemp(place->folder)) {
        return false;
    }
    (void)snprintf(place->file, sizeof place->file, "%.*s/now.pickle", length, place->folder);
    return true;
}

/* Where the process has its page, since it can write there: it may see another /tmp. */
static bool place_find(struct place *place, const char *runtime)
{
    char user[64];

    if (runtime && runtime[0] == '/') {
        return place_create(place, runtime);
    }
    (void)snprintf(user, sizeof user, "/run/user/%u", (unsigned)geteuid());
    return place_create(place, user) || place_create(place, "/tmp");
}

static void files_remove(const char *folder)
{
    DIR *stream = opendir(folder);

    if (!stream) {
        return;
    }
    for (const struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
        }
    }
    (void)closedir(stream);
}

/* A process that did not answer in time may still write: without the folder it fails. */
static void place_remove(const struct place *place)
{
    for (int i = 0; i < REMOVALS_MAX && rmdir(place->folder) != 0; i++) {
        files_remove(place->folder);
    }
}

static enum tarn_status file_load(const char *path, struct tarn_snapshot **snapshot_out,
                                  struct tarn_error *error)
{
    struct stat about;

    if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode)) {
        return fail(error, TARN_ERR_IO, path, "the process has not written the snapshot there");
    }
    const enum tarn_status status = tarn_snapshot_load(path, NULL, snapshot_out, error);

    if (status && *snapshot_out) { /* a part of it */
        tarn_snapshot_destroy(*snapshot_out);
        *snapshot_out = NULL;
    }
    return status;
}

static enum tarn_status snapshot_take(const char *runtime, int64_t process, uint32_t timeout_ms,
                                      struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    struct place place;

    if (!place_find(&place, runtime)) {
        return fail(error, TARN_ERR_IO, "no folder for a snapshot", strerror(errno));
    }
    enum tarn_status status =
        tarn_control_snapshot(runtime, process, place.file, timeout_ms, error);

    if (status == TARN_OK) {
        status = file_load(place.file, snapshot_out, error);
    }
    place_remove(&place);
    return status;
}

enum tarn_status cli_live_snapshot_take(const char *runtime, int64_t process, uint32_t timeout_ms,
                                        struct tarn_snapshot **snapshot_out,
                                        struct tarn_error *error)
{
    sigset_t fatal;
    sigset_t before;

    *snapshot_out = NULL;
    error->text[0] = '\0';
    (void)sigemptyset(&fatal);
    (void)sigaddset(&fatal, SIGINT);
    (void)sigaddset(&fatal, SIGTERM);
    (void)sigaddset(&fatal, SIGHUP);
    (void)sigaddset(&fatal, SIGQUIT);
    (void)sigprocmask(SIG_BLOCK, &fatal, &before);
    const enum tarn_status status =
        snapshot_take(runtime, process, timeout_ms, snapshot_out, error);

    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (status && error->text[0] == '\0') {
        (void)snprintf(error->text, sizeof error->text, "%s", tarn_status_text(status));
    }
    return status;
}
