/* SPDX-License-Identifier: MIT */
/*
 * The thread that serves requests. One client at a time, and nobody is waited for: a client that
 * says nothing for two seconds is sent away.
 */
#include "alloc/engine/allocator.h"
#include "alloc/engine/watch_source.h"
#include "base/assertion.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/os_fork.h"
#include "base/os_process.h"
#include "base/os_shared.h"
#include "base/os_socket.h"
#include "history/history.h"
#include "tarn/capture.h"
#include "tarn/sleep.h"
#include "tarn/watch_control.h"
#include "tarn/watch_read.h"
#include "watch/control_message.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ALLOCATORS_MAX = TARN_WATCH_ALLOCATORS
};

struct server {
    pthread_mutex_t changes; /* held while allocators come and go; taken before `lock` */
    pthread_mutex_t lock;    /* held while a request is served; guards the allocators */
    struct tarn_capture_source sources[ALLOCATORS_MAX]; /* history: of this server, or NULL */
    unsigned count;
    struct tarn_history *history; /* of all of them; NULL: there was none yet */
    bool records;                 /* the history is switched on */
    bool is_held;     /* an allocator that is watched no longer has the history as its sink: it is
                     never destroyed */
    pthread_t thread; /* the following are guarded by `changes` */
    bool runs;
    int listener;
    int wake[2];
    char path[TN_FOLDER_PATH_MAX + 32];
};

static const struct server nothing = {
    .changes = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1};
static struct server server = {
    .changes = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1};

static struct tn_fork_watch fork_watch;
static bool is_watching; /* forks and the end of the program; guarded by `changes` */

/* ---- requests, under the lock ---- */

static void keeper_pin(void *context, const struct tarn_sink *sink)
{
    *(struct tarn_history **)context = tn_history_pin(sink);
}

/* The allocators, each with the history that has its stacks now: this server's, or the program's
 * own, which cannot be destroyed meanwhile. */
static enum tarn_status snapshot_capture(struct tarn_snapshot **snapshot_out,
                                         struct tarn_error *error)
{
    struct tarn_capture_source sources[ALLOCATORS_MAX];
    const unsigned count = server.count;

    for (unsigned i = 0; i < count; i++) {
        sources[i] = (struct tarn_capture_source){.allocator = server.sources[i].allocator};
        tn_allocator_visit_keeper(sources[i].allocator, keeper_pin, &sources[i].history);
    }
    const enum tarn_status st = tarn_snapshot_capture(sources, count, NULL, snapshot_out, error);

    for (unsigned i = 0; i < count; i++) {
        if (sources[i].history) {
            tn_history_unpin(sources[i].history);
        }
    }
    return st;
}

static enum tarn_status serve_snapshot(const struct tn_control_request *request,
                                       uint64_t *value_out, struct tarn_error *error)
{
    const uint64_t begin = tn_clock_now_ns();
    struct tarn_snapshot *snapshot = NULL;

    if (access(request->path, F_OK) == 0) {
        return tn_fail(error, TARN_ERR_IO, "%s: the file exists", request->path);
    }
    enum tarn_status st = snapshot_capture(&snapshot, error);

    if (st == TARN_OK) {
        st = tarn_snapshot_save(snapshot, request->path, error);
        tarn_snapshot_destroy(snapshot);
    }
    *value_out = tn_clock_now_ns() - begin;
    return st;
}

static enum tarn_status serve_trim(uint64_t bytes, uint64_t *value_out, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (unsigned i = 0; i < server.count && st == TARN_OK; i++) {
        uint64_t reserved = 0;

        st = tarn_allocator_trim(server.sources[i].allocator, bytes, &reserved, error);
        *value_out += reserved;
    }
    return st;
}

/* Each allocator that has the pool. */
static enum tarn_status serve_sleep(const struct tn_control_request *request,
                                    struct tarn_error *error)
{
    const struct tarn_sleep_options options = {.struct_size = sizeof options,
                                               .discard = request->value != 0};
    struct tarn_pool_id pool = {0, 0};
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    (void)tn_control_read_pool(request, &pool); /* it was checked */
    for (unsigned i = 0; i < server.count && (st == TARN_OK || st == TARN_ERR_NOT_FOUND); i++) {
        struct tarn_allocator *allocator = server.sources[i].allocator;
        const enum tarn_status here = request->command == TN_CONTROL_SLEEP
                                          ? tarn_allocator_sleep(allocator, pool, &options, error)
                                          : tarn_allocator_wake(allocator, pool, error);

        st = here == TARN_ERR_NOT_FOUND ? st : here;
    }
    return st;
}

