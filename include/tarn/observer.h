/* SPDX-License-Identifier: MIT */
/*
 * Memory that others take from the device: of a library without an allocator of tarn's, or of a
 * whole program (`tarn run`). Each report is one allocation of the driver; it becomes a segment
 * with one block in snapshots (struct tarn_capture_options), and its events go to a history.
 *
 * Report an allocation after the driver made it and a free before the driver carries it out: else
 * another thread can be given the same address in between, and its report comes too early.
 *
 * Every function may be called from any thread. A forked child cannot use its parent's observers:
 * see tarn/device.h.
 */
#ifndef TARN_OBSERVER_H
#define TARN_OBSERVER_H

#include "event.h"
#include "history.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_observer;

/* One allocation. */
struct tarn_observed {
    tarn_ptr address;
    uint64_t size; /* bytes, > 0 */
    tarn_stream stream;
    const char *what; /* the user metadata of its events, such as "cuMemAlloc"; borrowed for the
                         observer's lifetime */
};

/* Creates an observer of the device with that ordinal, whose events go to `history` with stacks as
 * `level` says. `history` is borrowed and must outlive it; several observers may share one. NULL:
 * no events. Caller owns *observer_out, destroy with tarn_observer_destroy.
 * TARN_ERR_INVALID_ARGUMENT for a device below 0, TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_observer_create(int device, struct tarn_history *history,
                                               enum tarn_context_level level,
                                               struct tarn_observer **observer_out,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* Forgets everything; the memory itself is not touched. NULL is allowed. */
TARN_API void tarn_observer_destroy(struct tarn_observer *observer);

/* Reports an allocation. What was known at its address must have been freed unseen, and is reported
 * as freed first. TARN_ERR_INVALID_ARGUMENT for address or size 0, TARN_ERR_HOST_MEMORY,
 * TARN_ERR_STATE in a forked child: then it is not recorded. */
TARN_API enum tarn_status tarn_observer_alloc(struct tarn_observer *observer,
                                              const struct tarn_observed *memory) TARN_MUST_CHECK;

/* Reports a free. *freed_out, which may be NULL: what the allocation was. TARN_ERR_NOT_FOUND for an
 * address that is not that of an allocation, TARN_ERR_STATE in a forked child. */
TARN_API enum tarn_status tarn_observer_free(struct tarn_observer *observer, tarn_ptr address,
                                             struct tarn_observed *freed_out) TARN_MUST_CHECK;

/* Reports that all allocations are gone, as after a reset of the device. */
TARN_API void tarn_observer_free_all(struct tarn_observer *observer);

/* Reports that a request of `size` bytes failed while the device had `device_free` bytes. */
TARN_API void tarn_observer_oom(struct tarn_observer *observer, uint64_t size, tarn_stream stream,
                                uint64_t device_free);

/* The allocation that contains the address; false when there is none. */
TARN_API bool tarn_observer_find(struct tarn_observer *observer, tarn_ptr address,
                                 struct tarn_observed *found_out);

/* Zeros before the first allocation. */
struct tarn_observer_stats {
    uint32_t struct_size;     /* in: sizeof(struct tarn_observer_stats) */
    uint64_t allocated;       /* bytes now */
    uint64_t allocated_peak;  /* bytes at most */
    uint64_t allocations;     /* live now */
    uint64_t allocations_all; /* since the beginning */
    uint64_t allocated_all;   /* bytes since the beginning */
    uint64_t failures;        /* tarn_observer_oom */
};

/* All counters, read at the same point in time. Fields beyond struct_size are not written. */
TARN_API void tarn_observer_get_stats(struct tarn_observer *observer,
                                      struct tarn_observer_stats *stats_out);

#ifdef __cplusplus
}
#endif

#endif
