/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT, syscall */
#include "support/any_stream.h"
#include "support/failing.h"
#include "support/test.h"

#include "support/child.h"
#include "support/child_end.h"
#include "support/sim.h"

#include "base/os_process.h"
#include "base/os_socket.h"
#include "snapshot/snapshot.h"
#include "tarn/allocator.h"
#include "tarn/history.h"
#include "tarn/sleep.h"
#include "tarn/snapshot.h"
#include "tarn/watch.h"
#include "tarn/watch_control.h"
#include "watch/control_message.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#ifdef __GLIBC__ /* unions of all kinds of addresses */
#define CONST_ADDRESS __CONST_SOCKADDR_ARG
#else
#define CONST_ADDRESS const struct sockaddr *
#endif

FAILING(int, -1, connect, (int file, CONST_ADDRESS address, socklen_t size), (file, address, size))

enum {
    PATIENCE_MS = 20000,
    EVENTS = 1000 /* that a history keeps */
};

static char runtime_folder[64];
static char snapshot_path[96];
static char socket_path[128];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(runtime_folder, sizeof runtime_folder, "/tmp/tarn-control-XXXXXX");
    if (!mkdtemp(runtime_folder)) {
        return 1;
    }
    (void)snprintf(snapshot_path, sizeof snapshot_path, "%s/now.pickle", runtime_folder);
    (void)snprintf(socket_path, sizeof socket_path, "%s/tarn/%lld.sock", runtime_folder,
                   (long long)getpid());
    tarn_control_enable();
    return 0;
}

static int end(void **state)
{
    char folder[80];

    (void)state;
    (void)unlink(snapshot_path);
    (void)snprintf(folder, sizeof folder, "%s/tarn", runtime_folder);
    (void)rmdir(folder);
    return rmdir(runtime_folder);
}

struct rig {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
};

static void rig_watch(struct rig *rig, bool control)
{
    const struct tarn_watch_options options = {
        .struct_size = sizeof options, .runtime_folder = runtime_folder, .control = control};
    struct tarn_error error = {.text = ""};

    if (tarn_watch_start(rig->allocator, &options, &error)) {
        fail_msg("%s", error.text);
    }
}

static struct rig rig_open(bool control)
{
    struct rig rig = {.device = sim_open(4 * GIB)};

    assert_int_equal(tarn_allocator_create(rig.device, NULL, &rig.allocator, NULL), TARN_OK);
    rig_watch(&rig, control);
    return rig;
}

static void rig_close(struct rig *rig)
{
    tarn_allocator_destroy(rig->allocator);
    sim_close(rig->device);
}

static tarn_ptr alloc_ok(struct tarn_allocator *allocator, uint64_t size)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_allocator_alloc(allocator, size, 0, &ptr, NULL), TARN_OK);
    return ptr;
}

static void free_ok(struct tarn_allocator *allocator, tarn_ptr ptr)
{
    assert_int_equal(tarn_allocator_free(allocator, ptr, NULL), TARN_OK);
}

static void snapshot_ok(void)
{
    struct tarn_error error = {.text = ""};

    (void)unlink(snapshot_path);
    if (tarn_control_snapshot(runtime_folder, getpid(), snapshot_path, PATIENCE_MS, &error)) {
        fail_msg("%s", error.text);
    }
}

static struct tarn_snapshot *snapshot_load(void)
{
    struct tarn_snapshot *snapshot = NULL;

    assert_int_equal(tarn_snapshot_load(snapshot_path, NULL, &snapshot, NULL), TARN_OK);
    return snapshot;
}

/* ---- what is asked for ---- */

static void history_ok(bool on)
{
    struct tarn_error error = {.text = ""};

    if (tarn_control_history(runtime_folder, getpid(), on, EVENTS, PATIENCE_MS, &error)) {
        fail_msg("%s", error.text);
    }
}

