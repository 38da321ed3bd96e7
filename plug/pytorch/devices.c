/* SPDX-License-Identifier: MIT */
/*
 * The table of devices. An entry is filled once and then read without the lock; `lock` guards
 * filling it and the settings of the next device. A forked child must not touch any of it: another
 * thread may have been changing it, and CUDA does not work there. So each function checks `phase`
 * before it takes the lock.
 */
#include "plug/pytorch/devices.h"

#include "plug/pytorch/locks.h"
#include "plug/pytorch/oom_file.h"
#include "plug/pytorch/plug.h"
#include "plug/pytorch/py_frames.h"
#include "plug/pytorch/record.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum phase {
    PHASE_RUNNING,
    PHASE_FORKED,
    PHASE_ENDED
};

struct place {
    _Atomic(struct tarn_allocator *) allocator; /* NULL: not opened yet */
    struct tarn_device *device;                 /* NULL: none yet */
    bool device_is_ours;                        /* opened here, to be closed here */
};

static pthread_mutex_t *const lock = &tn_torch_locks[TN_TORCH_LOCK_DEVICES];
static struct place places[TARN_TORCH_DEVICES_MAX];
static atomic_int phase = PHASE_RUNNING;
static _Atomic(tarn_torch_oom_observer) observer;
static struct tarn_config settings; /* of the next device; guarded by lock */
static bool settings_known;

enum tarn_status tn_torch_fail(struct tarn_error *error, enum tarn_status status, const char *text)
{
    if (error) {
        error->status = status;
        error->offset = -1;
        (void)snprintf(error->text, sizeof error->text, "%s", text);
    }
    return status;
}

static void child_began(void)
{
    atomic_store(&phase, PHASE_FORKED);
    tn_torch_locks_renew();
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, child_began);
}

bool tn_torch_is_over(void)
{
    return atomic_load_explicit(&phase, memory_order_relaxed) != PHASE_RUNNING;
}

enum tarn_status tn_torch_check_phase(struct tarn_error *error)
{
    switch (atomic_load_explicit(&phase, memory_order_relaxed)) {
    case PHASE_FORKED:
        return tn_torch_fail(error, TARN_ERR_STATE,
                             "tarn cannot be used in a process that was forked after CUDA started: "
                             "start it with multiprocessing's 'spawn' method");
    case PHASE_ENDED:
        return tn_torch_fail(error, TARN_ERR_STATE,
                             "tarn was shut down: the interpreter is ending");
    default:
        return TARN_OK;
    }
}

static enum tarn_status check_ordinal(int device, struct tarn_error *error)
{
    char text[128];

    if (device >= 0 && device < TARN_TORCH_DEVICES_MAX) {
        return TARN_OK;
    }
    (void)snprintf(text, sizeof text, "invalid device %d: device numbers are 0 to %d", device,
                   TARN_TORCH_DEVICES_MAX - 1);
    return tn_torch_fail(error, TARN_ERR_INVALID_ARGUMENT, text);
}

static enum tarn_status check_call(int device, struct tarn_error *error)
{
    const enum tarn_status st = tn_torch_check_phase(error);

    return st ? st : check_ordinal(device, error);
}

static void tell_observer(void *context, const struct tarn_oom *oom)
{
    const tarn_torch_oom_observer tell = atomic_load(&observer);

    (void)context;
    tn_torch_oom_file_write();
    if (tell) {
        tell(oom->device, oom->segment_size,
             oom->limit == TARN_SIZE_UNLIMITED ? oom->device_total : oom->limit, oom->device_free);
    }
}

void tarn_torch_set_oom_observer(tarn_torch_oom_observer tell)
{
    atomic_store(&observer, tell);
}

static enum tarn_status know_settings(struct tarn_error *error)
{
    struct tarn_config config;
    enum tarn_status st = TARN_OK;

    if (!settings_known) {
        st = tarn_config_from_env(&config, error);
        if (st == TARN_OK) {
            settings = config;
            settings_known = true;
        }
    }
    return st;
}

/* The lock is held. If a later step fails, the device stays open and the next call continues from
 * there. */
static enum tarn_status open_device(struct place *place, int ordinal, struct tarn_error *error)
{
    char spec[32];

    if (place->device) {
        return TARN_OK;
    }
    (void)snprintf(spec, sizeof spec, "cuda:%d", ordinal);
    const enum tarn_status st = tarn_device_open(spec, &place->device, error);

    place->device_is_ours = st == TARN_OK;
    if (st) {
        place->device = NULL;
    }
    return st;
}

/* backend:cudaMallocAsync has no observers, only the message. */
static enum tarn_status watch_memory(struct tarn_allocator *allocator, struct tarn_error *error)
{
    const enum tarn_status st = tarn_allocator_add_oom_observer(allocator, tell_observer, NULL);

    return st && st != TARN_ERR_NOT_SUPPORTED
               ? tn_torch_fail(error, st, "no memory to observe an allocator")
               : TARN_OK;
}