/* The sink may be gone already, if the program has begun to record stacks itself. One that a call
 * holds up stays, switched off, until history is asked for again or the allocator goes. */
static void history_end(struct tarn_capture_source *source)
{
    if (source->history && tarn_allocator_remove_sink(source->allocator, source->history, NULL) !=
                               TARN_ERR_NOT_READY) {
        source->history = NULL;
    }
}

/* Switches a sink on that is still there. */
static bool history_resume(const struct tarn_capture_source *source)
{
    return source->history && tarn_allocator_switch_sink(source->allocator, source->history, true,
                                                         TARN_CONTEXT_ALL, NULL) == TARN_OK;
}

static enum tarn_status history_begin(struct tarn_capture_source *source, struct tarn_error *error)
{
    struct tarn_sink sink;

    if (history_resume(source)) {
        return TARN_OK;
    }
    source->history = NULL;
    tarn_history_get_sink(server.history, TARN_CONTEXT_ALL, &sink);
    const enum tarn_status st = tarn_allocator_add_sink(source->allocator, &sink, error);

    if (st == TARN_OK) {
        source->history = server.history;
        tn_allocator_yield_sink(source->allocator, source->history); /* to the program's own */
    }
    return st;
}

/* Whether no allocator has the history as its sink any more. */
static bool history_is_free(void)
{
    bool is_free = !server.is_held;

    for (unsigned i = 0; i < server.count; i++) {
        is_free = is_free && !server.sources[i].history;
    }
    return is_free;
}

static enum tarn_status serve_history_off(void)
{
    for (unsigned i = 0; i < server.count; i++) {
        history_end(&server.sources[i]);
    }
    if (server.history && history_is_free()) {
        tarn_history_destroy(server.history);
        server.history = NULL;
    } else if (server.history) {
        tarn_history_clear(server.history);
    }
    server.records = false;
    return TARN_OK;
}

/* A history for so many events, 0 = the default number. */
static enum tarn_status history_get(uint64_t entries, struct tarn_error *error)
{
    const struct tarn_history_options options = {.struct_size = sizeof options,
                                                 .max_entries = entries};

    if (!server.history) {
        return tarn_history_create(&options, &server.history, error);
    }
    return tarn_history_set_max_entries(server.history, entries ? entries : TARN_HISTORY_ENTRIES,
                                        error);
}

/* Whether all allocators are recorded: the program may have taken a sink's place. */
static bool history_is_everywhere(void)
{
    bool everywhere = server.records;

    for (unsigned i = 0; i < server.count; i++) {
        const struct tarn_capture_source *source = &server.sources[i];

        everywhere = everywhere && source->history &&
                     tn_allocator_stack_keeper(source->allocator) == source->history;
    }
    return everywhere;
}

static enum tarn_status serve_history_on(uint64_t entries, struct tarn_error *error)
{
    if (history_is_everywhere()) {
        return TARN_OK;
    }
    enum tarn_status st = history_get(entries, error);

    for (unsigned i = 0; i < server.count && st == TARN_OK; i++) {
        st = history_begin(&server.sources[i], error);
    }
    if (st) {
        (void)serve_history_off();
    } else {
        server.records = true;
    }
    return st;
}

static enum tarn_status serve(const struct tn_control_request *request, uint64_t *value_out,
                              struct tarn_error *error)
{
    switch ((enum tn_control_command)request->command) {
    case TN_CONTROL_SNAPSHOT:
        return serve_snapshot(request, value_out, error);
    case TN_CONTROL_TRIM:
        return serve_trim(request->value, value_out, error);
    case TN_CONTROL_HISTORY_ON:
        return serve_history_on(request->value, error);
    case TN_CONTROL_HISTORY_OFF:
        return serve_history_off();
    case TN_CONTROL_SLEEP:
    case TN_CONTROL_WAKE:
        return serve_sleep(request, error);
    case TN_CONTROL_END: /* was refused by then */
        tn_no_case();
        break;
    }
    return TARN_ERR_INTERNAL;
}

/* ---- the thread ---- */

static void client_serve(int client)
{
    struct tn_control_request request;
    struct tn_control_reply reply = {.version = TN_CONTROL_VERSION};
    struct tarn_error error = {.text = ""};

    if (!tn_os_socket_receive(client, &request, sizeof request)) {
        return;
    }
    enum tarn_status st = tn_control_check_request(&request, &error);

    if (st == TARN_OK) {
        (void)pthread_mutex_lock(&server.lock);
        st = serve(&request, &reply.value, &error);
        (void)pthread_mutex_unlock(&server.lock);
    }
    memcpy(reply.magic, TN_CONTROL_MAGIC, sizeof reply.magic);
    reply.status = st;
    (void)snprintf(reply.text, sizeof reply.text, "%.*s", TN_CONTROL_TEXT_MAX - 1,
                   st && tn_never(!error.text[0]) /* whatever fails says why */
                       ? tarn_status_text(st)
                       : error.text);
    if (!tn_os_socket_send(client, &reply, sizeof reply)) {
        return; /* it is gone */
    }
}