static void a_snapshot_is_written(void **state)
{
    struct rig rig = rig_open(true);
    struct tarn_error error = {.text = ""};

    (void)state;
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB);

    snapshot_ok();
    assert_int_equal(
        tarn_control_snapshot(runtime_folder, getpid(), snapshot_path, PATIENCE_MS, &error),
        TARN_ERR_IO);
    assert_non_null(strstr(error.text, "the file exists"));
    assert_int_equal(
        tarn_control_snapshot(runtime_folder, getpid(), "now.pickle", PATIENCE_MS, &error),
        TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        tarn_control_snapshot(runtime_folder, getpid(), "/no/where", PATIENCE_MS, &error),
        TARN_ERR_IO);
    char long_path[2 * TN_CONTROL_PATH_MAX] = "/";

    memset(long_path + 1, 'x', sizeof long_path - 2);
    assert_int_equal(
        tarn_control_snapshot(runtime_folder, getpid(), long_path, PATIENCE_MS, &error),
        TARN_ERR_INVALID_ARGUMENT);
    struct tarn_snapshot *snapshot = snapshot_load();

    assert_int_equal(tarn_snapshot_segment_count(snapshot), 1);
    tarn_snapshot_destroy(snapshot);
    free_ok(rig.allocator, ptr);
    rig_close(&rig);
    assert_int_equal(access(socket_path, F_OK), -1);
}

static void history_is_switched_on_and_off(void **state)
{
    struct rig rig = rig_open(true);

    (void)state;
    history_ok(true);
    history_ok(true);                   /* changes nothing */
    struct rig second = rig_open(true); /* recorded as well */

    free_ok(rig.allocator, alloc_ok(rig.allocator, 30 * MIB));
    free_ok(second.allocator, alloc_ok(second.allocator, 30 * MIB));
    snapshot_ok();
    struct tarn_snapshot *snapshot = snapshot_load();

    assert_int_equal(tarn_snapshot_entry_count(snapshot),
                     8); /* segment, alloc, free requested and completed */
    tarn_snapshot_destroy(snapshot);
    history_ok(false);
    history_ok(false);
    free_ok(rig.allocator, alloc_ok(rig.allocator, 30 * MIB));
    snapshot_ok();
    snapshot = snapshot_load();
    assert_int_equal(tarn_snapshot_entry_count(snapshot), 0);
    tarn_snapshot_destroy(snapshot);
    history_ok(true); /* destroying the allocators ends it */
    rig_close(&rig);
    rig_close(&second);
}

static struct tarn_history *record_oneself(struct tarn_allocator *allocator)
{
    const struct tarn_history_options options = {.struct_size = sizeof options,
                                                 .max_entries = EVENTS};
    struct tarn_history *history = NULL;
    struct tarn_sink sink;

    assert_int_equal(tarn_history_create(&options, &history, NULL), TARN_OK);
    tarn_history_get_sink(history, TARN_CONTEXT_ALL, &sink);
    assert_int_equal(tarn_allocator_add_sink(allocator, &sink, NULL), TARN_OK);
    return history;
}

static void record_no_longer(struct tarn_allocator *allocator, struct tarn_history *history)
{
    assert_int_equal(tarn_allocator_remove_sink(allocator, history, NULL), TARN_OK);
    tarn_history_destroy(history);
}

/* How many events there are, and that the one block has a stack if `has_stack`. */
static uint64_t events_dumped(bool has_stack)
{
    snapshot_ok();
    struct tarn_snapshot *snapshot = snapshot_load();
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->segment_count, 1);
    assert_true((model->segments[0].blocks[0].stack != TN_STACK_EMPTY) == has_stack);
    const uint64_t count = tarn_snapshot_entry_count(snapshot);

    tarn_snapshot_destroy(snapshot);
    return count;
}

static void a_history_of_the_program_is_left_alone(void **state)
{
    struct rig rig = rig_open(true);
    struct tarn_history *history = record_oneself(rig.allocator);
    struct tarn_error error = {.text = ""};

    (void)state;
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB);

    assert_int_equal(tarn_control_history(runtime_folder, getpid(), true, 0, PATIENCE_MS, &error),
                     TARN_ERR_STATE);
    assert_true(error.text[0] != '\0');
    history_ok(false);
    assert_int_equal(events_dumped(true), 2); /* of the program's history, with its stacks */
    assert_int_equal(events_dumped(true), 3); /* and the first snapshot */
    record_no_longer(rig.allocator, history);
    assert_int_equal(events_dumped(false), 0);
    history_ok(true);
    free_ok(rig.allocator, ptr);
    rig_close(&rig);
}

