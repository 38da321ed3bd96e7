/* SPDX-License-Identifier: MIT */
/*
 * The stream-ordered engine (backend:cudaMallocAsync): memory comes from the device's own pool and
 * goes back to it in the order of streams; the pool decides, and caches. Here is what PyTorch keeps
 * around it: which pointers are out, on which other streams they are used, what may not be freed
 * while a graph is captured, and how much may be out at once.
 *
 * Freeing a block that only its own stream used gives it back on that stream. One that others used
 * as well is given back on a stream of the engine's that is first made to wait for all of them;
 * then the pool has it again for everybody once that stream has got there.
 *
 * Capture: begin_pool says that one begins, end_pool that it is over; there is one at a time, and
 * the pool's name and filter do not matter. Freeing a block that was there before the capture is
 * put off until the next allocation or empty_cache after it; a block that was allocated during the
 * capture is freed at once.
 *
 * Statistics are the device's, of its whole default pool: allocated, active (the same) and reserved
 * bytes, now and at their peak. Everything else stays 0.
 *
 * What differs from PyTorch: captures are counted by device, not by process; end_pool does not join
 * the streams on which blocks were freed with the capturing one, which it is not told: who captures
 * joins them.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_ASYNC_H
#define TN_ALLOC_ENGINE_ENGINE_ASYNC_H

#include "alloc/engine/allocator.h"

/* As tarn_allocator_create. */
enum tarn_status tn_async_create(struct tarn_device *device, const struct tarn_config *config,
                                 struct tarn_allocator **allocator_out) TN_MUST_CHECK;

#endif
