/* SPDX-License-Identifier: MIT */
#include "alloc/engine/direct_memory.h"

#include "base/errinfo.h"
#include "base/finding.h"

#include <inttypes.h>

void tn_direct_memory_init(struct tn_direct_memory *direct, struct tarn_device *device)
{
    *direct = (struct tn_direct_memory){.device = device};
    tn_lock_init(&direct->lock, TN_LOCK_ALLOCATOR);
}

void tn_direct_memory_fini(struct tn_direct_memory *direct)
{
    for (uint64_t i = 0; i < direct->sizes.capacity; i++) {
        if (direct->sizes.slots[i].key != 0) {
            (void)direct->device->ops->free(direct->device, direct->sizes.slots[i].key);
        }
    }
    tn_map_fini(&direct->sizes);
    tn_lock_fini(&direct->lock);
}

static void count_change(struct tn_direct_memory *direct)
{
    atomic_store_explicit(&direct->count, direct->sizes.count, memory_order_relaxed);
}

enum tarn_status tn_direct_memory_alloc(struct tn_direct_memory *direct, uint64_t size,
                                        tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tarn_device *device = direct->device;
    enum tarn_status st;

    tn_lock_acquire(&direct->lock);
    if (!tn_map_reserve(&direct->sizes, 1)) {
        st = tn_fail_memory(error);
        goto out;
    }
    st = device->ops->alloc(device, size, ptr_out);
    if (st) {
        (void)tn_device_failed(device, st, "allocating memory", error);
        goto out;
    }
    tn_map_insert(&direct->sizes, *ptr_out, size);
    count_change(direct);
out:
    tn_lock_release(&direct->lock);
    return st;
}

enum tarn_status tn_direct_memory_free(struct tn_direct_memory *direct, tarn_ptr ptr,
                                       struct tarn_error *error)
{
    struct tarn_device *device = direct->device;
    enum tarn_status st;
    uint64_t size;

    tn_lock_acquire(&direct->lock);
    if (!tn_map_find(&direct->sizes, ptr)) {
        st = tn_pointer_unknown(ptr, error);
        goto out;
    }
    st = device->ops->free(device, ptr);
    if (st) {
        (void)tn_device_failed(device, st, "freeing memory", error);
        goto out;
    }
    (void)tn_map_take(&direct->sizes, ptr, &size);
    count_change(direct);
out:
    tn_lock_release(&direct->lock);
    return st;
}

enum tarn_status tn_direct_memory_export(struct tn_direct_memory *direct, tarn_ptr ptr,
                                         struct tn_ipc_buffer *buffer, struct tarn_error *error)
{
    struct tarn_device *device = direct->device;
    struct tn_ipc_part part = {.ordinal = device->ordinal};
    struct tn_ipc_handle handle;
    enum tarn_status st;

    tn_lock_acquire(&direct->lock);
    const uint64_t *size = tn_map_find(&direct->sizes, ptr);

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
    tn_ipc_write_plain(buffer, &part, &handle);
out:
    tn_lock_release(&direct->lock);
    return st;
}

bool tn_direct_memory_find(struct tn_direct_memory *direct, tarn_ptr ptr, uint64_t *size_out)
{
    tn_lock_acquire(&direct->lock);
    const uint64_t *size = tn_map_find(&direct->sizes, ptr);

    if (size && size_out) {
        *size_out = *size;
    }
    tn_lock_release(&direct->lock);
    return size != NULL;
}

uint64_t tn_direct_memory_check(struct tn_direct_memory *direct, struct tarn_findings *findings)
{
    uint64_t entries = 0;
    uint64_t found = 0;

    tn_lock_acquire(&direct->lock);
    for (uint64_t i = 0; i < direct->sizes.capacity; i++) {
        entries += direct->sizes.slots[i].key != 0;
    }
    const uint64_t count = atomic_load_explicit(&direct->count, memory_order_relaxed);

    if (entries != count || entries != direct->sizes.count) {
        tn_finding_add(findings,
                       "direct memory: %" PRIu64 " blocks stored, %" PRIu64 " in the map, %" PRIu64
                       " counted",
                       count, direct->sizes.count, entries);
        found = 1;
    }
    tn_lock_release(&direct->lock);
    return found;
}