static void a_program_records_itself_after_the_watcher(void **state)
{
    struct rig rig = rig_open(true);

    (void)state;
    history_ok(true);
    history_ok(false);
    struct tarn_history *history = record_oneself(rig.allocator);
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB);

    assert_int_equal(events_dumped(true), 2);
    record_no_longer(rig.allocator, history);
    history_ok(true);
    free_ok(rig.allocator, ptr);
    rig_close(&rig);
}

/* The watcher's history ends, and does not come back by itself. */
static void a_program_takes_the_place_of_the_watcher(void **state)
{
    struct rig rig = rig_open(true);

    (void)state;
    history_ok(true);
    const tarn_ptr before = alloc_ok(rig.allocator, 30 * MIB);
    struct tarn_history *history = record_oneself(rig.allocator);
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB);
    struct tarn_error error = {.text = ""};

    free_ok(rig.allocator, before);
    assert_int_equal(tarn_control_history(runtime_folder, getpid(), true, 0, PATIENCE_MS, &error),
                     TARN_ERR_STATE);
    history_ok(false); /* nothing of the program's */
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(history, &usage);
    assert_int_equal(usage.entries, 4); /* segment, allocation, free */
    record_no_longer(rig.allocator, history);
    history_ok(true);
    free_ok(rig.allocator, ptr);
    rig_close(&rig);
}

static void cached_memory_goes_back(void **state)
{
    struct rig rig = rig_open(true);
    uint64_t reserved = 0;

    (void)state;
    const tarn_ptr kept = alloc_ok(rig.allocator, 30 * MIB);
    const tarn_ptr freed = alloc_ok(rig.allocator, 40 * MIB);

    free_ok(rig.allocator, freed);
    assert_int_equal(
        tarn_control_trim(runtime_folder, getpid(), 50 * MIB, &reserved, PATIENCE_MS, NULL),
        TARN_OK);
    assert_int_equal(reserved, 30 * MIB);
    free_ok(rig.allocator, kept);
    rig_close(&rig);
}

static uint64_t reserved_now(struct tarn_allocator *allocator)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};

    tarn_allocator_get_stats(allocator, &stats);
    return (uint64_t)stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL].current;
}

static void a_pool_sleeps_and_wakes(void **state)
{
    struct rig rig = {.device = sim_open(4 * GIB)};
    const struct tarn_pool_id pool = {0, 7};
    struct tarn_error error = {.text = ""};
    struct tarn_config config;

    (void)state;
    assert_int_equal(tarn_config_parse("expandable_segments:True", &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(rig.device, &config, &rig.allocator, NULL), TARN_OK);
    rig_watch(&rig, true);
    struct rig second = rig_open(true); /* without the pool */
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, pool, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = alloc_ok(rig.allocator, 30 * MIB);

    assert_int_equal(tarn_allocator_end_pool(rig.allocator, pool, NULL), TARN_OK);
    const uint64_t reserved = reserved_now(rig.allocator);

    assert_int_equal(tarn_control_sleep(runtime_folder, getpid(), pool, true, PATIENCE_MS, &error),
                     TARN_OK);
    assert_true(tarn_allocator_is_asleep(rig.allocator, pool));
    assert_int_equal(reserved_now(rig.allocator), 0);
    assert_int_equal(tarn_control_sleep(runtime_folder, getpid(), pool, true, PATIENCE_MS, &error),
                     TARN_ERR_STATE);
    assert_int_equal(tarn_control_wake(runtime_folder, getpid(), pool, PATIENCE_MS, &error),
                     TARN_OK);
    assert_int_equal(reserved_now(rig.allocator), reserved);
    assert_int_equal(tarn_control_wake(runtime_folder, getpid(), (struct tarn_pool_id){0, 8},
                                       PATIENCE_MS, &error),
                     TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "no private pool (0, 8)"));
    free_ok(rig.allocator, ptr);
    assert_int_equal(tarn_allocator_release_pool(rig.allocator, pool, NULL), TARN_OK);
    rig_close(&second);
    rig_close(&rig);
}

