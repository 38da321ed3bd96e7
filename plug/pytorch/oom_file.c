/* SPDX-License-Identifier: MIT */
/*
 * The path of the snapshot and the result of the last one, both guarded by `lock`. It contains all
 * devices, like torch's own dumps. It is captured without the lock, because capturing may wait for
 * the interpreter's lock, whose holder may be waiting for this one; only writing the file is under
 * it.
 */
#include "plug/pytorch/oom_file.h"

#include "plug/pytorch/devices.h"
#include "plug/pytorch/locks.h"
#include "plug/pytorch/plug.h"
#include "tarn/oom_dump.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t *const lock = &tn_torch_locks[TN_TORCH_LOCK_OOM_FILE];
static char file[TARN_OOM_PATH_BYTES]; /* "" = none */
static bool file_known;                /* false: the environment has not been read yet */
static uint64_t written;
static struct tarn_error last; /* TARN_OK = the last one succeeded */

/* The lock is held. */
static enum tarn_status file_know(struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (!file_known) {
        st = tarn_oom_dump_expand(NULL, file, error);
        file_known = st == TARN_OK;
        if (st) {
            file[0] = '\0';
        }
    }
    return st;
}

enum tarn_status tarn_torch_dump_on_oom(const char *path, struct tarn_error *error)
{
    char expanded[TARN_OOM_PATH_BYTES] = "";
    enum tarn_status st = tn_torch_check_phase(error);

    if (st == TARN_OK && path) {
        st = tarn_oom_dump_expand(path, expanded, error);
    }
    if (st == TARN_OK) {
        (void)pthread_mutex_lock(lock);
        memcpy(file, expanded, sizeof file);
        file_known = true;
        (void)pthread_mutex_unlock(lock);
    }
    return st;
}

enum tarn_status tarn_torch_get_dump_on_oom(char *path, struct tarn_error *error)
{
    enum tarn_status st = tn_torch_check_phase(error);

    path[0] = '\0';
    if (st == TARN_OK) {
        (void)pthread_mutex_lock(lock);
        st = file_know(error);
        memcpy(path, file, sizeof file);
        (void)pthread_mutex_unlock(lock);
    }
    return st;
}

uint64_t tarn_torch_oom_dumps(struct tarn_error *error_out)
{
    (void)pthread_mutex_lock(lock);
    const uint64_t count = written;

    *error_out = last;
    (void)pthread_mutex_unlock(lock);
    return count;
}

void tn_torch_oom_file_write(void)
{
    char path[TARN_OOM_PATH_BYTES];
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.status = TARN_OK};

    if (tarn_torch_get_dump_on_oom(path, &error) == TARN_OK && path[0] == '\0') {
        return;
    }
    enum tarn_status st = error.status;

    st = st ? st : tarn_torch_capture(NULL, &snapshot, &error);
    (void)pthread_mutex_lock(lock);
    if (st == TARN_OK) {
        st = tarn_snapshot_save(snapshot, path, &error);
    }
    written++;
    last = error;
    last.status = st;
    (void)pthread_mutex_unlock(lock);
    tarn_snapshot_destroy(snapshot);
}
