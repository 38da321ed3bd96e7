/* SPDX-License-Identifier: MIT */
#include "alloc/engine/plain_memory.h"

#include "base/errinfo.h"
#include "base/finding.h"

#include <inttypes.h>

void tn_plain_memory_init(struct tn_plain_memory *plain, struct tarn_device *device)
{
    *plain = (struct tn_plain_memory){.device = device};
    tn_lock_init(&plain->lock, TN_LOCK_ALLOCATOR);
}

void tn_plain_memory_fini(struct tn_plain_memory *plain)
{
    for (uint64_t i = 0; i < plain->sizes.capacity; i++) {
        if (plain->sizes.slots[i].key != 0) {
            (void)plain->device->ops->free(plain->device, plain->sizes.slots[i].key);
        }
    }
    tn_map_fini(&plain->sizes);
    tn_lock_fini(&plain->lock);
}

static void count_change(struct tn_plain_memory *plain)
{
    atomic_store_explicit(&plain->count, plain->sizes.count, memory_order_relaxed);
}

enum tarn_status tn_plain_memory_alloc(struct tn_plain_memory *plain, uint64_t size,
                                       tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tarn_device *device = plain->device;
    enum tarn_status st;

    tn_lock_acquire(&plain->lock);
    if (!tn_map_reserve(&plain->sizes, 1)) {
        st = tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the record of a block");
        goto out;
    }
    st = device->ops->alloc(device, size, ptr_out);
    if (st) {
        (void)tn_device_failed(device, st, "allocating memory", error);
        goto out;
    }
    tn_map_insert(&plain->sizes, *ptr_out, size);
    count_change(plain);
out:
    tn_lock_release(&plain->lock);
    return st;
}

enum tarn_status tn_plain_memory_free(struct tn_plain_memory *plain, tarn_ptr ptr,
                                      struct tarn_error *error)
{
    struct tarn_device *device = plain->device;
    enum tarn_status st;
    uint64_t size;

    tn_lock_acquire(&plain->lock);
    if (!tn_map_find(&plain->sizes, ptr)) {
        st = tn_pointer_unknown(ptr, error);
        goto out;
    }
    st = device->ops->free(device, ptr);
    if (st) {
        (void)tn_device_failed(device, st, "freeing memory", error);
        goto out;
    }
    (void)tn_map_take(&plain->sizes, ptr, &size);
    count_change(plain);
out:
    tn_lock_release(&plain->lock);
    return st;
}

enum tarn_status tn_plain_memory_export(struct tn_plain_memory *plain, tarn_ptr ptr,
                                        struct tn_ipc_room *room, struct tarn_error *error)
{
    struct tarn_device *device = plain->device;
    struct tn_ipc_part part = {.ordinal = device->ordinal};
    struct tn_ipc_handle handle;
    enum tarn_status st;

    tn_lock_acquire(&plain->lock);
    const uint64_t *size = tn_map_find(&plain->sizes, ptr);

    if (!size) {
        st = tn_pointer_unknown(ptr, error);
        goto out;
    }
    st = device->ops->ipc_export(device, ptr, &handle);
    if (st) {
        (void)tn_device_failed(device, st, "sharing memory", error);
        goto out;
    }
    part.size = *size;
    part.extent = *size;
    tn_ipc_write_plain(room, &part, &handle);
out:
    tn_lock_release(&plain->lock);
    return st;
}

bool tn_plain_memory_find(struct tn_plain_memory *plain, tarn_ptr ptr, uint64_t *size_out)
{
    tn_lock_acquire(&plain->lock);
    const uint64_t *size = tn_map_find(&plain->sizes, ptr);

    if (size && size_out) {
        *size_out = *size;
    }
    tn_lock_release(&plain->lock);
    return size != NULL;
}

uint64_t tn_plain_memory_check(struct tn_plain_memory *plain, struct tarn_findings *findings)
{
    uint64_t entries = 0;
    uint64_t found = 0;

    tn_lock_acquire(&plain->lock);
    for (uint64_t i = 0; i < plain->sizes.capacity; i++) {
        entries += plain->sizes.slots[i].key != 0;
    }
    const uint64_t count = atomic_load_explicit(&plain->count, memory_order_relaxed);

    if (entries != count || entries != plain->sizes.count) {
        tn_finding_add(findings,
                       "plain memory: %" PRIu64 " blocks stored, %" PRIu64 " in the map, %" PRIu64
                       " counted",
                       count, plain->sizes.count, entries);
        found = 1;
    }
    tn_lock_release(&plain->lock);
    return found;
}