/* ---- who takes no requests ---- */

static void refused(const char *text)
{
    struct tarn_error error = {.text = ""};

    assert_int_equal(tarn_control_trim(runtime_folder, getpid(), 0, NULL, PATIENCE_MS, &error),
                     TARN_ERR_NOT_FOUND);
    if (!strstr(error.text, text)) {
        fail_msg("%s", error.text);
    }
}

static void it_is_off_by_default(void **state)
{
    struct rig rig = rig_open(false);

    (void)state;
    refused("start it with TARN_WATCH=control");
    assert_int_equal(access(socket_path, F_OK), -1);
    rig_close(&rig);
    refused("publishes nothing");
}

/* ---- hostile clients ---- */

static void request_is_refused(struct tn_control_request request, const char *text)
{
    struct tn_control_reply reply;
    struct tarn_error error = {.text = ""};
    const int client = tn_os_socket_connect(socket_path, PATIENCE_MS);

    assert_true(client >= 0);
    assert_true(tn_os_socket_send(client, &request, sizeof request));
    assert_true(tn_os_socket_receive(client, &reply, sizeof reply));
    assert_int_equal(tn_control_read_reply(&reply, &error), TARN_ERR_FORMAT);
    if (!strstr(error.text, text)) {
        fail_msg("%s", error.text);
    }
    tn_os_descriptor_close(client);
}

static void wrong_requests_are_refused(void **state)
{
    struct rig rig = rig_open(true);
    struct tn_control_request request = {
        .magic = TN_CONTROL_MAGIC, .version = TN_CONTROL_VERSION, .command = TN_CONTROL_SNAPSHOT};

    (void)state;
    memset(request.path, 'x', sizeof request.path);
    request_is_refused(request, "an absolute path");
    request.path[0] = '/'; /* that does not end */
    request_is_refused(request, "an absolute path");
    request.command = TN_CONTROL_WAKE;
    for (size_t i = 0; i < 3; i++) {
        static const char *const pools[] = {"1", "1,", "1,2 "};

        (void)snprintf(request.path, sizeof request.path, "%s", pools[i]);
        request_is_refused(request, "need a pool");
    }
    (void)snprintf(request.path, sizeof request.path, "99999999999999999999,1");
    request_is_refused(request, "need a pool");
    memset(request.path, '1', sizeof request.path); /* that does not end */
    request_is_refused(request, "need a pool");
    request.command = 0;
    request_is_refused(request, "no command 0");
    request.command = 77;
    request_is_refused(request, "no command 77");
    request.version = 9;
    request_is_refused(request, "version 9");
    request.magic[0] = 'T';
    request_is_refused(request, "no request");
    rig_close(&rig);
}

/* Clients that are silent, cut their message off, send too much or leave before the reply: the next
 * one is served. */
static void bad_clients_stop_nobody(void **state)
{
    static const char large[4096];
    struct rig rig = rig_open(true);
    const struct tn_control_request request = {.magic = TN_CONTROL_MAGIC,
                                               .version = TN_CONTROL_VERSION,
                                               .command = TN_CONTROL_HISTORY_OFF};

    (void)state;
    const int silent = tn_os_socket_connect(socket_path, PATIENCE_MS);
    const int hasty = tn_os_socket_connect(socket_path, PATIENCE_MS);

    assert_true(silent >= 0 && hasty >= 0);
    assert_true(tn_os_socket_send(hasty, &request, sizeof request));
    tn_os_descriptor_close(hasty);
    for (size_t size = 1; size <= sizeof large; size *= 8) {
        const int client = tn_os_socket_connect(socket_path, PATIENCE_MS);

        assert_true(client >= 0);
        assert_true(tn_os_socket_send(client, large, size));
        tn_os_descriptor_close(client);
    }
    history_ok(false);
    tn_os_descriptor_close(silent);
    rig_close(&rig);
}

