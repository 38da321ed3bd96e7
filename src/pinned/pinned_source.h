/* SPDX-License-Identifier: MIT */
/*
 * Where pinned memory comes from: the driver's own allocation; ordinary memory that is registered
 * with it (pinned_use_cuda_host_register), its pages touched by several threads first, which makes
 * the time under the driver's lock short; or a part of a segment reserved at the first request
 * (pinned_reserve_segment_size_mb), which is never given back piecewise.
 *
 * Locks: `lock` guards the reserved segment, never held during a call of the device but for the one
 * that makes it.
 */
#ifndef TN_PINNED_PINNED_SOURCE_H
#define TN_PINNED_PINNED_SOURCE_H

#include "base/attr.h"
#include "base/lock.h"
#include "device/device_ops.h"
#include "tarn/config.h"

enum tn_pinned_origin {
    TN_PINNED_DRIVER,
    TN_PINNED_REGISTERED,
    TN_PINNED_RESERVED
};

struct tn_pinned_memory {
    void *start;
    uint64_t size;
    enum tn_pinned_origin origin;
};

struct tn_pinned_source {
    struct tarn_device *device; /* constant, as the settings */
    bool registers;
    uint32_t threads;
    uint64_t reserve_size;
    struct tn_lock lock;
    struct tn_pinned_memory reserve; /* size 0: not made yet, or none */
    uint64_t reserve_used;           /* bytes from its start that were handed out */
};

void tn_pinned_source_init(struct tn_pinned_source *source, struct tarn_device *device,
                           const struct tarn_config *config);

/* Gives the reserved segment back. */
void tn_pinned_source_fini(struct tn_pinned_source *source);

/* Memory for `size` bytes. */
enum tarn_status tn_pinned_source_take(struct tn_pinned_source *source, uint64_t size,
                                       struct tn_pinned_memory *memory_out) TN_MUST_CHECK;

/* Nothing happens to parts of the reserved segment. */
enum tarn_status tn_pinned_source_give(struct tn_pinned_source *source,
                                       const struct tn_pinned_memory *memory);

#endif
