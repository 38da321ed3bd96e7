/* SPDX-License-Identifier: MIT */
/*
 * The stream-ordered engine (backend:cudaMallocAsync): memory comes from the device's own pool and
 * goes back to it in stream order; the pool decides, and caches. The engine keeps what PyTorch
 * keeps around it: which pointers are allocated, which other streams use them, what may not be
 * freed while a graph is captured, and how much may be allocated at once.
 *
 * A block that only its own stream used is freed on that stream. One that other streams used, too,
 * is freed on a stream of the engine's own, which first waits for all of them.
 *
 * Capture: begin_pool starts one, end_pool ends it; there is one at a time, and the pool's id and
 * filter are ignored. The free of a block that was allocated before the capture is deferred to the
 * first allocation or empty_cache after it; a block allocated during the capture is freed at once.
 *
 * Statistics are those of the device's default pool: allocated, active (the same) and reserved
 * bytes, current and peak. Everything else stays 0.
 *
 * A graph cannot be captured to its end while a stream on which blocks were freed is not joined
 * with the capturing one; end_pool does not know that one, so the caller names it to join_frees.
 *
 * Difference from PyTorch: one capture at a time per allocator, not per process.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_ASYNC_H
#define TN_ALLOC_ENGINE_ENGINE_ASYNC_H

#include "alloc/engine/allocator.h"

/* As tarn_allocator_create. */
enum tarn_status tn_async_create(struct tarn_device *device, const struct tarn_config *config,
                                 struct tarn_allocator **allocator_out) TN_MUST_CHECK;

#endif