/* ---- forks and threads ---- */

static void child_ends(void *context)
{
    struct rig *parent = context;

    tarn_allocator_destroy(parent->allocator);
    CHILD_REQUIRE(access(socket_path, F_OK) == 0);
    child_end();
}

static void a_child_leaves_the_socket_alone(void **state)
{
    struct rig rig = rig_open(true);

    (void)state;
    child_run(child_ends, &rig);
    assert_int_equal(access(socket_path, F_OK), 0);
    history_ok(false);
    rig_close(&rig);
}

static void child_ends_watched(void *context)
{
    struct rig rig = rig_open(true);
    char path[128];

    (void)context;
    (void)rig;
    (void)snprintf(path, sizeof path, "%s/tarn/%lld.sock", runtime_folder, (long long)getpid());
    CHILD_REQUIRE(access(path, F_OK) == 0);
    child_end();
}

static bool is_socket(const char *name)
{
    const size_t length = strlen(name);

    return length > 5 && strcmp(name + length - 5, ".sock") == 0;
}

/* A program that ends while it takes requests leaves no socket. */
static void the_end_of_the_program_removes_the_socket(void **state)
{
    char path[80];
    unsigned sockets = 0;

    (void)state;
    child_run(child_ends_watched, NULL);
    (void)snprintf(path, sizeof path, "%s/tarn", runtime_folder);
    DIR *folder = opendir(path);

    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        sockets += is_socket(entry->d_name);
    }
    assert_int_equal(closedir(folder), 0);
    assert_int_equal(sockets, 0);
}

static atomic_bool over;

static void *come_and_go(void *argument)
{
    (void)argument;
    while (!atomic_load(&over)) {
        struct rig rig = rig_open(true);

        free_ok(rig.allocator, alloc_ok(rig.allocator, MIB));
        rig_close(&rig);
    }
    return NULL;
}

/* For the thread sanitizer. */
static void requests_while_allocators_come_and_go(void **state)
{
    struct rig rig = rig_open(true);
    pthread_t threads[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    }
    for (int i = 0; i < 10; i++) {
        history_ok(i % 2 == 0);
        snapshot_ok();
        assert_int_equal(tarn_control_trim(runtime_folder, getpid(), 0, NULL, PATIENCE_MS, NULL),
                         TARN_OK);
    }
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    rig_close(&rig);
}

struct busy {
    struct tarn_allocator *allocator;
    atomic_bool over;
};

static void *use_memory(void *argument)
{
    struct busy *busy = argument;
    tarn_ptr own[4] = {0};

    for (unsigned i = 0; !atomic_load(&busy->over); i++) {
        tarn_ptr *ptr = &own[i % 4];

        if (*ptr) {
            free_ok(busy->allocator, *ptr);
        }
        *ptr = alloc_ok(busy->allocator, i % 3 ? 4096 : 3 * MIB);
    }
    for (int i = 0; i < 4; i++) {
        if (own[i]) {
            free_ok(busy->allocator, own[i]);
        }
    }
    return NULL;
}

/* Histories of the watcher and of the program come and go while stacks are captured for them. */
static void histories_while_threads_allocate(void **state)
{
    struct rig rig = rig_open(true);
    struct busy busy = {.allocator = rig.allocator};
    pthread_t threads[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_memory, &busy), 0);
    }
    for (int i = 0; i < 6; i++) {
        history_ok(true);
        snapshot_ok();
        if (i % 2) {
            history_ok(false);
        }
        struct tarn_history *history = record_oneself(rig.allocator);

        snapshot_ok();
        record_no_longer(rig.allocator, history);
    }
    atomic_store(&busy.over, true);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    rig_close(&rig);
}

/* ---- calls that hold a history ---- */

static bool is_hasty; /* who waits does not sleep */

int nanosleep(const struct timespec *time, struct timespec *left)
{
    return is_hasty ? 0 : (int)syscall(SYS_nanosleep, time, left);
}

