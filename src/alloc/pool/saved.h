/* SPDX-License-Identifier: MIT */
/*
 * Contents of device memory on the host, in pinned memory: what is to be saved is noted first, then
 * copied there and back. Pinning the next piece of host memory goes on while the copy to the
 * previous one runs.
 *
 * Owns: the host memory. Not thread-safe. Cost: one allocation of host memory per 256 MiB.
 */
#ifndef TN_ALLOC_POOL_SAVED_H
#define TN_ALLOC_POOL_SAVED_H

#include "base/attr.h"
#include "base/vec.h"
#include "device/device_ops.h"

/* `size` bytes at `address`, saved at an offset in the host memory. */
struct tn_saved_run {
    uint64_t address;
    uint64_t size;
    uint64_t offset;
};

struct tn_saved {
    struct tarn_device *device;
    struct tn_vec runs;   /* struct tn_saved_run */
    struct tn_vec chunks; /* of host memory; together one range of offsets */
    uint64_t bytes;       /* of the runs when they were noted */
};

void tn_saved_init(struct tn_saved *saved, struct tarn_device *device);
void tn_saved_fini(struct tn_saved *saved);

/* Bytes of host memory. */
uint64_t tn_saved_host_bytes(const struct tn_saved *saved);

/* Notes a run; false without host memory. */
bool tn_saved_add(struct tn_saved *saved, uint64_t address, uint64_t size) TN_MUST_CHECK;

/* Forgets these bytes: they are not copied back. They are inside a run or in none. False without
 * host memory, with nothing changed. */
bool tn_saved_forget(struct tn_saved *saved, uint64_t address, uint64_t size) TN_MUST_CHECK;

/* Forgets all runs; the host memory stays. */
void tn_saved_clear(struct tn_saved *saved);

/* Gives the host memory back. */
void tn_saved_release(struct tn_saved *saved);

/* Copies all runs to the host, or back, and waits for it. The contents are not used meanwhile. */
enum tarn_status tn_saved_store(struct tn_saved *saved, struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_saved_restore(struct tn_saved *saved, struct tarn_error *error) TN_MUST_CHECK;

#endif
