/* SPDX-License-Identifier: MIT */
/*
 * The table of a process's allocators (tarn/devices.h).
 *
 * Owns the allocators and histories, and the devices that it opened. An entry's allocator and
 * history are set once, when they are complete, and read without the lock.
 *
 * Locks: `lock` (rank TN_LOCK_DEVICES, the outermost) guards what has no other remark. It is held
 * while a device is opened, which can take seconds; allocating and freeing on an open device do
 * not take it, and no function of the user is called under it except sinks' releases of stacks. A
 * child gets a new lock, since another thread of its parent may have held the old one.
 */
#ifndef TN_DEVICES_DEVICES_H
#define TN_DEVICES_DEVICES_H

#include "base/attr.h"
#include "base/errinfo.h"
#include "base/lock.h"
#include "base/os_fork.h"
#include "tarn/devices.h"

#include <stdatomic.h>

enum {
    TN_HINTS = 1 << 16
};

struct tn_device_entry {
    struct tarn_allocator *_Atomic allocator; /* NULL: not open */
    struct tarn_history *_Atomic history;     /* NULL: never recorded */
    struct tarn_device *device;               /* NULL: none yet */
    bool owns_device;
};

/* What every allocator gets; one of the functions is set. */
struct tn_attachment {
    struct tarn_sink sink; /* without `receive`: none */
    tarn_oom_observer observer;
    tarn_memory_callback callback;
    void *context;
};

/* A routing in progress. */
struct tn_kept_route {
    struct tn_kept_route *next;
    int number;
    struct tarn_pool_id id;
    struct tarn_pool_route route;
};

struct tarn_devices {
    struct tn_fork_watch fork;
    atomic_bool forked; /* in a child of a process that had opened a device */
    bool watches_forks; /* constant */
    struct tn_lock lock;
    struct tarn_allocator *_Atomic only; /* while exactly one is open; else NULL */
    struct tn_device_entry entries[TARN_DEVICES_MAX];
    atomic_int open_count;
    struct tarn_config settings; /* of the next device */
    bool settings_known;
    atomic_bool disabled; /* the caches are switched off */
    struct tn_attachment attachments[TARN_DEVICES_ATTACHMENTS_MAX];
    unsigned attachment_count;
    struct tn_kept_route *routes;
    struct tarn_recording recording; /* without `host` */
    struct tarn_host_frames host;
    atomic_bool is_recording;
    struct tn_lock error_lock;       /* rank TN_LOCK_LOG */
    struct tarn_error kept_error;    /* guarded by error_lock; TARN_OK: none */
    _Atomic(int8_t) hints[TN_HINTS]; /* owner.c */
};

static inline bool tn_devices_has(int number)
{
    return number >= 0 && number < TARN_DEVICES_MAX;
}

static inline struct tarn_allocator *tn_devices_at(struct tarn_devices *devices, int number)
{
    return atomic_load_explicit(&devices->entries[number].allocator, memory_order_acquire);
}

/* Takes the lock; fails with TARN_ERR_STATE, not taking it, in a forked child. */
enum tarn_status tn_devices_lock(struct tarn_devices *devices,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* backend:cudaMallocAsync has no events, observers and cache, and does without. */
static inline enum tarn_status tn_unless_unsupported(enum tarn_status status)
{
    return status == TARN_ERR_NOT_SUPPORTED ? TARN_OK : status;
}

/* Gives a new allocator what all have, or begins its recording if there is one. The lock is
 * held. */
enum tarn_status tn_devices_attach(struct tarn_devices *devices, struct tarn_allocator *allocator,
                                   struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_devices_record_new(struct tarn_devices *devices, int number,
                                       struct tarn_allocator *allocator,
                                       struct tarn_error *error) TN_MUST_CHECK;

/* Before other threads can find a new allocator: its memory is to be found as well. The lock is
 * held. */
void tn_devices_add_owner(struct tarn_devices *devices, struct tarn_allocator *allocator);

/* Ends all routings without telling the allocators. */
void tn_devices_drop_routes(struct tarn_devices *devices);

#endif
