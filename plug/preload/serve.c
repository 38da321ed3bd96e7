/* SPDX-License-Identifier: MIT */
#include "plug/preload/serve.h"

#include "plug/preload/driver.h"
#include "plug/preload/process.h"
#include "plug/preload/record.h"
#include "plug/preload/share.h"
#include "tarn/ipc.h"
#include "tarn/observer.h"
#include "tarn/stream.h"
#include "tarn/watch.h"
#include "tarn/watch_control.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum state {
    STATE_NEW,
    STATE_ON,
    STATE_OFF /* left to the driver */
};

/* Constant once `state` is on. */
struct served {
    _Atomic(int) state;
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_observer *live; /* without a history: what is allocated, by address */
    tarn_stream home;
    void *context; /* the primary one */
};

static struct served devices[RUN_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards creation */

static const char *conf_of(enum run_policy policy)
{
    switch (policy) {
    case RUN_EXPANDABLE:
        return "expandable_segments:True";
    case RUN_COMPACT:
        return "policy:compact";
    case RUN_OBSERVE:
    case RUN_NATIVE:
        break;
    }
    return "";
}

/* ---- starting ---- */

static enum tarn_status limit_set(struct served *served, struct tarn_error *error)
{
    struct tarn_device_info info = {.struct_size = sizeof info};
    const uint64_t limit = run_settings()->limit;

    tarn_device_get_info(served->device, &info);
    if (limit == 0 || limit >= info.total_memory) {
        return TARN_OK;
    }
    return tarn_allocator_set_memory_fraction(served->allocator,
                                              (double)limit / (double)info.total_memory, error);
}

/* The program is served whether it can be watched or not. */
static void watch_start(struct served *served, int device)
{
    const struct run_settings *settings = run_settings();
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = settings->runtime_folder,
                                               .control = settings->watch == TARN_WATCH_CONTROL};
    struct tarn_error error = {.offset = -1};

    if (settings->watch == TARN_WATCH_OFF) {
        return;
    }
    if (options.control) {
        tarn_control_enable();
    }
    if (tarn_watch_start(served->allocator, &options, &error) != TARN_OK) {
        run_say("tarn run: GPU %d cannot be watched: %s\n", device, error.text);
    }
}

static enum tarn_status served_open(struct served *served, int device, struct tarn_error *error)
{
    struct tarn_config config;
    char spec[32];

    (void)snprintf(spec, sizeof spec, "cuda:%d", device);
    tarn_config_init(&config);
    enum tarn_status st = tarn_config_parse(conf_of(run_settings()->policy), &config, error);

    st = st ? st : tarn_device_open(spec, &served->device, error);
    st = st ? st : tarn_allocator_create(served->device, &config, &served->allocator, error);
    st = st ? st : limit_set(served, error);
    st = st ? st : tarn_stream_create(served->device, &served->home, error);
    st = st ? st : tarn_observer_create(device, NULL, TARN_CONTEXT_NEVER, &served->live, error);
    return st;
}

/* The lock is held. What a failure leaves open is never used. */
static enum state served_start(struct served *served, int device)
{
    const struct run_driver *driver = run_driver();
    struct tarn_error error = {.offset = -1};

    if (!driver->cuDevicePrimaryCtxRetain || !driver->cuCtxGetCurrent ||
        !driver->cuCtxSynchronize || !driver->cuCtxPushCurrent_v2 || !driver->cuCtxPopCurrent_v2 ||
        driver->cuDevicePrimaryCtxRetain(&served->context, device) != RUN_CU_SUCCESS) {
        run_say("tarn run: GPU %d is left to the driver: its primary context is not there\n",
                device);
        return STATE_OFF;
    }
    if (served_open(served, device, &error) != TARN_OK) {
        run_say("tarn run: GPU %d is left to the driver: %s\n", device, error.text);
        return STATE_OFF;
    }
    run_record_add(served->allocator);
    watch_start(served, device);
    return STATE_ON;
}

/* The served device; NULL: the driver's turn. */
static struct served *served_get(int device)
{
    if (run_settings()->policy == RUN_OBSERVE || device < 0 || device >= RUN_DEVICES_MAX) {
        return NULL;
    }
    struct served *served = &devices[device];

    if (atomic_load_explicit(&served->state, memory_order_acquire) == STATE_NEW) {
        (void)pthread_mutex_lock(&lock);
        if (atomic_load_explicit(&served->state, memory_order_relaxed) == STATE_NEW) {
            atomic_store_explicit(&served->state, (int)served_start(served, device),
                                  memory_order_release);
        }
        (void)pthread_mutex_unlock(&lock);
    }
    return atomic_load_explicit(&served->state, memory_order_acquire) == STATE_ON ? served : NULL;
}

static bool context_is_primary(const struct served *served)
{
    void *context = NULL;

    return run_driver()->cuCtxGetCurrent(&context) == RUN_CU_SUCCESS && context == served->context;
}

/* ---- serving ---- */

enum run_served run_serve_alloc(int device, uint64_t size, uint64_t *address_out)
{
    struct served *served = size > 0 ? served_get(device) : NULL;
    struct tarn_observed memory = {.size = size};

    if (!served || !context_is_primary(served)) {
        return RUN_SERVED_NOT;
    }
    memory.stream = served->home;
    const enum tarn_status st =
        tarn_allocator_alloc(served->allocator, size, served->home, &memory.address, NULL);

    if (st == TARN_ERR_OUT_OF_MEMORY) {
        return RUN_SERVED_OUT_OF_MEMORY;
    }
    if (st != TARN_OK) {
        return RUN_SERVED_NOT;
    }
    if (tarn_observer_alloc(served->live, &memory) != TARN_OK) {
        (void)!tarn_allocator_free(served->allocator, memory.address, NULL);
        return RUN_SERVED_OUT_OF_MEMORY;
    }
    *address_out = memory.address;
    return RUN_SERVED;
}

