/* SPDX-License-Identifier: MIT */
#include "plug/preload/record.h"

#include "plug/preload/driver.h"
#include "plug/preload/process.h"
#include "plug/preload/report.h"
#include "tarn/capture.h"
#include "tarn/observer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_MAX_BYTES = 4096
};

/* Created at the first report of the device; never destroyed, other threads may report while the
 * process ends. */
static struct {
    pthread_mutex_t lock; /* guards creation, and the counters of kinds */
    struct tarn_history *history;
    struct tarn_history *host_history;
    _Atomic(struct tarn_observer *) observers[RUN_DEVICES_MAX];
    _Atomic(struct tarn_observer *) host;
    struct tarn_allocator *allocators[RUN_DEVICES_MAX];
    size_t allocator_count;
    struct run_kind_total totals[RUN_KINDS];
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const kind_names[RUN_KINDS] = {
    [RUN_KIND_PLAIN] = "cuMemAlloc",          [RUN_KIND_ASYNC] = "cuMemAllocAsync",
    [RUN_KIND_MANAGED] = "cuMemAllocManaged", [RUN_KIND_PAGES] = "cuMemCreate",
    [RUN_KIND_HOST] = "cuMemHostAlloc",
};

const char *run_kind_name(enum run_kind kind)
{
    return kind_names[kind];
}

/* ---- observers ---- */

static struct tarn_history *history_create(void)
{
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = (enum tarn_stack_source)run_settings()->stacks,
        .max_entries = run_settings()->entries,
    };
    struct tarn_history *history = NULL;

    if (tarn_history_create(&options, &history, NULL) != TARN_OK) {
        run_say_once("host memory",
                     "tarn run: out of %s: what is allocated from now on is not recorded\n");
    }
    return history;
}

/* Only counts where no file is asked for. The lock is held. */
static struct tarn_observer *observer_create(int device, struct tarn_history **history)
{
    const bool is_recorded = run_settings()->record != NULL;
    struct tarn_observer *observer = NULL;

    if (!*history && is_recorded) {
        *history = history_create();
    }
    if ((!*history && is_recorded) ||
        tarn_observer_create(device, *history, TARN_CONTEXT_ALLOC, &observer, NULL) != TARN_OK) {
        return NULL;
    }
    return observer;
}

/* NULL without host memory, and for a device beyond what is followed. */
static struct tarn_observer *observer_get(enum run_kind kind, int device)
{
    if (device < 0 || device >= RUN_DEVICES_MAX) {
        return NULL;
    }
    const bool is_host = kind == RUN_KIND_HOST;
    _Atomic(struct tarn_observer *) *place = is_host ? &record.host : &record.observers[device];
    struct tarn_observer *observer = atomic_load_explicit(place, memory_order_acquire);

    if (observer) {
        return observer;
    }
    (void)pthread_mutex_lock(&record.lock);
    observer = atomic_load_explicit(place, memory_order_relaxed);
    if (!observer) {
        observer =
            observer_create(is_host ? 0 : device, is_host ? &record.host_history : &record.history);
        atomic_store_explicit(place, observer, memory_order_release);
    }
    (void)pthread_mutex_unlock(&record.lock);
    return observer;
}

static void total_add(enum run_kind kind, uint64_t size)
{
    (void)pthread_mutex_lock(&record.lock);
    struct run_kind_total *total = &record.totals[kind];

    total->calls++;
    total->bytes += size;
    total->peak = total->bytes > total->peak ? total->bytes : total->peak;
    (void)pthread_mutex_unlock(&record.lock);
}

static void total_take(enum run_kind kind, uint64_t size)
{
    (void)pthread_mutex_lock(&record.lock);
    record.totals[kind].bytes -= size;
    (void)pthread_mutex_unlock(&record.lock);
}

void run_record_alloc(enum run_kind kind, int device, uint64_t address, uint64_t size,
                      uint64_t stream)
{
    struct tarn_observer *observer = observer_get(kind, device);
    const struct tarn_observed memory = {address, size, stream, kind_names[kind]};

    if (observer && tarn_observer_alloc(observer, &memory) == TARN_OK) {
        total_add(kind, size);
    }
}

void run_record_failure(int device, uint64_t size, uint64_t stream)
{
    struct tarn_observer *observer = observer_get(RUN_KIND_PLAIN, device);
    const struct run_driver *driver = run_driver();
    size_t unused = 0;
    size_t total = 0;

    if (observer) {
        (void)(driver->cuMemGetInfo_v2 ? driver->cuMemGetInfo_v2(&unused, &total) : 0);
        tarn_observer_oom(observer, size, stream, unused);
    }
}

static enum run_kind kind_of(const char *what)
{
    int kind = 0;

    while (kind < RUN_KINDS - 1 && kind_names[kind] != what) {
        kind++;
    }
    return (enum run_kind)kind;
}

static bool freed_by(struct tarn_observer *observer, int device, uint64_t address,
                     struct run_freed *freed_out)
{
    struct tarn_observed memory;