/* A pool that falls asleep copies its contents without the allocator's lock. */
static struct {
    const struct tn_device_ops *ops;
    struct tn_device_ops hooked;
    struct rig *rig;
    void (*meanwhile)(struct rig *rig);
} moving;

static enum tarn_status copy_and_more(struct tarn_device *device, const struct tn_copy *copy,
                                      tarn_stream stream)
{
    device->ops = moving.ops; /* by which it is known */
    moving.meanwhile(moving.rig);
    return device->ops->copy(device, copy, stream);
}

static void sleep_and(struct rig *rig, void (*meanwhile)(struct rig *rig))
{
    const struct tarn_pool_id pool = {0, 7};

    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, pool, any_stream, NULL, NULL),
                     TARN_OK);
    const tarn_ptr ptr = alloc_ok(rig->allocator, 30 * MIB);

    assert_int_equal(tarn_allocator_end_pool(rig->allocator, pool, NULL), TARN_OK);
    moving.ops = rig->device->ops;
    moving.hooked = *moving.ops;
    moving.hooked.copy = copy_and_more;
    moving.rig = rig;
    moving.meanwhile = meanwhile;
    rig->device->ops = &moving.hooked;
    is_hasty = true;
    assert_int_equal(tarn_allocator_sleep(rig->allocator, pool, NULL, NULL), TARN_OK);
    is_hasty = false;
    assert_ptr_equal(rig->device->ops, moving.ops);
    assert_int_equal(tarn_allocator_wake(rig->allocator, pool, NULL), TARN_OK);
    free_ok(rig->allocator, ptr);
}

static struct rig rig_open_backed(void)
{
    struct rig rig = {
        .device = sim_open_with((struct tarn_sim_options){.capacity = 4 * GIB, .backed = true})};
    struct tarn_config config;

    assert_int_equal(tarn_config_parse("expandable_segments:True", &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(rig.device, &config, &rig.allocator, NULL), TARN_OK);
    rig_watch(&rig, true);
    return rig;
}

static void switch_meanwhile(struct rig *rig)
{
    history_ok(false); /* the call still has one of its stacks: it stays, and is empty */
    free_ok(rig->allocator, alloc_ok(rig->allocator, 30 * MIB));
    history_ok(true); /* the same one */
}

static uint64_t entries_now(void)
{
    snapshot_ok();
    struct tarn_snapshot *snapshot = snapshot_load();
    const uint64_t entries = tarn_snapshot_entry_count(snapshot);

    tarn_snapshot_destroy(snapshot);
    return entries;
}

static void a_call_may_hold_a_history(void **state)
{
    struct rig rig = rig_open_backed();

    (void)state;
    history_ok(true);
    sleep_and(&rig, switch_meanwhile);
    assert_true(entries_now() > 0); /* of what came after */
    history_ok(false);
    assert_int_equal(entries_now(), 0);
    rig_close(&rig);
}

static void stop_meanwhile(struct rig *rig)
{
    tarn_watch_stop(rig->allocator);
    assert_false(tarn_watch_is_on(rig->allocator));
}

/* Then it stays for good: nobody knows how long the call has it. */
static void a_history_may_be_held_behind_the_watching(void **state)
{
    struct rig rig = rig_open_backed();
    struct rig second = rig_open(true);

    (void)state;
    history_ok(true);
    sleep_and(&rig, stop_meanwhile);
    history_ok(false);
    assert_int_equal(entries_now(), 0);
    history_ok(true);
    free_ok(second.allocator, alloc_ok(second.allocator, 30 * MIB));
    assert_true(entries_now() > 0);
    history_ok(false);
    rig_close(&second);
    rig_close(&rig);
}

/* ---- what fails ---- */

static void a_snapshot_may_find_no_memory(void **state)
{
    struct rig rig = rig_open(true);
    struct tarn_error error = {.text = ""};

    (void)state;
    for (uint64_t n = 1; n <= 5; n++) { /* of the capture, too */
        (void)unlink(snapshot_path);
        tarn_host_fail_nth(n);
        assert_int_equal(
            tarn_control_snapshot(runtime_folder, getpid(), snapshot_path, PATIENCE_MS, &error),
            TARN_ERR_HOST_MEMORY);
        tarn_host_fail_nth(0);
        assert_true(error.text[0] != '\0');
        assert_int_equal(access(snapshot_path, F_OK), -1);
    }
    rig_close(&rig);
}

/* One that comes later and records itself is not recorded, which the next request says. */
static void a_late_allocator_may_record_itself(void **state)
{
    struct rig rig = rig_open(true);
    struct rig late = {.device = sim_open(4 * GIB)};
    struct tarn_error error = {.text = ""};

    (void)state;
    history_ok(true);
    assert_int_equal(tarn_allocator_create(late.device, NULL, &late.allocator, NULL), TARN_OK);
    struct tarn_history *history = record_oneself(late.allocator);

    rig_watch(&late, true);
    assert_int_equal(tarn_control_history(runtime_folder, getpid(), true, 0, PATIENCE_MS, &error),
                     TARN_ERR_STATE);
    record_no_longer(late.allocator, history);
    history_ok(true);
    free_ok(late.allocator, alloc_ok(late.allocator, 30 * MIB));
    assert_true(entries_now() > 0);
    history_ok(false);
    rig_close(&late);
    rig_close(&rig);
}

/* The first that fails ends it. */
static void one_of_several_may_fail(void **state)
{
    struct rig rigs[3] = {rig_open(true), rig_open(true), rig_open(true)};
    struct tarn_history *history = record_oneself(rigs[1].allocator);
    struct tarn_error error = {.text = ""};
    uint64_t reserved = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        free_ok(rigs[i].allocator, alloc_ok(rigs[i].allocator, 30 * MIB));
    }
    tarn_sim_fail_nth(rigs[0].device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_control_trim(runtime_folder, getpid(), 0, &reserved, PATIENCE_MS, &error),
                     TARN_ERR_DEVICE);
    assert_int_equal(reserved_now(rigs[2].allocator), 30 * MIB);
    assert_int_equal(tarn_control_history(runtime_folder, getpid(), true, 0, PATIENCE_MS, &error),
                     TARN_ERR_STATE);
    free_ok(rigs[0].allocator, alloc_ok(rigs[0].allocator, 30 * MIB)); /* is not recorded */
    record_no_longer(rigs[1].allocator, history);
    assert_int_equal(entries_now(), 0);
    for (int i = 0; i < 3; i++) {
        rig_close(&rigs[i]);
    }
}

