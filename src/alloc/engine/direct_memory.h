/* SPDX-License-Identifier: MIT */
/*
 * Memory that bypasses the cache: every allocation is one of the device's, every free gives it
 * back. What is allocated is recorded, to recognise wrong pointers. For the engine without a cache,
 * and for the caching engine while it is switched off.
 *
 * Invariant: `count` is the number of entries of the map. Locks: `lock` (rank TN_LOCK_ALLOCATOR),
 * never together with an engine's. The device is called under it, a free that waits for the device
 * included, as PyTorch's caching allocator does.
 */
#ifndef TN_ALLOC_ENGINE_DIRECT_MEMORY_H
#define TN_ALLOC_ENGINE_DIRECT_MEMORY_H

#include "alloc/engine/ipc_message.h"
#include "alloc/pool/failure.h"
#include "base/lock.h"
#include "base/map.h"
#include "device/device_ops.h"
#include "tarn/findings.h"

#include <stdatomic.h>

struct tn_direct_memory {
    struct tarn_device *device; /* constant */
    struct tn_lock lock;
    struct tn_map sizes;    /* bytes asked for, by address */
    _Atomic uint64_t count; /* also read without the lock: a pointer's holder sees it counted */
};

void tn_direct_memory_init(struct tn_direct_memory *direct, struct tarn_device *device);

/* Gives everything back to the device. */
void tn_direct_memory_fini(struct tn_direct_memory *direct);

enum tarn_status tn_direct_memory_alloc(struct tn_direct_memory *direct, uint64_t size,
                                        tarn_ptr *ptr_out, struct tarn_error *error) TN_MUST_CHECK;

/* TARN_ERR_INVALID_POINTER for a pointer that is not from here. */
enum tarn_status tn_direct_memory_free(struct tn_direct_memory *direct, tarn_ptr ptr,
                                       struct tarn_error *error) TN_MUST_CHECK;

/* Writes the message that describes the allocation, which is a segment of its own. */
enum tarn_status tn_direct_memory_export(struct tn_direct_memory *direct, tarn_ptr ptr,
                                         struct tn_ipc_buffer *buffer,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* Whether the pointer is from here; size_out may be NULL. */
bool tn_direct_memory_find(struct tn_direct_memory *direct, tarn_ptr ptr, uint64_t *size_out);

static inline bool tn_direct_memory_is_empty(const struct tn_direct_memory *direct)
{
    return atomic_load_explicit(&direct->count, memory_order_relaxed) == 0;
}

uint64_t tn_direct_memory_check(struct tn_direct_memory *direct, struct tarn_findings *findings);

#endif
