/* SPDX-License-Identifier: MIT */
#include "tarn/watch_control.h"

#include "base/errinfo.h"
#include "base/os_process.h"
#include "base/os_shared.h"
#include "base/os_socket.h"
#include "tarn/watch_read.h"
#include "watch/control_message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Whether the process takes requests; if not, the error says why. */
static enum tarn_status process_check(const char *runtime, int64_t process,
                                      struct tarn_error *error)
{
    struct tarn_watch_process found = {.struct_size = sizeof found};
    struct tarn_watch *watch = NULL;
    const enum tarn_status st = tarn_watch_open(runtime, process, &watch, error);

    if (st) {
        return st;
    }
    tarn_watch_get_process(watch, &found);
    tarn_watch_close(watch);
    if (found.wants_control) {
        return tn_fail(
            error, TARN_ERR_NOT_FOUND,
            "process %lld takes no requests: libtarn-tools, which serves them, is not in "
            "it",
            (long long)process);
    }
    return found.controlled ? TARN_OK
                            : tn_fail(error, TARN_ERR_NOT_FOUND,
                                      "process %lld takes no requests: start it with "
                                      "TARN_WATCH=control",
                                      (long long)process);
}

static enum tarn_status socket_open(const char *runtime, int64_t process, uint32_t timeout_ms,
                                    int *socket_out, struct tarn_error *error)
{
    char folder[TN_FOLDER_PATH_MAX];
    char path[TN_FOLDER_PATH_MAX + 32];
    const enum tarn_status st = process_check(runtime, process, error);

    if (st) {
        return st;
    }
    if (!tn_os_folder_private(runtime, "tarn", false, folder)) {
        return tn_fail(error, TARN_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    (void)snprintf(path, sizeof path, "%s/%lld.sock", folder, (long long)process);
    *socket_out = tn_os_socket_connect(path, (int)timeout_ms);
    if (*socket_out >= 0) {
        return TARN_OK;
    }
    return errno == EAGAIN ? tn_fail(error, TARN_ERR_NOT_READY, "process %lld does not answer",
                                     (long long)process)
                           : tn_fail(error, TARN_ERR_IO, "%s: %s", path, strerror(errno));
}

/* Sends a request and takes the reply. */
static enum tarn_status request_send(const char *runtime, int64_t process,
                                     struct tn_control_request *request, uint64_t *value_out,
                                     uint32_t timeout_ms, struct tarn_error *error)
{
    struct tn_control_reply reply;
    int socket = -1;
    enum tarn_status st = socket_open(runtime, process, timeout_ms, &socket, error);

    if (st) {
        return st;
    }
    memcpy(request->magic, TN_CONTROL_MAGIC, sizeof request->magic);
    request->version = TN_CONTROL_VERSION;
    if (!tn_os_socket_send(socket, request, sizeof *request) ||
        !tn_os_socket_receive(socket, &reply, sizeof reply)) {
        st = tn_fail(error, TARN_ERR_NOT_READY, "process %lld does not answer", (long long)process);
    } else {
        st = tn_control_read_reply(&reply, error);
        *value_out = reply.value;
    }
    tn_os_descriptor_close(socket);
    return st;
}

enum tarn_status tarn_control_snapshot(const char *runtime_folder, int64_t process,
                                       const char *path, uint32_t timeout_ms,
                                       struct tarn_error *error)
{
    struct tn_control_request request = {.command = TN_CONTROL_SNAPSHOT};
    uint64_t value = 0;

    if (path[0] != '/' || strlen(path) >= sizeof request.path) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the path of a snapshot is absolute, of at most %d bytes",
                       TN_CONTROL_PATH_MAX - 1);
    }
    memcpy(request.path, path, strlen(path));
    return request_send(runtime_folder, process, &request, &value, timeout_ms, error);
}

enum tarn_status tarn_control_trim(const char *runtime_folder, int64_t process, uint64_t bytes,
                                   uint64_t *reserved_out, uint32_t timeout_ms,
                                   struct tarn_error *error)
{
    struct tn_control_request request = {.command = TN_CONTROL_TRIM, .value = bytes};
    uint64_t value = 0;
    const enum tarn_status st =
        request_send(runtime_folder, process, &request, &value, timeout_ms, error);

    if (reserved_out && st == TARN_OK) {
        *reserved_out = value;
    }
    return st;
}

static void pool_write(struct tn_control_request *request, struct tarn_pool_id pool)
{
    (void)snprintf(request->path, sizeof request->path, "%llu,%llu", (unsigned long long)pool.first,
                   (unsigned long long)pool.second);
}

enum tarn_status tarn_control_sleep(const char *runtime_folder, int64_t process,
                                    struct tarn_pool_id pool, bool discard, uint32_t timeout_ms,
                                    struct tarn_error *error)
{
    struct tn_control_request request = {.command = TN_CONTROL_SLEEP, .value = discard};
    uint64_t value = 0;

    pool_write(&request, pool);
    return request_send(runtime_folder, process, &request, &value, timeout_ms, error);
}

enum tarn_status tarn_control_wake(const char *runtime_folder, int64_t process,
                                   struct tarn_pool_id pool, uint32_t timeout_ms,
                                   struct tarn_error *error)
{
    struct tn_control_request request = {.command = TN_CONTROL_WAKE};
    uint64_t value = 0;

    pool_write(&request, pool);
    return request_send(runtime_folder, process, &request, &value, timeout_ms, error);
}

enum tarn_status tarn_control_history(const char *runtime_folder, int64_t process, bool on,
                                      uint64_t max_entries, uint32_t timeout_ms,
                                      struct tarn_error *error)
{
    struct tn_control_request request = {
        .command = on ? TN_CONTROL_HISTORY_ON : TN_CONTROL_HISTORY_OFF, .value = max_entries};
    uint64_t value = 0;

    return request_send(runtime_folder, process, &request, &value, timeout_ms, error);
}