static void *serve_clients(void *argument)
{
    bool woken = false;

    (void)argument;
    tn_os_thread_name("tarn-control");
    while (!woken) {
        const int client = tn_os_socket_accept(server.listener, server.wake[0], -1, &woken);

        if (client >= 0) {
            client_serve(client);
            tn_os_descriptor_close(client);
        }
    }
    return NULL;
}

static bool thread_start(void)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    server.runs = pthread_create(&server.thread, NULL, serve_clients, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return server.runs;
}

/* ---- beginning and ending, under `changes` ---- */

static void sockets_close(void)
{
    tn_os_descriptor_close(server.listener);
    tn_os_descriptor_close(server.wake[0]);
    tn_os_descriptor_close(server.wake[1]);
    server.listener = -1;
}

/* In the child: only the sockets are left of the parent's server. */
static void server_forked(struct tn_fork_watch *watch)
{
    (void)watch;
    if (server.runs) {
        sockets_close();
    }
    memcpy(&server, &nothing, sizeof server);
}

/* The thread may be serving, and is not waited for. */
static void server_at_exit(void)
{
    if (server.runs) {
        tn_os_shared_remove(server.path);
    }
}

/* What publishes an allocator's counters watches forks already, and adds it here then. */
static bool watching_begin(void)
{
    if (!is_watching && atexit(server_at_exit) == 0) {
        tn_fork_watch_init(&fork_watch, server_forked);
        is_watching = true;
    }
    return is_watching;
}

static bool server_begin(const char *runtime)
{
    char folder[TN_FOLDER_PATH_MAX];

    if (!watching_begin() || !tn_os_folder_private(runtime, "tarn", true, folder)) {
        return false;
    }
    (void)snprintf(server.path, sizeof server.path, "%s/%lld.sock", folder,
                   (long long)tn_os_process_id());
    if (!tn_os_pipe(server.wake)) {
        return false;
    }
    server.listener = tn_os_socket_listen(server.path);
    if (server.listener >= 0 && thread_start()) {
        return true;
    }
    sockets_close();
    tn_os_shared_remove(server.path);
    return false;
}

static void server_end(void)
{
    tn_os_shared_remove(server.path);
    tn_os_pipe_write(server.wake[1]);
    (void)pthread_join(server.thread, NULL);
    server.runs = false;
    sockets_close();
    (void)serve_history_off();
}

/* ---- allocators ---- */

static bool control_added(struct tarn_allocator *allocator, const char *runtime)
{
    (void)pthread_mutex_lock(&server.changes);
    /* There is room: each of them has a slot of the page, this one too, until it has left here. */
    const bool taken =
        tn_always(server.count < ALLOCATORS_MAX) && (server.runs || server_begin(runtime));

    if (taken) {
        (void)pthread_mutex_lock(&server.lock);
        struct tarn_capture_source *source = &server.sources[server.count++];

        *source = (struct tarn_capture_source){.allocator = allocator};
        if (server.records) {
            (void)history_begin(source, NULL);
        }
        (void)pthread_mutex_unlock(&server.lock);
    }
    (void)pthread_mutex_unlock(&server.changes);
    return taken;
}

static void source_forget(unsigned i)
{
    (void)pthread_mutex_lock(&server.lock);
    history_end(&server.sources[i]);
    server.is_held = server.is_held || server.sources[i].history;
    server.sources[i] = server.sources[--server.count];
    (void)pthread_mutex_unlock(&server.lock);
}

static void control_removed(struct tarn_allocator *allocator)
{
    (void)pthread_mutex_lock(&server.changes);
    for (unsigned i = 0; i < server.count; i++) {
        if (server.sources[i].allocator == allocator) {
            source_forget(i);
            if (server.count == 0) {
                server_end();
            }
            break;
        }
    }
    (void)pthread_mutex_unlock(&server.changes);
}

static const struct tn_control_hook hook = {.added = control_added, .removed = control_removed};

void tarn_control_enable(void)
{
    tn_watch_source_set_hook(&hook);
}

/* Of the shared library, when it is loaded. */
__attribute__((constructor)) static void enable_on_load(void)
{
    tarn_control_enable();
}
