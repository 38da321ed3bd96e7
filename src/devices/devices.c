/* SPDX-License-Identifier: MIT */
/* The table: opening devices, their settings, and what goes for all of them. */
#include "devices/devices.h"

#include "alloc/config/config_parse.h"
#include "base/host_mem.h"

#include <pthread.h>
#include <stdio.h>

static struct tarn_devices shared;

static void locks_init(struct tarn_devices *devices)
{
    tn_lock_init(&devices->lock, TN_LOCK_DEVICES);
    tn_lock_init(&devices->error_lock, TN_LOCK_LOG);
}

/* In a child, where no other thread runs. One of a process that had opened nothing may go on. */
static void child_began(struct tn_fork_watch *watch)
{
    struct tarn_devices *devices = (struct tarn_devices *)watch; /* its first member */

    locks_init(devices);
    if (atomic_load(&devices->open_count) > 0) {
        atomic_store(&devices->forked, true);
    }
}

static void devices_init(struct tarn_devices *devices)
{
    locks_init(devices);
    devices->watches_forks = tn_os_forks_watch();
    if (devices->watches_forks) {
        tn_fork_watch_init(&devices->fork, child_began);
    }
}

static void shared_init(void)
{
    devices_init(&shared);
}

struct tarn_devices *tarn_devices_shared(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, shared_init);
    return &shared;
}

enum tarn_status tarn_devices_create(struct tarn_devices **devices_out, struct tarn_error *error)
{
    struct tarn_devices *devices = tn_host_alloc_zero(sizeof *devices);

    *devices_out = devices;
    if (!devices) {
        return tn_fail_memory(error);
    }
    devices_init(devices);
    return TARN_OK;
}

static void entry_close(struct tn_device_entry *entry)
{
    tarn_allocator_destroy(atomic_load(&entry->allocator));
    tarn_history_destroy(atomic_load(&entry->history));
    if (entry->owns_device) {
        tarn_device_close(entry->device);
    }
}

void tarn_devices_destroy(struct tarn_devices *devices)
{
    if (!devices || devices == &shared || atomic_load(&devices->forked)) {
        return;
    }
    for (int i = 0; i < TARN_DEVICES_MAX; i++) {
        entry_close(&devices->entries[i]);
    }
    tn_devices_drop_routes(devices);
    if (devices->watches_forks) {
        tn_fork_watch_fini(&devices->fork);
    }
    tn_lock_fini(&devices->lock);
    tn_lock_fini(&devices->error_lock);
    tn_host_free(devices, sizeof *devices);
}

static bool is_forked(struct tarn_devices *devices)
{
    return atomic_load_explicit(&devices->forked, memory_order_relaxed);
}

enum tarn_status tn_devices_lock(struct tarn_devices *devices, struct tarn_error *error)
{
    if (is_forked(devices)) {
        return tn_fail(error, TARN_ERR_STATE,
                       "tarn cannot be used in a process that was forked after CUDA started: start "
                       "it with multiprocessing's 'spawn' method");
    }
    if (!devices->watches_forks) {
        return tn_fail_memory(error);
    }
    tn_lock_acquire(&devices->lock);
    return TARN_OK;
}

/* ---- settings ---- */

/* The lock is held. */
static enum tarn_status settings_know(struct tarn_devices *devices, struct tarn_error *error)
{
    struct tarn_config config;
    const enum tarn_status st =
        devices->settings_known ? TARN_OK : tarn_config_from_env(&config, error);

    if (st == TARN_OK && !devices->settings_known) {
        devices->settings = config;
        devices->settings_known = true;
    }
    return st;
}

/* Takes the lock and knows the settings; without the lock if it fails. */
static enum tarn_status settings_lock(struct tarn_devices *devices, struct tarn_error *error)
{
    enum tarn_status st = tn_devices_lock(devices, error);

    if (st) {
        return st;
    }
    st = settings_know(devices, error);
    if (st) {
        tn_lock_release(&devices->lock);
    }
    return st;
}

enum tarn_status tarn_devices_get_config_sized(struct tarn_devices *devices,
                                               struct tarn_config *config_out, size_t size,
                                               struct tarn_error *error)
{
    enum tarn_status st = settings_lock(devices, error);

    if (st) {
        return st;
    }
    st = tn_config_write(&devices->settings, config_out, size, error);
    tn_lock_release(&devices->lock);
    return st;
}

static enum tarn_status configure_one(struct tarn_allocator *allocator, const char *text,
                                      struct tarn_error *error)
{
    struct tarn_config config;

    tarn_allocator_get_config(allocator, &config);
    const enum tarn_status st = tarn_config_update(text, &config, error);

    return st ? st : tarn_allocator_set_config(allocator, &config, error);
}

/* Allocators whose settings nobody changed by themselves reject the same text, so a rejection comes
 * before any change. The lock is held. */
static enum tarn_status configure_all(struct tarn_devices *devices, const char *text,
                                      struct tarn_error *error)
{
    struct tarn_config changed = devices->settings;
    enum tarn_status st = tarn_config_update(text, &changed, error);

    for (int i = 0; st == TARN_OK && i < TARN_DEVICES_MAX; i++) {
        struct tarn_allocator *allocator = tn_devices_at(devices, i);

        st = allocator ? configure_one(allocator, text, error) : TARN_OK;
    }
    if (st == TARN_OK) {
        devices->settings = changed;
    }
    return st;
}

enum tarn_status tarn_devices_configure(struct tarn_devices *devices, const char *text,
                                        struct tarn_error *error)
{
    enum tarn_status st = settings_lock(devices, error);

    if (st) {
        return st;
    }
    st = configure_all(devices, text, error);
    tn_lock_release(&devices->lock);
    return st;
}