    if (!observer || !tarn_observer_find(observer, address, &memory) || memory.address != address ||
        tarn_observer_free(observer, address, &memory) != TARN_OK) {
        return false;
    }
    *freed_out = (struct run_freed){.device = device,
                                    .kind = kind_of(memory.what),
                                    .address = address,
                                    .size = memory.size,
                                    .stream = memory.stream};
    total_take(freed_out->kind, memory.size);
    return true;
}

void run_record_free(uint64_t address, struct run_freed *freed_out)
{
    *freed_out = (struct run_freed){.device = -1};
    if (address == 0) {
        return;
    }
    for (int i = 0; i < RUN_DEVICES_MAX; i++) {
        if (freed_by(atomic_load(&record.observers[i]), i, address, freed_out)) {
            return;
        }
    }
    (void)freed_by(atomic_load(&record.host), 0, address, freed_out);
}

void run_record_restore(const struct run_freed *freed)
{
    if (freed->device >= 0) {
        run_record_alloc(freed->kind, freed->device, freed->address, freed->size, freed->stream);
    }
}

void run_record_reset(int device)
{
    if (device >= 0 && device < RUN_DEVICES_MAX && atomic_load(&record.observers[device])) {
        tarn_observer_free_all(atomic_load(&record.observers[device]));
    }
}

void run_record_add(struct tarn_allocator *allocator)
{
    struct tarn_sink sink;

    (void)pthread_mutex_lock(&record.lock);
    if (!record.history && run_settings()->record) {
        record.history = history_create();
    }
    if (record.history) {
        tarn_history_get_sink(record.history, TARN_CONTEXT_ALLOC, &sink);
        (void)!tarn_allocator_add_sink(allocator, &sink, NULL);
    }
    if (record.allocator_count < RUN_DEVICES_MAX) {
        record.allocators[record.allocator_count++] = allocator;
    }
    (void)pthread_mutex_unlock(&record.lock);
}

/* ---- the file ---- */

/* The name of this process's file: that of the program that was started is the user's, others have
 * their process id before the ending. */
static void path_make(char *path, size_t size)
{
    const char *given = run_settings()->record;
    const char *slash = strrchr(given, '/');
    const char *name = slash ? slash + 1 : given;
    const char *dot = strrchr(name, '.');
    const size_t stem = dot && dot != name ? (size_t)(dot - given) : strlen(given);

    if (run_settings()->leader == (int64_t)getpid()) {
        (void)snprintf(path, size, "%s", given);
    } else {
        (void)snprintf(path, size, "%.*s.%ld%s", (int)stem, given, (long)getpid(), given + stem);
    }
}

static enum tarn_status snapshot_save(struct tarn_error *error)
{
    struct tarn_capture_source sources[RUN_DEVICES_MAX];
    struct tarn_observer *observers[RUN_DEVICES_MAX];
    struct tarn_capture_options options = {
        .struct_size = sizeof options, .observers = observers, .host_observer = NULL};
    struct tarn_snapshot *snapshot;
    char path[PATH_MAX_BYTES];

    for (size_t i = 0; i < record.allocator_count; i++) {
        sources[i] = (struct tarn_capture_source){record.allocators[i], record.history};
    }
    for (int i = 0; i < RUN_DEVICES_MAX; i++) {
        observers[options.observer_count] = atomic_load(&record.observers[i]);
        options.observer_count += observers[options.observer_count] != NULL;
    }
    options.host_observer = atomic_load(&record.host);
    if (record.allocator_count + options.observer_count == 0) {
        return TARN_OK; /* pinned memory alone creates an observer of the device too */
    }
    enum tarn_status status =
        tarn_snapshot_capture(sources, record.allocator_count, &options, &snapshot, error);

    if (status == TARN_OK) {
        path_make(path, sizeof path);
        status = tarn_snapshot_save(snapshot, path, error);
        tarn_snapshot_destroy(snapshot);
    }
    return status;
}

void run_record_write(void)
{
    struct tarn_error error = {.offset = -1};

    if (atomic_load(&record.host)) {
        (void)observer_get(RUN_KIND_PLAIN, 0);
    }
    if (run_settings()->record && snapshot_save(&error) != TARN_OK) {
        run_say("tarn run: no snapshot was written: %s\n", error.text);
    }
}

void run_record_finish(void)
{
    run_record_write();
    if (run_settings()->summary) {
        for (int i = 0; i < RUN_DEVICES_MAX; i++) {
            struct tarn_observer *observer = atomic_load(&record.observers[i]);

            if (observer) {
                run_report_device(i, observer);
            }
        }
        for (size_t i = 0; i < record.allocator_count; i++) {
            run_report_allocator(record.allocators[i]);
        }
        run_report_kinds(record.totals);
    }
}

void run_record_forked(void)
{
    (void)pthread_mutex_init(&record.lock, NULL);
    record.history = NULL; /* the parent's */
    record.host_history = NULL;
    record.allocator_count = 0;
    for (int i = 0; i < RUN_DEVICES_MAX; i++) {
        atomic_store(&record.observers[i], NULL);
    }
    atomic_store(&record.host, NULL);
    memset(record.totals, 0, sizeof record.totals);
    run_pages_forked();
}
