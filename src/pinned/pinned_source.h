/* SPDX-License-Identifier: MIT */
/*
 * Sources of pinned memory: the driver's allocation; ordinary memory registered with the driver
 * (pinned_use_cuda_host_register), after several threads have touched its pages to shorten the time
 * under the driver's lock; or a part of a segment reserved at the first request
 * (pinned_reserve_segment_size_mb), whose parts are never released individually.
 *
 * Locks: `lock` guards the reserved segment; it is held during only one device call, the one that
 * allocates it.
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
    struct tarn_device *device; /* constant, like the settings */
    bool registers;
    uint32_t threads;
    uint64_t reserve_size;
    struct tn_lock lock;
    struct tn_pinned_memory reserve; /* size 0: not allocated yet, or none */
    uint64_t reserve_used;           /* bytes from its start that are allocated */
};

void tn_pinned_source_init(struct tn_pinned_source *source, struct tarn_device *device,
                           const struct tarn_config *config);

/* Releases the reserved segment. */
void tn_pinned_source_fini(struct tn_pinned_source *source);

/* Allocates `size` bytes. */
enum tarn_status tn_pinned_source_take(struct tn_pinned_source *source, uint64_t size,
                                       struct tn_pinned_memory *memory_out) TN_MUST_CHECK;

/* Releases memory; does nothing for parts of the reserved segment. */
enum tarn_status tn_pinned_source_give(struct tn_pinned_source *source,
                                       const struct tn_pinned_memory *memory);

#endif
