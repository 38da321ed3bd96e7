/* SPDX-License-Identifier: MIT */
/*
 * Serving the program's cuMemAlloc and cuMemAllocAsync from an allocator of tarn's, one per device.
 *
 * All memory is allocated for one stream that nobody else has, and each asynchronous free counts as
 * a use on its stream: so memory is reused when the work before the free is done, whatever stream
 * is next, and streams may be destroyed. A free that is not asynchronous waits for the device
 * first, as the driver's does. Any thread, between run_enter and run_leave.
 *
 * Left to the driver: other contexts than the primary one, streams that are being captured, pools
 * other than the device's own, managed and pinned memory, arrays, pages.
 */
#ifndef RUN_SERVE_H
#define RUN_SERVE_H

#include "tarn/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum run_served {
    RUN_SERVED_NOT, /* the driver's turn */
    RUN_SERVED,
    RUN_SERVED_OUT_OF_MEMORY
};

enum run_served run_serve_alloc(int device, uint64_t size, uint64_t *address_out);

/* False: the address is not one of ours. */
bool run_serve_free(uint64_t address);
bool run_serve_free_async(uint64_t address, uint64_t stream);

/* The allocation of ours that contains the address. */
bool run_serve_find(uint64_t address, uint64_t *base_out, uint64_t *size_out);

/* tarn/ipc.h, for share.h: of an allocation of ours; on a device; of what was opened there. */
enum tarn_status run_serve_export(uint64_t base, void *message, size_t capacity, size_t *length_out,
                                  struct tarn_error *error);
enum tarn_status run_serve_open(int device, const void *message, size_t length,
                                uint64_t *address_out, struct tarn_error *error);
bool run_serve_close(uint64_t address);

/* Whether the address is in memory that tarn has from the driver, allocated or not: the driver must
 * not be asked to free it. Slow: for addresses that nobody knows. */
bool run_serve_owns(uint64_t address);

/* What the driver says of the device's memory, as the program should see it. */
void run_serve_memory(int device, size_t *unused, size_t *total);

/* The device was reset: nothing of ours is left on it, and nothing is served any more. */
void run_serve_reset(int device);

void run_serve_forked(void);

#endif