/* The device that serves the address, which is no longer allocated then. */
static struct served *served_take(uint64_t address)
{
    for (int i = 0; i < RUN_DEVICES_MAX; i++) {
        struct served *served = &devices[i];

        if (atomic_load_explicit(&served->state, memory_order_acquire) == STATE_ON &&
            tarn_observer_free(served->live, address, NULL) == TARN_OK) {
            run_share_end(address);
            return served;
        }
    }
    return NULL;
}

static void served_wait(const struct served *served)
{
    const struct run_driver *driver = run_driver();
    void *context = NULL;

    if (driver->cuCtxPushCurrent_v2(served->context) == RUN_CU_SUCCESS) {
        (void)driver->cuCtxSynchronize();
        (void)driver->cuCtxPopCurrent_v2(&context);
    }
}

bool run_serve_free(uint64_t address)
{
    struct served *served = address ? served_take(address) : NULL;

    if (!served) {
        return false;
    }
    served_wait(served);
    (void)!tarn_allocator_free(served->allocator, address, NULL);
    return true;
}

bool run_serve_free_async(uint64_t address, uint64_t stream)
{
    struct served *served = address ? served_take(address) : NULL;

    if (!served) {
        return false;
    }
    if (tarn_allocator_record_stream(served->allocator, address, stream, NULL) != TARN_OK) {
        served_wait(served);
    }
    (void)!tarn_allocator_free(served->allocator, address, NULL);
    return true;
}

bool run_serve_find(uint64_t address, uint64_t *base_out, uint64_t *size_out)
{
    struct tarn_observed memory;

    for (int i = 0; run_settings()->policy != RUN_OBSERVE && i < RUN_DEVICES_MAX; i++) {
        struct served *served = &devices[i];

        if (atomic_load_explicit(&served->state, memory_order_acquire) == STATE_ON &&
            tarn_observer_find(served->live, address, &memory)) {
            *base_out = memory.address;
            *size_out = memory.size;
            return true;
        }
    }
    return false;
}

/* ---- shared with other processes ---- */

enum tarn_status run_serve_export(uint64_t base, void *message, size_t capacity, size_t *length_out,
                                  struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_INVALID_POINTER;

    for (int i = 0; i < RUN_DEVICES_MAX && st == TARN_ERR_INVALID_POINTER; i++) {
        if (atomic_load_explicit(&devices[i].state, memory_order_acquire) == STATE_ON) {
            st = tarn_ipc_export(devices[i].allocator, base, message, capacity, length_out, error);
        }
    }
    return st;
}

enum tarn_status run_serve_open(int device, const void *message, size_t length,
                                uint64_t *address_out, struct tarn_error *error)
{
    const struct served *served = served_get(device);

    if (!served) {
        (void)snprintf(error->text, sizeof error->text,
                       "this process does not run under the policy of the one that shares it");
        return TARN_ERR_STATE;
    }
    return tarn_ipc_open(served->allocator, message, length, address_out, NULL, error);
}

bool run_serve_close(uint64_t address)
{
    bool closed = false;

    for (int i = 0; i < RUN_DEVICES_MAX && !closed; i++) {
        closed = atomic_load_explicit(&devices[i].state, memory_order_acquire) == STATE_ON &&
                 tarn_ipc_close(devices[i].allocator, address, NULL) == TARN_OK;
    }
    return closed;
}

/* ---- whose memory it is ---- */

struct owner_search {
    uint64_t address;
    bool found;
};

static bool segment_look(void *context, const struct tarn_segment_info *segment)
{
    struct owner_search *search = context;

    search->found = search->address - segment->address < segment->total_size;
    return !search->found;
}

bool run_serve_owns(uint64_t address)
{
    struct owner_search search = {.address = address};
    const struct tarn_walker walker = {.context = &search, .segment = segment_look};

    for (int i = 0; address != 0 && i < RUN_DEVICES_MAX && !search.found; i++) {
        if (atomic_load_explicit(&devices[i].state, memory_order_acquire) == STATE_ON) {
            (void)!tarn_allocator_walk(devices[i].allocator, &walker);
        }
    }
    return search.found;
}

void run_serve_memory(int device, size_t *unused, size_t *total)
{
    struct tarn_stats stats = {.struct_size = sizeof stats};
    const struct served *served = NULL;
    const uint64_t limit = run_settings()->limit;

    if (device >= 0 && device < RUN_DEVICES_MAX &&
        atomic_load(&devices[device].state) == STATE_ON) {
        served = &devices[device];
        tarn_allocator_get_stats(served->allocator, &stats);
    }
    const uint64_t allocated = (uint64_t)stats.by_pool[TARN_STAT_ALLOCATED_BYTES][0].current;
    const uint64_t reserved = (uint64_t)stats.by_pool[TARN_STAT_RESERVED_BYTES][0].current;

    *unused += reserved - allocated;
    if (limit > 0 && limit < *total) {
        const uint64_t left = limit > allocated ? limit - allocated : 0;

        *total = limit;
        *unused = *unused < left ? *unused : left;
    }
}

void run_serve_reset(int device)
{
    if (device >= 0 && device < RUN_DEVICES_MAX) {
        atomic_store(&devices[device].state, STATE_OFF);
    }
}

void run_serve_forked(void)
{
    (void)pthread_mutex_init(&lock, NULL);
    for (int i = 0; i < RUN_DEVICES_MAX; i++) {
        atomic_store(&devices[i].state, STATE_NEW);
    }
}