static void a_process_that_does_not_answer_is_named(void **state)
{
    struct rig rig = rig_open(true);
    struct tarn_error error = {.text = ""};

    (void)state;
    fail_calls("connect", 0, 1, EAGAIN);
    assert_int_equal(tarn_control_trim(runtime_folder, getpid(), 0, NULL, PATIENCE_MS, &error),
                     TARN_ERR_NOT_READY);
    assert_true(fail_none());
    assert_non_null(strstr(error.text, "does not answer"));
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_is_written),
        cmocka_unit_test(history_is_switched_on_and_off),
        cmocka_unit_test(a_history_of_the_program_is_left_alone),
        cmocka_unit_test(a_program_records_itself_after_the_watcher),
        cmocka_unit_test(a_program_takes_the_place_of_the_watcher),
        cmocka_unit_test(cached_memory_goes_back),
        cmocka_unit_test(a_pool_sleeps_and_wakes),
        cmocka_unit_test(it_is_off_by_default),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(bad_clients_stop_nobody),
        cmocka_unit_test(a_child_leaves_the_socket_alone),
        cmocka_unit_test(the_end_of_the_program_removes_the_socket),
        cmocka_unit_test(requests_while_allocators_come_and_go),
        cmocka_unit_test(histories_while_threads_allocate),
        cmocka_unit_test(a_snapshot_may_find_no_memory),
        cmocka_unit_test(a_late_allocator_may_record_itself),
        cmocka_unit_test(one_of_several_may_fail),
        cmocka_unit_test(a_process_that_does_not_answer_is_named),
        cmocka_unit_test(a_call_may_hold_a_history),
        cmocka_unit_test(a_history_may_be_held_behind_the_watching),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
