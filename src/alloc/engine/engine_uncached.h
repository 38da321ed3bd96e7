/* SPDX-License-Identifier: MIT */
/*
 * The engine without a cache (PYTORCH_NO_CUDA_MEMORY_CACHING): every allocation is one of the
 * device's, every free gives it back and, as the device's free does, waits for all streams. For
 * finding errors in programs, not for speed.
 *
 * As in PyTorch, nothing is counted, recorded or limited: statistics stay 0, a walk shows no
 * segments, observers, callbacks and receivers of events are accepted and never called, the memory
 * fraction is stored and not enforced. Private pools come and go, and no request is served from
 * them. Their checkpoints are not supported: there is nothing to restore, and a device cannot
 * allocate directly during a capture.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_UNCACHED_H
#define TN_ALLOC_ENGINE_ENGINE_UNCACHED_H

#include "alloc/engine/allocator.h"

enum tarn_status tn_uncached_create(struct tarn_device *device, const struct tarn_config *config,
                                    struct tarn_allocator **allocator_out) TN_MUST_CHECK;

#endif