/* ---- opening ---- */

static enum tarn_status number_check(int number, struct tarn_error *error)
{
    return tn_devices_has(number) ? TARN_OK
                                  : tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                                            "invalid device %d: device numbers are 0 to %d", number,
                                            TARN_DEVICES_MAX - 1);
}

/* A device that was opened stays open when a later step fails: the next call continues there. */
static enum tarn_status entry_need_device(struct tn_device_entry *entry, int number,
                                          struct tarn_error *error)
{
    struct tarn_device *opened = NULL;
    char spec[32];

    if (entry->device) {
        return TARN_OK;
    }
    (void)snprintf(spec, sizeof spec, "cuda:%d", number);
    const enum tarn_status st = tarn_device_open(spec, &opened, error);

    if (st == TARN_OK) {
        entry->device = opened;
        entry->owns_device = true;
    }
    return st;
}

/* Makes a new allocator like the others. */
static enum tarn_status allocator_prepare(struct tarn_devices *devices, int number,
                                          struct tarn_allocator *allocator,
                                          struct tarn_error *error)
{
    enum tarn_status st = tn_devices_attach(devices, allocator, error);

    if (st == TARN_OK && atomic_load(&devices->disabled)) {
        st = tn_unless_unsupported(tarn_allocator_set_enabled(allocator, false, error));
    }
    return st ? st : tn_devices_record_new(devices, number, allocator, error);
}

/* The lock is held. */
static enum tarn_status entry_open(struct tarn_devices *devices, int number,
                                   struct tarn_error *error)
{
    struct tn_device_entry *entry = &devices->entries[number];
    struct tarn_allocator *allocator = NULL;
    enum tarn_status st = settings_know(devices, error);

    st = st ? st : entry_need_device(entry, number, error);
    st = st ? st : tarn_allocator_create(entry->device, &devices->settings, &allocator, error);
    if (st) {
        return st;
    }
    st = allocator_prepare(devices, number, allocator, error);
    if (st) {
        tarn_allocator_destroy(allocator);
        tarn_history_destroy(atomic_exchange(&entry->history, NULL));
        return st;
    }
    tn_devices_add_owner(devices, allocator);
    atomic_fetch_add(&devices->open_count, 1);
    atomic_store_explicit(&entry->allocator, allocator, memory_order_release);
    return TARN_OK;
}

struct tarn_allocator *tarn_devices_find(struct tarn_devices *devices, int number)
{
    return tn_devices_has(number) ? tn_devices_at(devices, number) : NULL;
}

enum tarn_status tarn_devices_open(struct tarn_devices *devices, int number,
                                   struct tarn_allocator **allocator_out, struct tarn_error *error)
{
    *allocator_out = is_forked(devices) ? NULL : tarn_devices_find(devices, number);
    if (*allocator_out) {
        return TARN_OK;
    }
    enum tarn_status st = number_check(number, error);

    st = st ? st : tn_devices_lock(devices, error);
    if (st) {
        return st;
    }
    if (!tn_devices_at(devices, number)) {
        st = entry_open(devices, number, error);
    }
    *allocator_out = tn_devices_at(devices, number);
    tn_lock_release(&devices->lock);
    return st;
}

enum tarn_status tarn_devices_use(struct tarn_devices *devices, int number,
                                  struct tarn_device *device, struct tarn_error *error)
{
    enum tarn_status st = number_check(number, error);

    st = st ? st : tn_devices_lock(devices, error);
    if (st) {
        return st;
    }
    if (devices->entries[number].device) {
        st = tn_fail(error, TARN_ERR_STATE,
                     "the device is in use already: choose another before its first use");
    } else {
        devices->entries[number].device = device;
    }
    tn_lock_release(&devices->lock);
    return st;
}

/* ---- for all ---- */

enum tarn_status tarn_devices_empty_pool(struct tarn_devices *devices, struct tarn_pool_id id,
                                         struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (int i = 0; st == TARN_OK && i < TARN_DEVICES_MAX; i++) {
        struct tarn_allocator *allocator = tn_devices_at(devices, i);

        st = allocator ? tarn_allocator_empty_pool(allocator, id, error) : TARN_OK;
    }
    return st;
}

/* All have the same backend, so the first one refuses or none does. With the lock, since a device
 * that is being opened would miss it. */
enum tarn_status tarn_devices_set_enabled(struct tarn_devices *devices, bool enabled,
                                          struct tarn_error *error)
{
    enum tarn_status st = tn_devices_lock(devices, error);

    if (st) {
        return st;
    }
    for (int i = 0; st == TARN_OK && i < TARN_DEVICES_MAX; i++) {
        struct tarn_allocator *allocator = tn_devices_at(devices, i);

        st = allocator ? tarn_allocator_set_enabled(allocator, enabled, error) : TARN_OK;
    }
    if (st == TARN_OK) {
        atomic_store(&devices->disabled, !enabled);
    }
    tn_lock_release(&devices->lock);
    return st;
}

bool tarn_devices_is_enabled(struct tarn_devices *devices)
{
    return !atomic_load(&devices->disabled);
}

/* ---- failures ---- */

void tarn_devices_keep_error(struct tarn_devices *devices, const struct tarn_error *error)
{
    if (error->status != TARN_OK) {
        tn_lock_acquire(&devices->error_lock);
        devices->kept_error = *error;
        tn_lock_release(&devices->error_lock);
    }
}

bool tarn_devices_last_error(struct tarn_devices *devices, struct tarn_error *error_out)
{
    tn_lock_acquire(&devices->error_lock);
    const bool some = devices->kept_error.status != TARN_OK;

    if (some) {
        *error_out = devices->kept_error;
    }
    tn_lock_release(&devices->error_lock);
    return some;
}