static enum tarn_status place_open(struct place *place, int ordinal, struct tarn_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct tarn_allocator *allocator = NULL;

    (void)pthread_once(&once, watch_forks);
    enum tarn_status st = know_settings(error);

    if (st == TARN_OK) {
        st = open_device(place, ordinal, error);
    }
    if (st == TARN_OK) {
        st = tarn_allocator_create(place->device, &settings, &allocator, error);
    }
    if (st == TARN_OK) {
        st = watch_memory(allocator, error);
        if (st == TARN_OK) {
            st = tn_torch_record_opened(ordinal, allocator, error);
        }
        if (st) {
            tarn_allocator_destroy(allocator);
        }
    }
    if (st == TARN_OK) {
        atomic_store_explicit(&place->allocator, allocator, memory_order_release);
    }
    return st;
}

enum tarn_status tn_torch_allocator(int device, struct tarn_allocator **allocator_out,
                                    struct tarn_error *error)
{
    enum tarn_status st = check_call(device, error);

    if (st) {
        return st;
    }
    struct place *const place = &places[device];

    *allocator_out = atomic_load_explicit(&place->allocator, memory_order_acquire);
    if (*allocator_out) {
        return TARN_OK;
    }
    (void)pthread_mutex_lock(lock);
    if (!atomic_load_explicit(&place->allocator, memory_order_relaxed)) {
        st = place_open(place, device, error);
    }
    *allocator_out = atomic_load_explicit(&place->allocator, memory_order_relaxed);
    (void)pthread_mutex_unlock(lock);
    return st;
}

enum tarn_status tarn_torch_open_allocator(int device, struct tarn_allocator **allocator_out,
                                           struct tarn_error *error)
{
    return tn_torch_allocator(device, allocator_out, error);
}

struct tarn_allocator *tarn_torch_find_allocator(int device)
{
    return check_call(device, NULL)
               ? NULL
               : atomic_load_explicit(&places[device].allocator, memory_order_acquire);
}

/* A device cannot be replaced while its allocator exists. */
double tarn_torch_get_memory_fraction(int device)
{
    struct tarn_allocator *const allocator = tarn_torch_find_allocator(device);

    return allocator ? tarn_allocator_get_memory_fraction(allocator) : 1.0;
}

enum tarn_status tarn_torch_use_device(int ordinal, struct tarn_device *device,
                                       struct tarn_error *error)
{
    enum tarn_status st = check_call(ordinal, error);

    if (st) {
        return st;
    }
    (void)pthread_mutex_lock(lock);
    if (places[ordinal].device) {
        st = tn_torch_fail(error, TARN_ERR_STATE,
                           "the device is in use already: choose another before its first use");
    } else {
        places[ordinal].device = device;
        places[ordinal].device_is_ours = false;
    }
    (void)pthread_mutex_unlock(lock);
    return st;
}

void tarn_torch_close_device(int device)
{
    if (check_call(device, NULL)) {
        return;
    }
    struct place *const place = &places[device];

    (void)pthread_mutex_lock(lock);
    tarn_allocator_destroy(atomic_exchange(&place->allocator, NULL));
    tn_torch_record_closed(device);
    if (place->device_is_ours) {
        tarn_device_close(place->device);
    }
    place->device = NULL;
    place->device_is_ours = false;
    (void)pthread_mutex_unlock(lock);
}

/* Settings of one allocator. The lock is held. */
static enum tarn_status place_configure(struct place *place, const char *text,
                                        struct tarn_error *error)
{
    struct tarn_allocator *const allocator = atomic_load(&place->allocator);
    struct tarn_config config = {.struct_size = sizeof config};
    enum tarn_status st = TARN_OK;

    if (allocator) {
        tarn_allocator_get_config(allocator, &config);
        st = tarn_config_update(text, &config, error);
    }
    if (allocator && st == TARN_OK) {
        st = tarn_allocator_set_config(allocator, &config, error);
    }
    return st;
}

/* All allocators have the same settings and reject the same text, so a rejection comes from the
 * first one, before any change. */
enum tarn_status tarn_torch_configure(const char *text, struct tarn_error *error)
{
    struct tarn_config changed;
    enum tarn_status st = tn_torch_check_phase(error);

    if (st) {
        return st;
    }
    (void)pthread_mutex_lock(lock);
    st = know_settings(error);
    if (st == TARN_OK) {
        changed = settings;
        st = tarn_config_update(text, &changed, error);
    }
    for (int i = 0; st == TARN_OK && i < TARN_TORCH_DEVICES_MAX; i++) {
        st = place_configure(&places[i], text, error);
    }
    if (st == TARN_OK) {
        settings = changed;
    }
    (void)pthread_mutex_unlock(lock);
    return st;
}

enum tarn_status tarn_torch_get_config(struct tarn_config *config_out, struct tarn_error *error)
{
    enum tarn_status st = tn_torch_check_phase(error);

    if (st == TARN_OK) {
        (void)pthread_mutex_lock(lock);
        st = know_settings(error);
        if (st == TARN_OK) {
            *config_out = settings;
        }
        (void)pthread_mutex_unlock(lock);
    }
    return st;
}

void tarn_torch_shutdown(void)
{
    int running = PHASE_RUNNING; /* a forked child stays in its phase */

    (void)atomic_compare_exchange_strong(&phase, &running, PHASE_ENDED);
    tn_py_shutdown();
}
